/* A measurement is a line on stdout: what, value, unit and the goal, between tabs. scripts/bench makes the table. */
#ifndef COLLOC_TESTS_BENCH_H
#define COLLOC_TESTS_BENCH_H

#include <stdio.h>
#include <time.h>

static inline double bench_now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

/* `goal` is in words, as "under 1 ms"; "" when there is none. */
static inline void bench_row(const char *what, double value, const char *unit, const char *goal)
{
    printf("%s\t%.3g\t%s\t%s\n", what, value, unit, goal);
    fflush(stdout);
}

#endif
