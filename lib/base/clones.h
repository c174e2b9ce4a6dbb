/* clones.h - loops compiled for several processors
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_CLONES_H
#define DDP_CLONES_H

#include <features.h>

#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) &&          \
    !defined(__clang__) && __GNUC__ >= 12 && !defined(__SANITIZE_THREAD__) &&  \
    !defined(__SANITIZE_ADDRESS__)
#define DDP__CLONES                                                            \
    __attribute__((                                                            \
        target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#define DDP__CLONED 1
#else
#define DDP__CLONES
#define DDP__CLONED 0
#endif

#endif
