/* clones.h - loops over pixels, for the processor that runs them
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A file that includes this first has its loops vectorised, which -O2 hardly
 * does.  Products and sums of floats stay apart: fused ones have other bits,
 * and not all processors fuse them.
 */
#ifndef DDP_CLONES_H
#define DDP_CLONES_H

#if defined(__GNUC__) && !defined(__clang__) && defined(__OPTIMIZE__)
#pragma GCC optimize("O3", "fp-contract=off", "no-trapping-math")
#endif

/* A function that is compiled for several levels of x86-64; the best one is
 * picked when the program starts. */
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) &&          \
    !defined(__clang__) && !defined(__SANITIZE_THREAD__)
#define DDP__PIXEL_CLONES                                                      \
    __attribute__((                                                            \
        target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define DDP__PIXEL_CLONES
#endif

#endif
