/* dnn_plan.c - which of cuDNN's engines runs a graph, and running it
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * cuDNN's terms: for an operation graph, heuristics return configurations, best
 * first.  A configuration is an engine (a family of kernels) with its knobs
 * set.  A configuration that finalizes is an execution plan, and a plan runs
 * with a variant pack: pointers by tensors' ids, and a workspace.
 *
 * Why not simply the first: training promises the same bits for the same
 * settings, so engines that add in no fixed order are left out, and f32 means
 * f32 unless TF32 was asked for.  An engine is judged by its numerical notes,
 * the only thing that cuDNN documents about it; its number means nothing across
 * versions.  What is left can still fail to compile, or need more workspace
 * than was reserved, so configurations are tried in turn.
 *
 * Why two modes: mode A ranks engines by a model and may return none that
 * passes; FALLBACK returns slow engines that work for nearly everything.  If
 * both fail the answer is DDP_ENODEV, regardless of the last error: libddp's
 * kernels, or another variant of the graph, can do the call.  Only a lack of
 * memory is reported as such.
 *
 * Why no stopwatch by default: timings differ from run to run, and another
 * engine means other last bits.  With DDP_TUNE=1 the choice is measured once
 * and stored with the plan, so that a later run repeats it.
 *
 * Why plans are text at times: a finalized plan belongs to one device and
 * cannot be copied.  Its JSON can: it goes to disk, so that engines compiled at
 * run time need their second only once, and to other GPUs of the same kind.
 *
 * Devices that are only described (tests without a GPU): cuDNN chooses and
 * compiles for them, but cannot load the code.  A plan counts as built when
 * that is the only thing that failed; and as compiling takes about a second,
 * only `to_compile` of them are, the others are believed.
 *
 * A launch holds no lock, because all GPUs launch the same layer at about the
 * same time.  So each worker has a plan of its own: cuDNN does not promise that
 * two threads may execute one plan at a time.  The pack is destroyed after the
 * launch, which has copied the pointers.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "dnn_tune.h"
#include "worker.h"

enum { MAX_CONFIGS = 96, MAX_NOTES = 32, MAX_TRIED = 10 };

/* ---- engines ------------------------------------------------------------ */

/* An attribute of `count` values at most; how many there are. */
static int64_t get_attribute(ddp__cudnn_desc d,
                             cudnnBackendAttributeName_t name,
                             cudnnBackendAttributeType_t type, int64_t count,
                             void *value)
{
    int64_t n = 0;

    if (cudnnBackendGetAttribute(d, name, type, count, &n, value) !=
        CUDNN_STATUS_SUCCESS)
        return 0;
    return n < count ? n : count;
}

/* Whether a graph is of f32 tensors, where tensor cores mean TF32. */
static bool is_f32(const struct ddp__cudnn_graph *g)
{
    return !strstr(g->key, ":bf16") && !strstr(g->key, ":f16");
}

/* Only their notes distinguish engines. */
static bool engine_is_allowed(struct ddp__cudnn_plan *p, ddp__cudnn_desc engine)
{
    cudnnBackendNumericalNote_t note[MAX_NOTES];
    bool strict = is_f32(p->graph) && !p->target->tf32;
    int64_t n = get_attribute(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE,
                              CUDNN_TYPE_NUMERICAL_NOTE, MAX_NOTES, note);

    for (int64_t i = 0; i < n; i++)
        switch (note[i]) {
        case CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC:
            if (!p->target->fast)
                return false;
            break;
        case CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION:
            return false;
        case CUDNN_NUMERICAL_NOTE_TENSOR_CORE:
            p->tensor_cores = true;
            if (strict)
                return false;
            break;
        case CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS:
        case CUDNN_NUMERICAL_NOTE_WINOGRAD:
        case CUDNN_NUMERICAL_NOTE_FFT:
            if (strict)
                return false;
            break;
        default:
            break;
        }
    return true;
}

/* ---- configurations ----------------------------------------------------- */

struct configs {
    ddp__cudnn_desc of[MAX_CONFIGS];
    int64_t n;
};

static void configs_free(struct configs *c)
{
    for (int i = 0; i < MAX_CONFIGS; i++)
        if (c->of[i])
            cudnnBackendDestroyDescriptor(c->of[i]);
}

static int configs_new(struct configs *c)
{
    cudnnStatus_t e = CUDNN_STATUS_SUCCESS;

    *c = (struct configs){.n = 0};
    for (int i = 0; i < MAX_CONFIGS && e == CUDNN_STATUS_SUCCESS; i++)
        e = cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR,
                                         &c->of[i]);
    return ddp__cudnn_status(e, "an engine's configuration");
}

/* What cuDNN would run the graph with, best first. */
static int ask_heuristics(struct ddp__cudnn_plan *p, ddp__cudnn_desc graph,
                          cudnnBackendHeurMode_t mode, struct configs *c)
{
    struct ddp__cudnn_graph *g = p->graph;
    ddp__cudnn_desc h = ddp__cudnn_new(g, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);

    ddp__cudnn_set(g, h, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH,
                   CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &graph);
    ddp__cudnn_set(g, h, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1,
                   &mode);
    ddp__cudnn_set(g, h, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP,
                   CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &p->target->prop);
    ddp__cudnn_finish(g, h, "choosing an engine");
    if (g->rc < 0)
        return g->rc;
    c->n = get_attribute(h, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                         CUDNN_TYPE_BACKEND_DESCRIPTOR, MAX_CONFIGS, c->of);
    return 0;
}

/* ---- plans -------------------------------------------------------------- */

static int plan_new(ddp__cudnn_desc *d, ddp__cudnn_desc device)
{
    int rc = ddp__cudnn_status(cudnnBackendCreateDescriptor(
                                   CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, d),
                               "a plan");

    if (rc == 0)
        rc = ddp__cudnn_status(
            cudnnBackendSetAttribute(*d, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP,
                                     CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &device),
            "a plan's device");
    return rc;
}

static void plan_drop(struct ddp__cudnn_plan *p)
{
    if (p->desc)
        cudnnBackendDestroyDescriptor(p->desc);
    p->desc = NULL;
}

/* Compile.  Where the device is only described, all but the last step, to load
 * the code, can be made. */
static int finalize_plan(struct ddp__cudnn_plan *p)
{
    cudnnStatus_t e = cudnnBackendFinalize(p->desc);

    if (e == CUDNN_STATUS_EXECUTION_FAILED_CUDA_DRIVER &&
        p->target->described) {
        plan_drop(p);
        return 0;
    }
    return ddp__cudnn_status(e, "a plan");
}

static size_t plan_workspace(const struct ddp__cudnn_plan *p)
{
    int64_t size = 0;

    if (p->desc)
        get_attribute(p->desc, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                      CUDNN_TYPE_INT64, 1, &size);
    return size > 0 ? (size_t)size : 0;
}

/* One configuration: a plan, or the reason why not. */
static int try_config(struct ddp__cudnn_plan *p, ddp__cudnn_desc config,
                      size_t limit)
{
    int rc;

    p->believed = p->target->described && p->runtime &&
                  atomic_fetch_sub(&p->target->to_compile, 1) <= 0;
    if (p->believed)
        return 0;
    if ((rc = plan_new(&p->desc, p->target->prop)) == 0)
        rc = ddp__cudnn_status(
            cudnnBackendSetAttribute(p->desc,
                                     CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG,
                                     CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &config),
            "a plan's engine");
    if (rc == 0)
        rc = finalize_plan(p);
    p->workspace = plan_workspace(p);
    if (rc == 0 && p->workspace > limit)
        rc = ddp__fail(DDP_ENODEV, "an engine needs %zu bytes of workspace",
                       p->workspace);
    if (rc < 0)
        plan_drop(p);
    return rc;
}

static bool is_runtime(ddp__cudnn_desc engine)
{
    cudnnBackendBehaviorNote_t note[MAX_NOTES];
    int64_t n = get_attribute(engine, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE,
                              CUDNN_TYPE_BEHAVIOR_NOTE, MAX_NOTES, note);

    for (int64_t i = 0; i < n; i++)
        if (note[i] == CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION)
            return true;
    return false;
}

static bool engine_fits(struct ddp__cudnn_plan *p, ddp__cudnn_desc config)
{
    ddp__cudnn_desc e = NULL;
    bool fits = false;

    if (cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINE_DESCRIPTOR, &e) !=
        CUDNN_STATUS_SUCCESS)
        return false;
    if (get_attribute(config, CUDNN_ATTR_ENGINECFG_ENGINE,
                      CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &e) == 1) {
        get_attribute(e, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1,
                      &p->engine);
        p->runtime = is_runtime(e);
        p->tensor_cores = false;
        fits = engine_is_allowed(p, e);
    }
    cudnnBackendDestroyDescriptor(e);
    return fits;
}

/* The first configuration that fits and compiles. */
static int take_first(struct ddp__cudnn_plan *p, struct configs *c,
                      size_t limit)
{
    int rc = ddp__fail(DDP_ENODEV, "cuDNN has no engine for %s", p->key);

    for (int i = 0; i < c->n && rc < 0; i++)
        if (engine_fits(p, c->of[i]) &&
            (rc = try_config(p, c->of[i], limit)) == 0) {
            p->config = c->of[i];
            c->of[i] = NULL;
        }
    return rc;
}

/* Have p be `better`, of that configuration. */
static void adopt_plan(struct ddp__cudnn_plan *p,
                       struct ddp__cudnn_plan *better, ddp__cudnn_desc *config)
{
    p->config = *config;
    *config = NULL;
    p->desc = better->desc;
    p->workspace = better->workspace;
    p->engine = better->engine;
    p->runtime = better->runtime;
    p->tensor_cores = better->tensor_cores;
    better->desc = NULL;
}

/* Plans of some configurations. */
struct candidates {
    struct ddp__cudnn_plan plan[MAX_TRIED];
    int of[MAX_TRIED]; /* which configuration */
    int n;
};

/* The first few that fit. */
static void compile_candidates(const struct ddp__cudnn_plan *p,
                               const struct configs *c, size_t limit,
                               struct candidates *all)
{
    all->n = 0;
    for (int i = 0; i < c->n && all->n < MAX_TRIED; i++) {
        struct ddp__cudnn_plan *q = &all->plan[all->n];

        *q = (struct ddp__cudnn_plan){.target = p->target,
                                      .graph = p->graph,
                                      .key = p->key,
                                      .lock = PTHREAD_MUTEX_INITIALIZER};
        if (engine_fits(q, c->of[i]) && try_config(q, c->of[i], limit) == 0)
            all->of[all->n++] = i;
    }
}

/* The fastest one, or -1. */
static int time_candidates(struct candidates *all)
{
    struct ddp__cudnn_bench *b;
    size_t workspace = 0;
    float least = 0, ms;
    int best = -1;

    for (int i = 0; i < all->n; i++)
        if (all->plan[i].workspace > workspace)
            workspace = all->plan[i].workspace;
    if (all->n == 0 || !(b = ddp__cudnn_bench_new(&all->plan[0], workspace)))
        return -1;
    for (int i = 0; i < all->n; i++)
        if (ddp__cudnn_bench_run(b, &all->plan[i], &ms) == 0 &&
            (best < 0 || ms < least)) {
            least = ms;
            best = i;
        }
    ddp__cudnn_bench_free(b);
    return best;
}

/* The fastest of the first few that fit.  Compiling takes up to a second each,
 * so threads that choose for other graphs do that at the same time; what they
 * measure they measure one after another. */
static int take_fastest(struct ddp__cudnn_plan *p, struct configs *c,
                        size_t limit)
{
    struct candidates all;
    int best;

    if (p->target->described)
        return DDP_ENODEV; /* nothing runs there */
    compile_candidates(p, c, limit, &all);
    best = time_candidates(&all);
    if (best >= 0)
        adopt_plan(p, &all.plan[best], &c->of[all.of[best]]);
    for (int i = 0; i < all.n; i++)
        plan_drop(&all.plan[i]);
    return best < 0 ? DDP_ENODEV : 0;
}

static int choose_engine(struct ddp__cudnn_plan *p, ddp__cudnn_desc graph,
                         cudnnBackendHeurMode_t mode, size_t limit, bool tune)
{
    struct configs c;
    int rc = configs_new(&c);

    p->graph->rc = 0; /* the other mode may have failed */
    if (rc == 0 && (rc = ask_heuristics(p, graph, mode, &c)) == 0 &&
        (!tune || !p->target->fast || (rc = take_fastest(p, &c, limit)) < 0))
        rc = take_first(p, &c, limit);
    configs_free(&c);
    return rc;
}

int ddp__cudnn_build(struct ddp__cudnn_plan *p, size_t limit, bool tune)
{
    struct ddp__cudnn_graph *g = p->graph;
    ddp__cudnn_desc graph =
        ddp__cudnn_new(g, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    int rc;

    ddp__cudnn_set(g, graph, CUDNN_ATTR_OPERATIONGRAPH_OPS,
                   CUDNN_TYPE_BACKEND_DESCRIPTOR, g->ops, g->op);
    ddp__cudnn_finish(g, graph, "a graph");
    if (g->rc < 0)
        return g->rc;
    if ((rc = choose_engine(p, graph, CUDNN_HEUR_MODE_A, limit, tune)) < 0)
        rc = choose_engine(p, graph, CUDNN_HEUR_MODE_FALLBACK, limit, tune);
    /* Other engines may run the call, regardless of how the last one failed. */
    return rc == 0 || rc == DDP_ENOMEM ? rc : DDP_ENODEV;
}

/* ---- a plan as text ----------------------------------------------------- */

static int plan_from_text(ddp__cudnn_desc *d, ddp__cudnn_desc device,
                          const char *text, size_t len)
{
    int rc = plan_new(d, device);

    if (rc == 0)
        rc = ddp__cudnn_status(
            cudnnBackendSetAttribute(
                *d, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION,
                CUDNN_TYPE_CHAR, (int64_t)len, text),
            "a stored plan");
    if (rc == 0)
        rc = ddp__cudnn_status(cudnnBackendFinalize(*d), "a stored plan");
    if (rc < 0 && *d) {
        cudnnBackendDestroyDescriptor(*d);
        *d = NULL;
    }
    return rc;
}

int ddp__cudnn_load(struct ddp__cudnn_plan *p, const char *text, size_t len)
{
    int rc = plan_from_text(&p->desc, p->target->prop, text, len);

    p->workspace = plan_workspace(p);
    p->loaded = rc == 0;
    return rc;
}

char *ddp__cudnn_save(const struct ddp__cudnn_plan *p, size_t *len)
{
    cudnnBackendAttributeName_t json =
        CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION;
    int64_t size = 0, got = 0;
    char *text;

    if (!p->desc ||
        cudnnBackendGetAttribute(p->desc, json, CUDNN_TYPE_CHAR, 0, &size,
                                 NULL) != CUDNN_STATUS_SUCCESS ||
        size < 1 || !(text = calloc(1, (size_t)size + 1)))
        return NULL;
    if (cudnnBackendGetAttribute(p->desc, json, CUDNN_TYPE_CHAR, size, &got,
                                 text) != CUDNN_STATUS_SUCCESS) {
        free(text);
        return NULL;
    }
    *len = strnlen(text, (size_t)size);
    return text;
}

static void copy_plan(struct ddp__cudnn_plan *p,
                      const struct ddp__cuda_worker *w)
{
    ddp__cudnn_desc device = p->target->prop;
    size_t len = 0;
    char *text;

    if (w->device != p->target->device)
        device = ddp__cudnn_target_other(p->target, w->device);
    pthread_mutex_lock(&p->lock);
    text = ddp__cudnn_save(p, &len);
    if (!text || !device ||
        plan_from_text(&p->copy[w->number], device, text, len) < 0)
        p->shared = true; /* the original may do */
    pthread_mutex_unlock(&p->lock);
    free(text);
}

ddp__cudnn_desc ddp__cudnn_plan_for(struct ddp__cudnn_plan *p,
                                    const struct ddp__cuda_worker *w)
{
    bool original = w->number == 0 && w->device == p->target->device;

    if (original || !p->desc)
        return p->desc;
    if (!p->copy[w->number] && !p->shared)
        copy_plan(p, w);
    return p->copy[w->number] ? p->copy[w->number] : p->desc;
}

/* ---- running ------------------------------------------------------------ */

static cudnnStatus_t pack_set(ddp__cudnn_desc pack,
                              cudnnBackendAttributeName_t name,
                              cudnnBackendAttributeType_t type, int64_t count,
                              const void *value, cudnnStatus_t before)
{
    return before == CUDNN_STATUS_SUCCESS
               ? cudnnBackendSetAttribute(pack, name, type, count, value)
               : before;
}

/* A pack of n pointers, which is the caller's to destroy, also after a failure
 * unless it is NULL. */
static int pack_new(ddp__cudnn_desc *d, int64_t n, const int64_t *uid,
                    const void *const *at, void *space)
{
    cudnnStatus_t e =
        cudnnBackendCreateDescriptor(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, d);

    e = pack_set(*d, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, n,
                 uid, e);
    e = pack_set(*d, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR,
                 n, at, e);
    e = pack_set(*d, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1,
                 &space, e);
    if (e == CUDNN_STATUS_SUCCESS)
        e = cudnnBackendFinalize(*d);
    return ddp__cudnn_status(e, "pointers");
}

/* The pointers as cuDNN takes them. */
static int pack_pointers(const struct ddp__cudnn_graph *g,
                         const void *const *ptr, void *space,
                         ddp__cudnn_desc *out)
{
    int64_t uid[DDP__CUDNN_MAX_TENSORS];
    const void *at[DDP__CUDNN_MAX_TENSORS];
    int n = 0;

    for (int i = 0; i < DDP__CUDNN_MAX_TENSORS; i++) {
        if (!g->tensor[i].desc || g->tensor[i].kind == DDP__CUDNN_VIRTUAL)
            continue;
        if (!ptr[i])
            return ddp__fail(
                DDP_EINVAL, "cuDNN: no pointer for tensor %d of %s", i, g->key);
        uid[n] = i;
        at[n++] = ptr[i];
    }
    return pack_new(out, n, uid, at, space);
}

static int execute_plan(struct ddp__cudnn_plan *p, struct ddp__cuda_worker *w,
                        ddp__cudnn_desc pack)
{
    ddp__cudnn_desc d = ddp__cudnn_plan_for(p, w);
    bool shared = p->shared;
    cudnnStatus_t e;

    if (shared)
        pthread_mutex_lock(&p->lock);
    e = cudnnBackendExecute(w->dnn, d, pack);
    if (shared)
        pthread_mutex_unlock(&p->lock);
    return ddp__cudnn_check(e, p->key);
}

int ddp__cudnn_run(struct ddp__cudnn_plan *p, struct ddp__cuda_worker *w,
                   const void *const *ptr, void *workspace)
{
    ddp__cudnn_desc pack = NULL;
    int rc;

    if (!p->desc)
        return ddp__fail(DDP_ENODEV, "a plan for a device that is not there");
    if ((rc = pack_pointers(p->graph, ptr, workspace, &pack)) == 0)
        rc = execute_plan(p, w, pack);
    if (pack)
        cudnnBackendDestroyDescriptor(pack);
    return rc;
}
