/* device.h - functions that nvcc compiles for GPUs and cc for CPUs
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_DEVICE_H
#define DDP_DEVICE_H

#ifdef __CUDACC__
#define DDP__DEVICE static __device__ __forceinline__
#else
#define DDP__DEVICE static inline __attribute__((unused))
#endif

#endif
