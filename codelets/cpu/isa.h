/* isa.h - which instructions the processor has
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The functions name groups of instructions that came together, so that kernels
 * need not list what each of them uses.  False: the processor lacks one of the
 * group, or libddp was compiled for another kind of processor.
 */
#ifndef DDP_CPU_ISA_H
#define DDP_CPU_ISA_H

#include <stdbool.h>

#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__) &&          \
    (defined(__clang__) || __GNUC__ >= 11)
#define DDP__AMX 1
#endif

/* A function made of vectors or tiles.  Nothing calls it where the processor
 * has none of these, so that builds for other processors do without it. */
#if defined(__x86_64__) && defined(__GNUC__)
#define DDP__X86_ONLY
#else
#define DDP__X86_ONLY __attribute__((weak))
#endif
#ifdef DDP__AMX
#define DDP__AMX_ONLY
#else
#define DDP__AMX_ONLY __attribute__((weak))
#endif

/* AVX2 with FMA: Intel's since Haswell, AMD's since Zen. */
bool ddp__avx2_here(void);

/* AVX-512 F, BW, DQ and VL with FMA: Intel's servers since Skylake, AMD's since
 * Zen 4. */
bool ddp__avx512_here(void);

/* These, and AVX512_VNNI: Intel's servers since Cascade Lake, AMD's since
 * Zen 4.
 */
bool ddp__avx512_vnni_here(void);

/* AVX-512 as above, and AVX512_BF16: Intel's since Cooper Lake, AMD's since
 * Zen 4. */
bool ddp__avx512_bf16_here(void);

/* Whether this process may use tiles of a processor that has them: Intel's
 * since Sapphire Rapids, unless oneDNN's limit of instructions excludes them.
 * Kernels that were measured there alone ask, too. */
bool ddp__amx_here(void);

#endif
