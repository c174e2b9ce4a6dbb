/* matmul.c - products of matrices by cuBLASLt
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/error.h"
#include "matmul.h"
#include "worker.h"

/* All but pointers; only read once it is made. */
struct ddp__cuda_matmul {
    cublasLtMatmulDescOpaque_t desc;
    cublasLtMatrixLayoutOpaque_t a, b, d;
    cublasLtMatmulAlgo_t algo;
    size_t workspace;
};

static cudaDataType_t data_type(enum ddp_dtype type)
{
    static const cudaDataType_t of[] = {
        [DDP_F32] = CUDA_R_32F,
        [DDP_BF16] = CUDA_R_16BF,
        [DDP_F16] = CUDA_R_16F,
    };

    return of[type];
}

/* ---- what to compute ---------------------------------------------------- */

static cublasStatus_t set_attribute(cublasLtMatmulDesc_t d,
                                    cublasLtMatmulDescAttributes_t name,
                                    const void *value, size_t size)
{
    return cublasLtMatmulDescSetAttribute(d, name, value, size);
}

/* cuBLASLt takes attributes one at a time; the first error stops the rest. */
static cublasStatus_t describe_product(struct ddp__cuda_matmul *m,
                                       const struct ddp__cuda_product *p)
{
    cublasOperation_t op_a = p->transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N;
    cublasOperation_t op_b = p->transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N;
    cublasLtEpilogue_t epilogue = p->bias && p->relu
                                      ? CUBLASLT_EPILOGUE_RELU_BIAS
                                  : p->bias ? CUBLASLT_EPILOGUE_BIAS
                                  : p->relu ? CUBLASLT_EPILOGUE_RELU
                                            : CUBLASLT_EPILOGUE_DEFAULT;
    cublasStatus_t e = cublasLtMatmulDescInit(&m->desc,
                                              p->tf32 && p->type == DDP_F32
                                                  ? CUBLAS_COMPUTE_32F_FAST_TF32
                                                  : CUBLAS_COMPUTE_32F,
                                              CUDA_R_32F);

    if (e == CUBLAS_STATUS_SUCCESS)
        e = set_attribute(&m->desc, CUBLASLT_MATMUL_DESC_TRANSA, &op_a,
                          sizeof(op_a));
    if (e == CUBLAS_STATUS_SUCCESS)
        e = set_attribute(&m->desc, CUBLASLT_MATMUL_DESC_TRANSB, &op_b,
                          sizeof(op_b));
    if (e == CUBLAS_STATUS_SUCCESS)
        e = set_attribute(&m->desc, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue,
                          sizeof(epilogue));
    return e;
}

static cublasStatus_t describe_matrices(struct ddp__cuda_matmul *m,
                                        const struct ddp__cuda_product *p)
{
    size_t rows_a = p->transpose_a ? p->k : p->m;
    size_t rows_b = p->transpose_b ? p->n : p->k;
    cublasStatus_t e =
        cublasLtMatrixLayoutInit(&m->a, data_type(p->type), rows_a,
                                 p->transpose_a ? p->m : p->k, (int64_t)rows_a);

    if (e == CUBLAS_STATUS_SUCCESS)
        e = cublasLtMatrixLayoutInit(&m->b, data_type(p->type), rows_b,
                                     p->transpose_b ? p->k : p->n,
                                     (int64_t)rows_b);
    if (e == CUBLAS_STATUS_SUCCESS)
        e = cublasLtMatrixLayoutInit(&m->d, data_type(p->type_d), p->m, p->n,
                                     (int64_t)p->m);
    return e;
}

/* ---- how to compute it -------------------------------------------------- */

/* Partial sums are added in f32, in an order that does not change. */
static cublasStatus_t set_limits(cublasLtMatmulPreference_t pref,
                                 const struct ddp__cuda_product *p,
                                 size_t workspace)
{
    const struct {
        cublasLtMatmulPreferenceAttributes_t name;
        uint32_t value;
    } want[] = {
        {CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
         CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, (uint32_t)p->align_a},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, (uint32_t)p->align_b},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, (uint32_t)p->align_d},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, (uint32_t)p->align_d},
    };
    uint64_t bytes = workspace;
    cublasStatus_t e = cublasLtMatmulPreferenceSetAttribute(
        pref, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &bytes, sizeof(bytes));

    for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++)
        if (e == CUBLAS_STATUS_SUCCESS)
            e = cublasLtMatmulPreferenceSetAttribute(
                pref, want[i].name, &want[i].value, sizeof(want[i].value));
    return e;
}

/* Of a target, which is current.  Making one is slow, so it is kept for the
 * life of the process. */
static int get_heuristics_handle(const struct ddp__cudnn_target *t,
                                 cublasLtHandle_t *out)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static cublasLtHandle_t handles[DDP__CUDA_DEVICES];
    cublasLtHandle_t *handle = &handles[t->device];
    int rc = 0;

    pthread_mutex_lock(&lock);
    if (!*handle)
        rc = ddp__cublas_check(cublasLtCreate(handle), "starting cuBLASLt");
    *out = *handle;
    pthread_mutex_unlock(&lock);
    return rc;
}

/* cuBLASLt's first choice: by its heuristics, not by stopwatch. */
static int choose_algorithm(const struct ddp__cudnn_target *t,
                            struct ddp__cuda_matmul *m,
                            const struct ddp__cuda_product *p, size_t limit)
{
    cublasLtMatmulPreferenceOpaque_t pref;
    cublasLtMatmulHeuristicResult_t found;
    cublasLtHandle_t handle;
    cublasStatus_t e;
    int count = 0, rc;

    if ((rc = get_heuristics_handle(t, &handle)) < 0)
        return rc;
    e = cublasLtMatmulPreferenceInit(&pref);
    if (e == CUBLAS_STATUS_SUCCESS)
        e = set_limits(&pref, p, limit);
    if (e == CUBLAS_STATUS_SUCCESS)
        e = cublasLtMatmulAlgoGetHeuristic(handle, &m->desc, &m->a, &m->b,
                                           &m->d, &m->d, &pref, 1, &found,
                                           &count);
    if (e == CUBLAS_STATUS_NOT_SUPPORTED ||
        (e == CUBLAS_STATUS_SUCCESS &&
         (count < 1 || found.state != CUBLAS_STATUS_SUCCESS)))
        return ddp__fail(DDP_ENODEV,
                         "cuBLASLt has nothing for a product of %zu x %zu by "
                         "%zu x %zu",
                         p->m, p->k, p->k, p->n);
    if ((rc = ddp__cublas_check(e, "choosing a product's kernel")) < 0)
        return rc;
    m->algo = found.algo;
    m->workspace = found.workspaceSize;
    return 0;
}

int ddp__cuda_matmul_new(const struct ddp__cudnn_target *t,
                         const struct ddp__cuda_product *p, size_t limit,
                         struct ddp__cuda_matmul **out)
{
    struct ddp__cuda_matmul *m = calloc(1, sizeof(*m));
    int before, rc;

    if (!m)
        return ddp__fail(DDP_ENOMEM, "out of memory for a product");
    before = ddp__cudnn_target_enter(t);
    if ((rc = ddp__cublas_check(describe_product(m, p),
                                "describing a product")) == 0 &&
        (rc = ddp__cublas_check(describe_matrices(m, p),
                                "describing matrices")) == 0)
        rc = choose_algorithm(t, m, p, limit);
    ddp__cudnn_target_leave(t, before);
    if (rc < 0) {
        free(m);
        return rc;
    }
    *out = m;
    return 0;
}

void ddp__cuda_matmul_free(struct ddp__cuda_matmul *m)
{
    free(m);
}

size_t ddp__cuda_matmul_workspace(const struct ddp__cuda_matmul *m)
{
    return m->workspace;
}

int ddp__cuda_matmul_run(const struct ddp__cuda_matmul *m,
                         struct ddp__cuda_worker *w, const void *a,
                         const void *b, const void *bias, void *d,
                         bool accumulate, void *workspace)
{
    cublasLtMatmulDescOpaque_t desc = m->desc;
    cublasLtMatrixLayoutOpaque_t la = m->a, lb = m->b, ld = m->d;
    float alpha = 1, beta = accumulate ? 1 : 0;
    int rc = 0;

    if (bias)
        rc = ddp__cublas_check(set_attribute(&desc,
                                             CUBLASLT_MATMUL_DESC_BIAS_POINTER,
                                             &bias, sizeof(bias)),
                               "the bias of a product");
    if (rc < 0)
        return rc;
    return ddp__cublas_check(
        cublasLtMatmul(w->blas, &desc, &alpha, a, &la, b, &lb, &beta, d, &ld, d,
                       &ld, &m->algo, workspace, m->workspace, w->stream),
        "a product of matrices");
}
