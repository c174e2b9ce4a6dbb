/* measure.h - what both benchmarks report
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include <stdint.h>

/* The median; sorts v.  0 of nothing. */
double bench_median(double *v, int64_t n);

/* Largest memory this process has had. */
double bench_peak_rss_mib(void);

#endif
