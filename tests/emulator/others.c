/* others.c - libraries that StarPU starts and nobody uses: handles, no more
 *
 * Their own headers would have other types for these.
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
static int handle_of_anything;

#define CREATE(name)                                                           \
    int name(void **h);                                                        \
    int name(void **h)                                                         \
    {                                                                          \
        *h = &handle_of_anything;                                              \
        return 0;                                                              \
    }
#define USE(name)                                                              \
    int name(void *h, void *x);                                                \
    int name(void *h, void *x)                                                 \
    {                                                                          \
        (void)h;                                                               \
        (void)x;                                                               \
        return 0;                                                              \
    }
#define X(library) CREATE(library##Create) USE(library##Destroy)
X(cusolverDn)
X(cusolverRf)
X(cusolverSp)
X(cusparse)
CREATE(cublasCreate_v2)
USE(cublasDestroy_v2)
USE(cublasSetStream_v2)
USE(cublasSetKernelStream)
USE(cublasInit)
USE(cublasShutdown)
USE(cusolverDnSetStream)
USE(cusolverSpSetStream)
USE(cusparseSetStream)
