/* SPDX-License-Identifier: Apache-2.0 */
/* Texts of divisions: which compute instance is in which GPU instance, and bad input. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "sharing/mig_division.h"

static struct gpu_kinds kinds;
static const struct gpu_kind *a100;
static struct mig_division division;

static int init_kinds(void **state)
{
    int r = gpu_kinds_init(&kinds, NULL);
    a100 = gpu_kinds_find(&kinds, span_of("A100-40GB"));
    return r;
}

static void parse(const char *text)
{
    assert_int_equal(mig_division_parse(a100, span_of(text), NULL, &division), 0);
}

static void assert_compute(int i, int instance, const char *profile, int slices)
{
    assert_true(i < division.n_computes);
    assert_int_equal(division.computes[i].instance, instance);
    assert_string_equal(a100->profiles[division.profiles[instance]].name, profile);
    assert_int_equal(division.computes[i].slices, slices);
}

static void a_gpu_instance_has_one_compute_instance(void **state)
{
    parse("3g.20gb+3g.20gb");
    assert_int_equal(division.n_instances, 2);
    assert_int_equal(division.n_computes, 2);
    assert_compute(0, 0, "3g.20gb", 3);
    assert_compute(1, 1, "3g.20gb", 3);
    parse("");
    assert_int_equal(division.n_computes, 0);
}

static void compute_instances_fill_a_gpu_instance(void **state)
{
    parse("1c.3g.20gb+1g.5gb+2c.3g.20gb+1c.3g.20gb");
    assert_int_equal(division.n_instances, 3);
    assert_compute(0, 0, "3g.20gb", 1);
    assert_compute(1, 1, "1g.5gb", 1);
    assert_compute(2, 0, "3g.20gb", 2);
    assert_compute(3, 2, "3g.20gb", 1); /* the first is full */
    parse("2c.3g.20gb+2c.3g.20gb+1c.3g.20gb+1c.3g.20gb");
    assert_int_equal(division.n_instances, 2);
    assert_compute(2, 0, "3g.20gb", 1);
    assert_compute(3, 1, "3g.20gb", 1);
}

/* A GPU instance that was not begun by a compute instance has all its slices in one. */
static void a_whole_gpu_instance_is_not_joined(void **state)
{
    parse("3g.20gb+1c.3g.20gb");
    assert_int_equal(division.n_instances, 2);
    parse("3c.3g.20gb");
    assert_compute(0, 0, "3g.20gb", 3);
}

static void two_pluses_begin_another_gpu_instance(void **state)
{
    parse("1c.3g.20gb++2c.3g.20gb");
    assert_int_equal(division.n_instances, 2);
    assert_compute(1, 1, "3g.20gb", 2);
    parse("1c.3g.20gb++1c.3g.20gb+1c.3g.20gb");
    assert_int_equal(division.n_instances, 2);
    assert_compute(2, 1, "3g.20gb", 1);
    parse("2g.10gb++1g.5gb");
    assert_int_equal(division.n_instances, 2);
}

static void names_are_those_of_nvidia_smi(void **state)
{
    char name[MIG_COMPUTE_NAME_SIZE];
    const struct mig_profile *profile =
        &a100->profiles[gpu_kind_find_profile(a100, span_of("3g.20gb"))];
    assert_string_equal(mig_compute_name(profile, 2, name), "2c.3g.20gb");
    assert_string_equal(mig_compute_name(profile, 3, name), "3g.20gb");
    assert_float_equal(mig_compute_part(profile, 2), 2.0 / 3, 1e-9);
}

static void what_cannot_be_is_refused(void **state)
{
    static const struct {
        const char *text, *why;
    } wrong[] = {
        {"9g.5gb", "A100-40GB has no MIG profile \"9g.5gb\""},
        {"1g.5gb++", "no MIG profile \"\""},
        {"1g.5gb+++1g.5gb", "no MIG profile \"\""},
        {"1c.", "no MIG profile \"1c.\""},
        {"c.3g.20gb", "no MIG profile"},
        {"0c.3g.20gb", "no MIG profile \"0c.3g.20gb\""},
        {"-1c.3g.20gb", "no MIG profile"},
        {"1c1c.3g.20gb", "no MIG profile"},
        {"1c.1c.3g.20gb", "no MIG profile \"1c.1c.3g.20gb\""},
        {"3g.20gb+", "no MIG profile \"\""},
        {"+", "no MIG profile \"\""},
        {"4c.3g.20gb", "4c.3g.20gb: a GPU instance 3g.20gb has 3 slices of compute"},
        {"5c.7g.40gb", "5c.7g.40gb: there are no compute instances of 5 slices"},
        {"1g.5gb+1g.5gb+1g.5gb+1g.5gb+1g.5gb+1g.5gb+1g.5gb+1g.5gb", "more than 7 MIG instances"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct fault fault;
        assert_int_equal(
            mig_division_parse(a100, span_of(wrong[i].text), &fault, &division), -EINVAL);
        assert_non_null(strstr(fault.text, wrong[i].why));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_gpu_instance_has_one_compute_instance),
        cmocka_unit_test(compute_instances_fill_a_gpu_instance),
        cmocka_unit_test(a_whole_gpu_instance_is_not_joined),
        cmocka_unit_test(two_pluses_begin_another_gpu_instance),
        cmocka_unit_test(names_are_those_of_nvidia_smi),
        cmocka_unit_test(what_cannot_be_is_refused),
    };
    return cmocka_run_group_tests(tests, init_kinds, NULL);
}
