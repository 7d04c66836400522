/* SPDX-License-Identifier: Apache-2.0 */
/* What is made up has the stated distributions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "trace/statistics.h"
#include "trace/synth.h"

enum { JOBS = 117325 };

static void make(const char *name, int gpus_max, uint64_t seed, struct job_list *ret_list)
{
    struct synth_request request = {synth_profile_find(name), JOBS, 75, gpus_max, seed};
    *ret_list = (struct job_list){0};
    assert_int_equal(synth_make(&request, ret_list), 0);
    assert_int_equal(ret_list->n, JOBS);
}

static struct job_statistics measure(const char *name, int gpus_max)
{
    struct job_list list;
    struct job_statistics statistics;
    make(name, gpus_max, 1, &list);
    for (size_t i = 1; i < list.n; i++)
        assert_true(list.jobs[i - 1].submit_us <= list.jobs[i].submit_us);
    assert_int_equal(job_statistics_make(&list, &statistics), 0);
    job_list_fini(&list);
    return statistics;
}

/* Of jobs, or of GPU time, of those with at least so many GPUs and at most so many. */
static double share(const struct job_statistics *statistics, int least, int most, bool of_time)
{
    double part = 0;
    for (size_t i = 0; i < statistics->n_sizes; i++)
        if (statistics->sizes[i].gpus >= least && statistics->sizes[i].gpus <= most)
            part += of_time ? statistics->sizes[i].gpu_s / statistics->gpu_s
                            : (double)statistics->sizes[i].jobs / (double)statistics->jobs;
    return part;
}

static void near(double value, double wanted, double tolerance)
{
    if (fabs(value - wanted) > tolerance)
        fail_msg("%g instead of %g", value, wanted);
}

static void test_helios(void **state)
{
    struct job_statistics statistics = measure("helios", 2490);
    near(share(&statistics, 1, 1, false), 0.525, 0.005);
    near(share(&statistics, 8, 8, false), 0.226, 0.005);
    near(share(&statistics, 9, 1000, false), 0.103, 0.005);
    near(statistics.under_ten_minutes, 0.5, 0.01);
    near(statistics.mean_length_s, 6652, 300);
    near(share(&statistics, 1, 1, true), 0.047, 0.01);
    near(share(&statistics, 8, 1000, true), 0.857, 0.02);
    near(statistics.span_s, 75 * 86400, 3600);
    job_statistics_fini(&statistics);
}

static void test_philly(void **state)
{
    struct job_statistics statistics = measure("philly", 0);
    near(share(&statistics, 1, 1, false), 0.70, 0.005);
    near(share(&statistics, 2, 2, false), 0.10, 0.005);
    near(share(&statistics, 4, 4, false), 0.15, 0.005);
    near(share(&statistics, 8, 8, false), 0.05, 0.005);
    near(statistics.under_ten_minutes, 0.5, 0.01);
    near(statistics.mean_length_s, 28329, 1500);
    job_statistics_fini(&statistics);
}

static void test_what_fits(void **state)
{
    struct job_statistics statistics = measure("helios", 4);
    near(share(&statistics, 1, 1, false), 0.525 / 0.671, 0.005);
    near(share(&statistics, 1, 4, false), 1, 0);
    near(synth_share(synth_profile_find("helios"), 4), 0.671, 1e-9);
    job_statistics_fini(&statistics);
}

static void test_nights_are_quiet(void **state)
{
    struct job_list list;
    size_t night = 0, day = 0;
    make("helios", 0, 1, &list);
    for (size_t i = 0; i < list.n; i++) {
        int64_t hour = list.jobs[i].submit_us / 3600000000 % 24;
        night += hour >= 2 && hour < 6;
        day += hour >= 14 && hour < 18;
    }
    near((double)day / (double)night, 2.8,
        0.15); /* 1 + 0.478 to 1 - 0.478: the mean of a cosine over four hours */
    job_list_fini(&list);
}

static void test_seeds(void **state)
{
    struct job_list a, b, c;
    make("helios", 0, 5, &a);
    make("helios", 0, 5, &b);
    make("helios", 0, 6, &c);
    assert_memory_equal(a.jobs, b.jobs, JOBS * sizeof *a.jobs);
    assert_memory_not_equal(a.jobs, c.jobs, JOBS * sizeof *a.jobs);
    job_list_fini(&a);
    job_list_fini(&b);
    job_list_fini(&c);
}

static void test_unknown(void **state)
{
    assert_null(synth_profile_find("venus"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_helios),
        cmocka_unit_test(test_philly),
        cmocka_unit_test(test_what_fits),
        cmocka_unit_test(test_nights_are_quiet),
        cmocka_unit_test(test_seeds),
        cmocka_unit_test(test_unknown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
