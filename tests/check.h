/* check.h - one op at a time on any backend, without StarPU
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A row describes a family of ops on certain shapes: a convolution, forward
 * and backward.  The ops share tensors, each known by its role: by the name
 * that the operand has in ops_table.h.
 */
#ifndef CHECK_H
#define CHECK_H

#include "ops_backend.h"

enum check_family {
    CHECK_INPUT_U8,
    CHECK_INPUT_F32,
    CHECK_CONV,
    CHECK_CONV_NORM,
    CHECK_NORM_CONV,
    CHECK_DENSE,
    CHECK_BN,
    CHECK_BN_STAT,
    CHECK_BN_GATED,
    CHECK_BN_EVAL,
    CHECK_BN_EVAL_BWD,
    CHECK_BN_SYNC,
    CHECK_ACT,
    CHECK_ADD,
    CHECK_ACC,
    CHECK_MAX_POOL,
    CHECK_MEAN_POOL,
    CHECK_CONCAT,
    CHECK_SCALE,
    CHECK_DROPOUT,
    CHECK_LOSS,
    CHECK_MERGE,
    CHECK_MERGE_STATS,
    CHECK_OPTIM,
    CHECK_EMA,
    CHECK_KEEP,
};

/* ROLE (NAME): every name that an operand has in DDP__OPS.  Tensors get their
 * contents in this order: moving a name gives them others. */
#define CHECK_ROLES(ROLE)                                                      \
    ROLE(MASK)                                                                 \
    ROLE(DY)                                                                   \
    ROLE(DX)                                                                   \
    ROLE(DR)                                                                   \
    ROLE(G)                                                                    \
    ROLE(INDEX)                                                                \
    ROLE(S)                                                                    \
    ROLE(DS)                                                                   \
    ROLE(NORM)                                                                 \
    ROLE(IDS)                                                                  \
    ROLE(STATE)                                                                \
    ROLE(STATS)                                                                \
    ROLE(R)                                                                    \
    ROLE(STAT)                                                                 \
    ROLE(TARGET)                                                               \
    ROLE(WEIGHT)                                                               \
    ROLE(W)                                                                    \
    ROLE(X)                                                                    \
    ROLE(Y)                                                                    \
    ROLE(SRC)                                                                  \
    ROLE(DST)                                                                  \
    ROLE(A)                                                                    \
    ROLE(B)                                                                    \
    ROLE(SLOPE)                                                                \
    ROLE(SCALE)                                                                \
    ROLE(BN)                                                                   \
    ROLE(SUM)                                                                  \
    ROLE(DSUM)                                                                 \
    ROLE(DM)                                                                   \
    ROLE(BN_G)

enum check_role {
    ROLE_NONE,
#define X(name) ROLE_##name,
    CHECK_ROLES(X)
#undef X
        ROLE_COUNT
};
extern const char *const check_role_names[ROLE_COUNT];
extern const enum check_role check_gradient[ROLE_COUNT]; /* NONE: has none */

enum { CHECK_MAX_OPS = 4, CHECK_MAX_SLOPES = 3, CHECK_MAX_SPANS = 4 };

struct check_row {
    enum check_family family;
    const char *what;
    int n, cap;
    struct ddp_shape x, y; /* y of convolutions and pools: h 0 to compute it */
    struct ddp__call call; /* the scalars of the family's ops */
    double spread, mean;   /* x is in mean -+ spread; spread 0: 1 */
    bool ties;             /* x has few different values */
    bool nan;              /* x, or of OPTIM g, has a NaN */
    bool no_divisor;       /* no sample of the step counted */
    size_t turns;          /* gradients are at right angles to weights in each
                              part of so many elements; 0: in none */
    bool no_gradient;      /* LOSS, SCALE: no dx */
    bool shares;           /* LOSS: the target is a share of each class */
    int updates;           /* OPTIM: that were made; 0: 3 */
    struct ddp__span span[CHECK_MAX_SPANS];
};

/* What belongs to a family. */
struct check_kind {
    const char *name;
    enum ddp__op op[CHECK_MAX_OPS]; /* forward first */
    int ops;
    /* Whose gradients are slopes, until NONE; of Y, or of the first of STATS */
    enum check_role slope[CHECK_MAX_SLOPES + 1], objective;
};
extern const struct check_kind check_kinds[];

/* The table: op_rows.c. */
extern const struct check_row op_rows[];
extern const int op_row_count;

struct check_tensor {
    struct ddp__view view;
    void *data;
    size_t size; /* of cap samples, in bytes */
    uint64_t id, version;
};

/* A row in one type, with its tensors. */
struct check {
    struct check_row row; /* y filled in */
    enum ddp_dtype dtype;
    struct check_tensor tensor[ROLE_COUNT];
    uint64_t drawn; /* random numbers so far */
    bool coarse; /* these are multiples of 1 / 1024: sums with small powers of
                    two are exact, which finite differences like */
};

/* Tensors of a row, and their contents: the same ones for the same row.  NULL
 * from new: no memory.  Every fill gives other contents. */
struct check *check_new(const struct check_row *row, enum ddp_dtype dtype);
struct check *check_copy(const struct check *k);
void check_free(struct check *k);
void check_fill(struct check *k);
void check_fill_one(struct check *k, enum check_role role);

struct check_tensor *check_tensor(struct check *k, enum check_role role);

/* The tensor that operand i is, NONE if this call has none; whether the
 * operation writes it. */
enum check_role check_role(const struct check *k, enum ddp__op op, int i);
bool check_writes(enum ddp__op op, int i);

/* The call of an op of the row, and one run of it. */
struct ddp__call check_call(const struct check *k, enum ddp__op op);
int check_run(struct check *k, const struct ddp__backend *b,
              const struct ddp__call *c, int n, bool accumulate);

/* Runs kernels of a backend that is not of CPU workers, on buffers of these
 * sizes in main memory. */
extern int (*check_kernel)(const struct ddp__backend *b, struct ddp__task *t,
                           const size_t *size);

/* Element i as a number, of any type. */
double check_get(const struct check_tensor *t, size_t i);
void check_set(struct check_tensor *t, size_t i, double value);

/* Whether the target of a loss is a class. */
bool check_has_labels(const struct check_row *r);

/* Channels of a row's batch norm, which comes before or after a convolution. */
int check_norm_channels(const struct check_row *r);

/* Elements that n samples have. */
size_t check_len(const struct check_tensor *t, int n);

/* How far got is from want over elements begin .. end - 1. */
struct check_difference {
    double norm, worst; /* |got - want| / max(|got|, |want|, floor); largest */
    size_t worst_at;
};
struct check_difference check_compare(const struct check_tensor *got,
                                      const struct check_tensor *want,
                                      size_t begin, size_t end, double floor);

/* |t| over the first n samples. */
double check_norm(const struct check_tensor *t, int n);

#endif
