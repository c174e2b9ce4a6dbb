/* sanitized.h - whether the test was compiled for a sanitizer
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Sanitizers bring allocators of their own.  That for addresses makes a test
 * five to ten times as slow: one that repeats its work, to compare results, may
 * then do so less often, for it takes the same paths through the code.  That
 * for threads needs all of it.
 */
#ifndef SANITIZED_H
#define SANITIZED_H

#ifdef __SANITIZE_ADDRESS__
#define SANITIZED_ADDRESSES 1
#else
#define SANITIZED_ADDRESSES 0
#endif

#ifdef __SANITIZE_THREAD__
#define SANITIZED 1
#else
#define SANITIZED SANITIZED_ADDRESSES
#endif

#endif
