/* SPDX-License-Identifier: Apache-2.0 */
/* What is wrong with a GPU, in words, and whether it is serious. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/array.h"
#include "base/clock.h"
#include "gpu/query_cost.h"
#include "gpu/trouble.h"
#include "gpu/xid.h"

#define NOW_US (1000 * SECOND_US)

static void assert_report(
    const struct trouble *trouble, int64_t now_us, bool is_serious, const char *words)
{
    struct gpu_sample sample = {.at_us = now_us};

    trouble_report(trouble, &sample);
    assert_int_equal(sample.trouble.is_serious, is_serious);
    if (*words)
        assert_non_null(strstr(sample.trouble.text, words));
    else
        assert_string_equal(sample.trouble.text, "");
}

static void test_nothing_is_wrong(void **state)
{
    assert_report(&(struct trouble){0}, NOW_US, false, "");
}

static void test_an_xid_that_condemns_the_gpu_stays(void **state)
{
    struct trouble trouble = {0};

    trouble_add_xid(&trouble, 79, NOW_US);
    trouble_add_xid(&trouble, 31, NOW_US + SECOND_US);
    assert_report(&trouble, NOW_US, true, "Xid 79 (GPU has fallen off the bus)");
    assert_report(&trouble, NOW_US + DAY_US, true, "Xid 79");
}

static void test_a_programs_xid_is_told_for_a_while(void **state)
{
    struct trouble trouble = {0};

    trouble_add_xid(&trouble, 31, NOW_US);
    assert_report(&trouble, NOW_US + SECOND_US, false,
        "Xid 31 (memory page fault), as faulty programs cause it");
    assert_report(&trouble, NOW_US + 601 * SECOND_US, false, "");
    trouble_add_xid(&trouble, 9999, NOW_US);
    assert_report(&trouble, NOW_US + SECOND_US, false, "Xid 9999");
}

static void test_memory(void **state)
{
    assert_report(
        &(struct trouble){.ecc_uncorrected = 1}, NOW_US, true, "1 uncorrectable ECC error since");
    assert_report(
        &(struct trouble){.ecc_uncorrected = 3}, NOW_US, true, "3 uncorrectable ECC errors since");
    assert_report(&(struct trouble){.remap_pending = true}, NOW_US, true, "reset it");
    assert_report(
        &(struct trouble){.remap_failed = true, .ecc_uncorrected = 3}, NOW_US, true, "replace it");
}

static int result_of_questions;

static int ask_ecc(nvml_device card, int kind, int since, unsigned long long *ret_count)
{
    *ret_count = 2;
    return result_of_questions;
}

static int ask_rows(nvml_device card, unsigned *corrected, unsigned *uncorrected, unsigned *pending,
    unsigned *failed)
{
    *corrected = *uncorrected = *failed = 0;
    *pending = 1;
    return result_of_questions;
}

static void test_no_answer_is_no_cure(void **state)
{
    const struct nvml nvml = {.ecc_errors = ask_ecc, .remapped_rows = ask_rows};
    struct trouble trouble = {0};

    result_of_questions = NVML_NOT_SUPPORTED;
    trouble_update(&trouble, &nvml, NULL, NOW_US);
    assert_report(&trouble, NOW_US, false, "");
    result_of_questions = NVML_OK;
    trouble_update(&trouble, &nvml, NULL, NOW_US + HOUR_US);
    result_of_questions = NVML_UNKNOWN;
    trouble_update(&trouble, &nvml, NULL, NOW_US + 7200 * SECOND_US);
    assert_report(&trouble, NOW_US + 7200 * SECOND_US, true, "2 uncorrectable ECC errors since");
    assert_true(trouble.remap_pending);
}

static void test_clocks_held_down_only_count_when_it_lasts(void **state)
{
    struct trouble trouble = {.held_down = NVML_HELD_DOWN_HARDWARE | NVML_HELD_DOWN_HARDWARE_HEAT,
        .held_down_since_us = NOW_US};

    assert_report(&trouble, NOW_US + SECOND_US, false, "");
    assert_report(&trouble, NOW_US + 4 * SECOND_US, true, "throttled by heat");
}

static void test_blame(void **state)
{
    static const unsigned of_gpu[] = {48, 62, 64, 79, 95, 119}, of_programs[] = {13, 31, 43, 45},
                          to_watch[] = {63, 74, 94, 12345};

    for (size_t i = 0; i < ARRAY_SIZE(of_gpu); i++)
        assert_int_equal(xid_find(of_gpu[i]).blame, XID_OF_GPU);
    for (size_t i = 0; i < ARRAY_SIZE(of_programs); i++)
        assert_int_equal(xid_find(of_programs[i]).blame, XID_OF_APPLICATION);
    for (size_t i = 0; i < ARRAY_SIZE(to_watch); i++)
        assert_int_equal(xid_find(to_watch[i]).blame, XID_TO_WATCH);
}

static void test_dear_questions_rest_long(void **state)
{
    assert_int_equal(query_cost_pause_us(3000, SECOND_US), 30 * SECOND_US);
    assert_int_equal(query_cost_pause_us(5, SECOND_US), SECOND_US);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_is_wrong),
        cmocka_unit_test(test_an_xid_that_condemns_the_gpu_stays),
        cmocka_unit_test(test_a_programs_xid_is_told_for_a_while),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_no_answer_is_no_cure),
        cmocka_unit_test(test_clocks_held_down_only_count_when_it_lasts),
        cmocka_unit_test(test_blame),
        cmocka_unit_test(test_dear_questions_rest_long),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
