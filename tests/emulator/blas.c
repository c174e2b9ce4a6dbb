/* blas.c - products of matrices as cuBLASLt has them, by columns
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include <stdlib.h>
#include <string.h>

#include <cublasLt.h>

#include "emulator.h"
#include "gpu/arith.h"

/* What the opaque descriptors hold. */
struct product {
    cublasOperation_t transpose_a, transpose_b;
    cublasLtEpilogue_t epilogue;
    const void *bias;
};

struct layout {
    cudaDataType type;
    size_t rows, cols;
    int64_t ld;
};

static int handle_of_anything;

cublasStatus_t cublasLtCreate(cublasLtHandle_t *h)
{
    *h = (cublasLtHandle_t)&handle_of_anything;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t h)
{
    (void)h;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescInit_internal(cublasLtMatmulDesc_t d,
                                               size_t size,
                                               cublasComputeType_t compute,
                                               cudaDataType_t scale)
{
    (void)compute;
    (void)scale;
    memset(d, 0, size);
    ((struct product *)d)->epilogue = CUBLASLT_EPILOGUE_DEFAULT;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t
cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t d,
                               cublasLtMatmulDescAttributes_t name,
                               const void *value, size_t size)
{
    struct product *p = (struct product *)d;

    switch (name) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
        memcpy(&p->transpose_a, value, size);
        break;
    case CUBLASLT_MATMUL_DESC_TRANSB:
        memcpy(&p->transpose_b, value, size);
        break;
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
        memcpy(&p->epilogue, value, size);
        break;
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
        memcpy(&p->bias, value, size);
        break;
    default:
        return CUBLAS_STATUS_NOT_SUPPORTED;
    }
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutInit_internal(cublasLtMatrixLayout_t l,
                                                 size_t size, cudaDataType type,
                                                 uint64_t rows, uint64_t cols,
                                                 int64_t ld)
{
    memset(l, 0, size);
    *(struct layout *)l = (struct layout){type, rows, cols, ld};
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t
cublasLtMatmulPreferenceInit_internal(cublasLtMatmulPreference_t p, size_t size)
{
    memset(p, 0, size);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t
cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t p,
                                     cublasLtMatmulPreferenceAttributes_t name,
                                     const void *value, size_t size)
{
    (void)p;
    (void)name;
    (void)value;
    (void)size;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(
    cublasLtHandle_t h, cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a,
    cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c,
    cublasLtMatrixLayout_t d, cublasLtMatmulPreference_t p, int most,
    cublasLtMatmulHeuristicResult_t found[], int *count)
{
    int gpu = 0;

    (void)h;
    (void)desc;
    (void)a;
    (void)b;
    (void)c;
    (void)d;
    (void)p;
    emulator_plans();
    memset(&found[0], 0, sizeof(found[0]));
    cudaGetDevice(&gpu);
    found[0].algo.data[0] = (uint64_t)emulator_capability(gpu);
    *count = most > 0;
    return CUBLAS_STATUS_SUCCESS;
}

/* ---- the product -------------------------------------------------------- */

struct matmul {
    struct product p;
    struct layout la, lb, ld;
    const void *a, *b;
    void *d;
    float alpha, beta;
};

static enum ddp_dtype type_of(cudaDataType type)
{
    return type == CUDA_R_32F   ? DDP_F32
           : type == CUDA_R_16F ? DDP_F16
                                : DDP_BF16;
}

static float at(const void *m, const struct layout *l, size_t row, size_t col)
{
    return ddp__k_get(type_of(l->type), m, col * (size_t)l->ld + row);
}

static float dot(const struct matmul *m, size_t i, size_t j)
{
    bool ta = m->p.transpose_a == CUBLAS_OP_T;
    bool tb = m->p.transpose_b == CUBLAS_OP_T;
    size_t k = ta ? m->la.rows : m->la.cols;
    float sum = 0;

    for (size_t e = 0; e < k; e++)
        sum += (ta ? at(m->a, &m->la, e, i) : at(m->a, &m->la, i, e)) *
               (tb ? at(m->b, &m->lb, j, e) : at(m->b, &m->lb, e, j));
    return sum;
}

static void multiply(void *arg)
{
    const struct matmul *m = arg;
    enum ddp_dtype type = type_of(m->ld.type);
    bool relu = m->p.epilogue == CUBLASLT_EPILOGUE_RELU ||
                m->p.epilogue == CUBLASLT_EPILOGUE_RELU_BIAS;
    bool bias = m->p.epilogue == CUBLASLT_EPILOGUE_BIAS ||
                m->p.epilogue == CUBLASLT_EPILOGUE_RELU_BIAS;

    for (size_t j = 0; j < m->ld.cols; j++)
        for (size_t i = 0; i < m->ld.rows; i++) {
            size_t to = j * (size_t)m->ld.ld + i;
            float v = m->alpha * dot(m, i, j);

            if (m->beta != 0)
                v += m->beta * ddp__k_get(type, m->d, to);
            if (bias)
                v += ddp__k_get(type, m->p.bias, i);
            ddp__k_put(type, m->d, to, relu && !(v > 0) ? 0 : v);
        }
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t h, cublasLtMatmulDesc_t desc,
                              const void *alpha, const void *a,
                              cublasLtMatrixLayout_t la, const void *b,
                              cublasLtMatrixLayout_t lb, const void *beta,
                              const void *c, cublasLtMatrixLayout_t lc, void *d,
                              cublasLtMatrixLayout_t ld,
                              const cublasLtMatmulAlgo_t *algo, void *workspace,
                              size_t size, cudaStream_t stream)
{
    struct matmul m = {.p = *(const struct product *)desc,
                       .la = *(const struct layout *)la,
                       .lb = *(const struct layout *)lb,
                       .ld = *(const struct layout *)ld,
                       .a = a,
                       .b = b,
                       .d = d,
                       .alpha = *(const float *)alpha,
                       .beta = *(const float *)beta};

    (void)h;
    (void)lc;
    (void)workspace;
    (void)size;
    if (c != d)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    if (emulator_gone(emulator_current(), "launch"))
        return CUBLAS_STATUS_EXECUTION_FAILED;
    emulator_made_for((int)algo->data[0]);
    emulator_launch();
    emulator_queue(stream, multiply, emulator_copy(&m, sizeof(m)));
    return CUBLAS_STATUS_SUCCESS;
}
