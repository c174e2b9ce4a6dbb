/* measure.c - what both benchmarks report
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"
#include <stdlib.h>
#include <sys/resource.h>

#include "common/cores.h"
#include "measure.h"

static int compare_times(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

double bench_median(double *v, int64_t n)
{
    if (n < 1)
        return 0;
    qsort(v, (size_t)n, sizeof(*v), compare_times);
    return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

int bench_workers(int64_t wanted)
{
    const char *env = getenv("STARPU_NCPU");
    int n = env ? atoi(env) : 0;

    return n > 0 ? n : wanted ? (int)wanted : app_cores();
}

double bench_peak_rss_mib(void)
{
    struct rusage u;

    if (getrusage(RUSAGE_SELF, &u) < 0)
        return 0;
    return (double)u.ru_maxrss / 1024; /* Linux counts KiB */
}
