/* image_cache.h - the option --cache: decoded images
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef IMAGE_CACHE_H
#define IMAGE_CACHE_H

#include "options.h"

/* Set the cache up; its exit code, or OPTS_GO. */
int image_cache_setup(const struct opts *o, const struct settings *s);

/* The share of reads that it answered, 0 to 1; below 0 without a cache. */
double image_cache_hits(void);

/* A line with what is in it, if there is one. */
void image_cache_report(void);

#endif
