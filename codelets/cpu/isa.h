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

/* Kernels by AVX2 and AVX-512 are compiled: for x86-64, by a compiler that
 * takes a function's instructions from its target attribute.  Whether the
 * processor has them is asked when a program runs. */
#if defined(__x86_64__) && defined(__GNUC__)
#define DDP__X86 1
#endif

/* So are those by AMX tiles, for an operating system that allows them. */
#if defined(DDP__X86) && defined(__linux__) &&                                 \
    (defined(__clang__) || __GNUC__ >= 11)
#define DDP__AMX 1
#endif

/* A function made of vectors or tiles.  Nothing calls it where the processor
 * has none of these, so that builds for other processors do without it. */
#ifdef DDP__X86
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
 * Zen 4. */
bool ddp__avx512_vnni_here(void);

/* AVX-512 as above, and AVX512_BF16: Intel's since Cooper Lake, AMD's since
 * Zen 4. */
bool ddp__avx512_bf16_here(void);

/* Whether bf16 is best multiplied in 16-bit integers (product/i16_round.h): of
 * Intel's processors without AMX, or whose AMX is hidden, vdpbf16ps has half
 * the speed of products in f32, vpdpwssd twice that.  DDP_BF16_INTEGERS=1 says
 * so of any processor that has it, 0 of none. */
bool ddp__i16_here(void);

/* Whether this process may use tiles of a processor that has them: Intel's
 * since Sapphire Rapids, unless oneDNN's limit of instructions excludes them.
 * Kernels that were measured there alone ask, too. */
bool ddp__amx_here(void);

#endif
