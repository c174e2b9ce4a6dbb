/* emulator.h - GPUs made of the processor, for tests where there are none
 *
 * A module that is preloaded takes the place of CUDA's libraries.  Memory of a
 * GPU is main memory full of NaN; a stream is a thread that does one thing
 * after another, so that what is not ordered by events or waits is not ordered
 * here either.  Kernels of our own run as their bodies do on a CPU; graphs of
 * cuDNN and products of cuBLASLt are computed the plain way.
 *
 * EMULATED_GPUS       how many there are [1]; those of libcuda.so are another
 *                     matter, see fake_cuda.c
 * EMULATED_DELAY_US   the longest that a stream dawdles before each thing [0]
 * EMULATED_LAUNCH_US  what the host takes to launch a kernel [0]
 * EMULATED_LATE_US    what StarPU takes to begin to send input [0]
 * EMULATED_LOST       launches of our own kernels after which GPU 1 starts none
 * EMULATED_GONE       "copy 40": after so many of these calls GPU 1 fails all
 *                     calls; copy, query (of events), wait, launch or malloc
 * EMULATED_CAPABILITY compute capabilities, times ten: that of GPU 0, of GPU 1,
 *                     ..., the last one is that of the rest [90]
 * EMULATED_REVERSED   whether cuDNN packs booleans from the highest bit down
 * EMULATED_NO_SUMS    whether cuDNN has no engine that adds a data gradient
 * EMULATED_AHEAD      whether threads that run kernels must find all plans made
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef EMULATOR_H
#define EMULATOR_H

#include <stdbool.h>
#include <stddef.h>

/* Have fn(arg) run when all before it on the stream is done; stream NULL: now.
 * arg is freed after that. */
void emulator_queue(void *stream, void (*fn)(void *arg), void *arg);

/* Memory for arg, filled with size bytes at `from`; ends the process if there
 * is none. */
void *emulator_copy(const void *from, size_t size);

/* The compute capability of a GPU, times ten. */
int emulator_capability(int gpu);

/* What was made for a GPU of this capability runs on the calling thread's. */
void emulator_made_for(int capability);

/* The host launches a kernel. */
void emulator_launch(void);

/* A plan is being made. */
void emulator_plans(void);

/* Whether a call fails because the GPU is gone, and with it all later ones;
 * call: its name in EMULATED_GONE, or "". */
bool emulator_gone(int gpu, const char *call);

/* The GPU of the calling thread. */
int emulator_current(void);

/* Wait for all streams of all GPUs. */
void emulator_settle(void);

/* A sentence on stderr, and abort(): what no test may do. */
void emulator_die(const char *fmt, ...)
    __attribute__((format(printf, 1, 2), noreturn));

#endif
