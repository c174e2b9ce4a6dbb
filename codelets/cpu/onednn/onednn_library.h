/* onednn_library.h - oneDNN itself: its engine, its streams, its threads
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_CPU_ONEDNN_LIBRARY_H
#define DDP_CPU_ONEDNN_LIBRARY_H

#include <stdbool.h>

#include <oneapi/dnnl/dnnl.h>

/* Primitives are made and run with one thread, between these calls: enter
 * returns what leave needs to restore the number of threads that the caller's
 * own OpenMP code uses. */
int ddp__dnn_enter(void);
void ddp__dnn_leave(int threads);

/* The engine, which lives as long as the process, once ddp__dnn_enter() has
 * been called; or why there is none. */
dnnl_status_t ddp__dnn_engine(dnnl_engine_t *out);

/* This thread's stream, which ends with it; or a negative code. */
int ddp__dnn_stream(dnnl_stream_t *out);

/* 0, or a negative code, with a message that names what failed. */
int ddp__dnn_check(dnnl_status_t st, const char *what);

/* Whether this processor, as oneDNN may use it, multiplies bf16. */
bool ddp__dnn_bf16(void);

/* Whether it has AMX tiles, as oneDNN may use it. */
bool ddp__dnn_amx(void);

/* "oneDNN 2.6.3" */
const char *ddp__dnn_version(void);

/* "AVX2": the instructions that oneDNN's primitives may use here. */
const char *ddp__dnn_isa(void);

#endif
