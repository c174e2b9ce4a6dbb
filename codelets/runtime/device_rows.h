/* device_rows.h - the devices of this build, in order of preference: a row each
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifdef HAVE_CUDA
DDP__DEVICE(ddp__device_cuda)
#endif
DDP__DEVICE(ddp__device_cpu)
