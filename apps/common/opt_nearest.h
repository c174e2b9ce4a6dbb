/* opt_nearest.h - the word that was probably meant
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef OPT_NEAREST_H
#define OPT_NEAREST_H

/* The word nearest to a misspelt one, or NULL when none is near.  next(arg, i)
 * gives the words. */
const char *opt_nearest(const char *word,
                        const char *(*next)(const void *arg, int i),
                        const void *arg);

#endif
