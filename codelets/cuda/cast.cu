/* cast.cu - weights in the type of activations */
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "cast.h"

/* Rounding to nearest even, as the other devices do. */
static __device__ __nv_bfloat16 to(float f, __nv_bfloat16)
{
    return __float2bfloat16_rn(f);
}

static __device__ __half to(float f, __half)
{
    return __float2half_rn(f);
}

template <typename T>
static __global__ void cast(const float *src, T *dst, size_t len)
{
    size_t stride = (size_t)gridDim.x * blockDim.x;

    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < len;
         i += stride)
        dst[i] = to(src[i], T());
}

enum { THREADS = 256, MAX_BLOCKS = 2048 };

template <typename T>
static cudaError_t launch(const float *src, void *dst, size_t len,
                          cudaStream_t stream)
{
    size_t blocks = (len + THREADS - 1) / THREADS;
    T *to = static_cast<T *>(dst);
    void *args[] = {&src, &to, &len};

    if (len == 0)
        return cudaSuccess;
    return cudaLaunchKernel(
        (const void *)cast<T>,
        dim3((unsigned)(blocks < MAX_BLOCKS ? blocks : MAX_BLOCKS)),
        dim3(THREADS), args, 0, stream);
}

cudaError_t ddp__cuda_to_bf16(const float *src, void *dst, size_t len,
                              cudaStream_t stream)
{
    return launch<__nv_bfloat16>(src, dst, len, stream);
}

cudaError_t ddp__cuda_to_f16(const float *src, void *dst, size_t len,
                             cudaStream_t stream)
{
    return launch<__half>(src, dst, len, stream);
}
