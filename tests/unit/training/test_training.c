/* SPDX-License-Identifier: Apache-2.0 */
/* Precisions and optimizers: names, aliases, and what is none of them. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "training/optimizer.h"
#include "training/parallel.h"
#include "training/precision.h"

static enum precision precision_of(const char *text)
{
    enum precision precision;
    assert_int_equal(precision_parse("precision", text, NULL, &precision), 0);
    return precision;
}

static void test_every_precision_has_its_name(void **state)
{
    for (enum precision p = PRECISION_NOT_GIVEN; p < PRECISIONS; p++)
        assert_int_equal(precision_of(precision_name(p)), p);
    assert_int_equal(precision_of(NULL), PRECISION_NOT_GIVEN);
    assert_int_equal(precision_of("BFloat16"), PRECISION_BF16);
    assert_int_equal(precision_of("half"), PRECISION_FP16);
    assert_string_equal(precision_canonical("float32"), "fp32");
    assert_null(precision_canonical("fp31"));
    assert_null(precision_names[PRECISIONS - 1]);
}

static void test_what_is_no_precision_is_an_error_with_the_list(void **state)
{
    struct fault fault;
    enum precision precision;
    assert_int_equal(precision_parse("precision", "foo", &fault, &precision), -EINVAL);
    assert_string_equal(fault.text,
        "precision=foo: must be one of fp32, tf32, bf16, fp16, amp, fp8, bf16-true, fp16-true");
}

static void test_mixed_precisions_are_autocast_and_say_so(void **state)
{
    for (enum precision p = PRECISION_NOT_GIVEN; p < PRECISIONS; p++)
        assert_int_equal(precision_is_autocast(p), p >= PRECISION_BF16 && p <= PRECISION_FP8);
    for (enum precision p = PRECISION_NOT_GIVEN; p < PRECISIONS; p++)
        assert_int_equal(precision_has_half_weights(p), p >= PRECISION_BF16_TRUE);
    assert_non_null(strstr(precision_note(PRECISION_BF16), "weights in fp32"));
    assert_non_null(strstr(precision_note(PRECISION_FP8), "not known"));
    assert_null(precision_note(PRECISION_FP32));
}

static void test_every_optimizer_has_its_name(void **state)
{
    for (enum optimizer o = OPTIMIZER_NOT_GIVEN; o < OPTIMIZERS; o++)
        assert_int_equal(optimizer_parse(optimizer_name(o)), o);
    assert_int_equal(optimizer_parse("AdamW"), OPTIMIZER_ADAMW);
    assert_int_equal(optimizer_parse("sgdm"), OPTIMIZER_MOMENTUM);
    assert_int_equal(optimizer_parse("lion"), OPTIMIZER_OTHER);
    assert_int_equal(optimizer_parse(NULL), OPTIMIZER_NOT_GIVEN);
    assert_null(optimizer_names[OPTIMIZER_OTHER - 1]);
}

static void test_every_way_to_divide_has_its_name(void **state)
{
    for (enum parallel p = PARALLEL_NOT_GIVEN; p < PARALLELS; p++)
        assert_int_equal(parallel_parse(parallel_name(p)), p);
    assert_int_equal(parallel_parse("ZeRO3"), PARALLEL_FSDP);
    assert_string_equal(parallel_canonical("zero3"), "fsdp");
    assert_null(parallel_canonical("pipeline"));
    assert_int_equal(parallel_parse(NULL), PARALLEL_NOT_GIVEN);
}

static void test_how_many_divide_tensors_and_layers(void **state)
{
    static const char *const others[] = {
        "tp:1", "tp:", "pp:x", "pp:4x", "ddp:2", "tp:1000000", "tp4"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        assert_int_equal(parallel_parse(others[i]), PARALLEL_NOT_GIVEN);
        assert_null(parallel_canonical(others[i]));
    }
    assert_int_equal(parallel_parse("TP:4"), PARALLEL_TP);
    assert_int_equal(parallel_degree("pp:16"), 16);
    assert_int_equal(parallel_degree("pp"), 0);
    assert_int_equal(parallel_degree(NULL), 0);
    assert_string_equal(parallel_canonical("pp:16"), "pp:16");
    assert_int_equal(offload_parse("parameters"), OFFLOAD_PARAMETERS);
    assert_int_equal(offload_parse(NULL), OFFLOAD_NONE);
}

static void test_several_gpus_are_ddp_if_nothing_is_said(void **state)
{
    assert_int_equal(parallel_assumed(PARALLEL_NOT_GIVEN, 2), PARALLEL_DDP);
    assert_int_equal(parallel_assumed(PARALLEL_FSDP, 2), PARALLEL_FSDP);
    assert_int_equal(parallel_assumed(PARALLEL_FSDP, 1), PARALLEL_NONE);
    assert_false(parallel_traits(PARALLEL_NONE)->communicates);
}

static void test_adam_is_assumed(void **state)
{
    assert_int_equal(optimizer_assumed(OPTIMIZER_OTHER), OPTIMIZER_ADAM);
    assert_int_equal(optimizer_assumed(OPTIMIZER_SGD), OPTIMIZER_SGD);
    assert_int_equal(optimizer_traits(OPTIMIZER_NOT_GIVEN)->states, 2);
    assert_int_equal(optimizer_traits(OPTIMIZER_MOMENTUM)->states, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_precision_has_its_name),
        cmocka_unit_test(test_what_is_no_precision_is_an_error_with_the_list),
        cmocka_unit_test(test_mixed_precisions_are_autocast_and_say_so),
        cmocka_unit_test(test_every_optimizer_has_its_name),
        cmocka_unit_test(test_every_way_to_divide_has_its_name),
        cmocka_unit_test(test_how_many_divide_tensors_and_layers),
        cmocka_unit_test(test_several_gpus_are_ddp_if_nothing_is_said),
        cmocka_unit_test(test_adam_is_assumed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
