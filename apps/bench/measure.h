/* measure.h - what both benchmarks report
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include <stdint.h>

/* The median; sorts v.  0 of nothing. */
double bench_median(double *v, int64_t n);

/* CPU workers that a benchmark has: STARPU_NCPU, else `wanted`, or where that
 * is 0 one per core. */
int bench_workers(int64_t wanted);

/* Largest memory this process has had. */
double bench_peak_rss_mib(void);

#endif
