/* cast.h - weights in the type of activations: for C and CUDA */
#ifndef DDP_CAST_H
#define DDP_CAST_H

#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

cudaError_t ddp__cuda_to_bf16(const float *src, void *dst, size_t len,
                              cudaStream_t stream);
cudaError_t ddp__cuda_to_f16(const float *src, void *dst, size_t len,
                             cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
