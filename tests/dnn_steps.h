/* dnn_steps.h - primitives of oneDNN and the memory that they work on
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Every failure of oneDNN ends the program: nothing here is more than a
 * benchmark needs.
 */
#ifndef DNN_STEPS_H
#define DNN_STEPS_H

#include "check.h"
#include "cpu/onednn/onednn_pd.h"

enum { DNN_STEPS = 2, DNN_ARGS = 10, DNN_OWN = 12 };

/* A primitive and its arguments. */
struct dnn_step {
    dnnl_primitive_desc_t pd;
    dnnl_primitive_t prim;
    dnnl_exec_arg_t arg[DNN_ARGS];
    int args;
};

/* What an operation is made of. */
struct dnn_steps {
    struct dnn_step step[DNN_STEPS];
    int steps;
    void *result;
    void *own[DNN_OWN]; /* owned */
    int owns;
};

extern dnnl_engine_t dnn_engine;

/* With one thread, where oneDNN has OpenMP. */
void dnn_start(void);
void dnn_must(dnnl_status_t st, const char *what);

/* Memory of zeros until dnn_steps_free(), which leaves p itself. */
void *dnn_own(struct dnn_steps *p, size_t bytes);
void dnn_steps_free(struct dnn_steps *p);

/* Descriptors: of a tensor of n samples, and of values in f32. */
md_t dnn_image(const struct check_tensor *t, int n);
md_t dnn_vector(int len);
size_t dnn_size(cmd_t md);

/* Make the primitive of s->pd, which then gets its arguments. */
void dnn_step_begin(struct dnn_step *s);
void dnn_arg(struct dnn_step *s, int id, cmd_t md, void *data);
cmd_t dnn_workspace(const struct dnn_step *s);
void dnn_step_run(const struct dnn_step *s);
void dnn_step_end(struct dnn_step *s);

#endif
