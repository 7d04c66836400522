/* SPDX-License-Identifier: Apache-2.0 */
/* Which jobs make the trace, and why the others do not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "base/clock.h"
#include "trace/select.h"

static const struct selection all = {.sample = 1, .arrival_scale = 1};

/* Jobs at 100, 50, 200, 50 and 300 s, of 1 to 5 GPUs. */
static struct job_list some_jobs(void)
{
    const int64_t times[] = {100, 50, 200, 50, 300};
    struct job_list list = {0};
    for (int i = 0; i < 5; i++)
        assert_int_equal(job_list_add(&list, &(struct log_job){.submit_us = times[i] * SECOND_US,
                                                 .length_us = SECOND_US,
                                                 .gpus = i + 1}),
            0);
    return list;
}

/* Times and GPUs of what is selected, as "0/2 0/4 50/1". */
static const char *select_from(const struct selection *selection, struct job_counts *counts)
{
    static char text[200];
    struct job_list list = some_jobs();
    int used = 0;
    *counts = (struct job_counts){0};
    assert_int_equal(jobs_select(&list, selection, counts), 0);
    text[0] = '\0';
    for (size_t i = 0; i < list.n; i++)
        used += snprintf(text + used, sizeof text - (size_t)used, "%s%g/%d", i ? " " : "",
            (double)list.jobs[i].submit_us / 1e6, list.jobs[i].gpus);
    job_list_fini(&list);
    return text;
}

static void test_in_order_from_the_first_on(void **state)
{
    struct job_counts counts;
    assert_string_equal(select_from(&all, &counts), "0/2 0/4 50/1 150/3 250/5");
    for (int i = 0; i < LEFT_OUT_REASONS; i++)
        assert_int_equal(counts.left_out[i], 0);
}

static void test_window(void **state)
{
    struct job_counts counts;
    struct selection selection = all;
    selection.from_us = 50 * SECOND_US; /* after the first submission */
    selection.window_us = 200 * SECOND_US;
    assert_string_equal(select_from(&selection, &counts), "0/1 100/3");
    assert_int_equal(counts.left_out[LEFT_OUT_OUTSIDE_WINDOW], 3);
    selection.from_is_date = true;
    assert_string_equal(select_from(&selection, &counts), "0/2 0/4 50/1 150/3");
}

static void test_server(void **state)
{
    struct job_counts counts;
    struct selection selection = all;
    selection.gpus_max = 2;
    assert_string_equal(select_from(&selection, &counts), "0/2 50/1");
    assert_int_equal(counts.left_out[LEFT_OUT_TOO_LARGE], 3);
}

static void test_limit_and_scale(void **state)
{
    struct job_counts counts;
    struct selection selection = all;
    selection.jobs_max = 4;
    selection.arrival_scale = 0.5;
    assert_string_equal(select_from(&selection, &counts), "0/2 0/4 25/1 75/3");
    assert_int_equal(counts.left_out[LEFT_OUT_BEYOND_LIMIT], 1);
}

static void test_sample(void **state)
{
    struct job_counts counts;
    struct selection selection = all;
    struct job_list list = {0};
    for (int i = 0; i < 10000; i++)
        assert_int_equal(
            job_list_add(&list, &(struct log_job){.submit_us = i, .length_us = 1, .gpus = 1}), 0);
    counts = (struct job_counts){0};
    selection.sample = 0.3;
    assert_int_equal(jobs_select(&list, &selection, &counts), 0);
    assert_in_range(list.n, 2800, 3200);
    assert_int_equal(list.n + (size_t)counts.left_out[LEFT_OUT_NOT_SAMPLED], 10000);
    selection.sample = 0;
    assert_int_equal(jobs_select(&list, &selection, &counts), 0);
    assert_int_equal(list.n, 0);
    job_list_fini(&list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_in_order_from_the_first_on),
        cmocka_unit_test(test_window),
        cmocka_unit_test(test_server),
        cmocka_unit_test(test_limit_and_scale),
        cmocka_unit_test(test_sample),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
