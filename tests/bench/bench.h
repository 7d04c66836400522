/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the benchmarks share. A measured figure is a line on stdout, tabs between: what, unit,
 * target, median, p99. Each program is run several times; scripts/bench makes the table and says
 * what was reached.
 */
#ifndef COLLOC_TESTS_BENCH_H
#define COLLOC_TESTS_BENCH_H

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static inline double bench_now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

/* Time of this thread on a CPU: what is measured waits for nothing, and the machine may do more. */
static inline double bench_cpu_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static inline int bench_compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static inline void bench_sort(double *took, size_t n)
{
    qsort(took, n, sizeof *took, bench_compare);
}

/* Of sorted values. */
static inline double bench_quantile(const double *took, size_t n, double fraction)
{
    size_t i = (size_t)(fraction * (double)n);
    return took[i < n ? i : n - 1];
}

/* Sorts `took`. `target` is "median < 200" or "p99 < 1000"; "" when there is none. */
static inline void bench_row(
    const char *what, const char *unit, const char *target, double *took, size_t n)
{
    bench_sort(took, n);
    printf("%s\t%s\t%s\t%.4g\t%.4g\n", what, unit, target, bench_quantile(took, n, 0.5),
        bench_quantile(took, n, 0.99));
    fflush(stdout);
}

#endif
