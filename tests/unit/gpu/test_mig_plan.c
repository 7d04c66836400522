/* SPDX-License-Identifier: Apache-2.0 */
/* Instances on a GPU with the placements of an A100. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/array.h"
#include "base/units.h"
#include "gpu/mig_plan.h"

static const struct mig_profile profiles[] = {
    {.id = 19,
        .name = "1g.5gb",
        .slices = 1,
        .mem_bytes = 5 * GIB,
        .n_placements = 7,
        .placements = {{0, 1}, {1, 1}, {2, 1}, {3, 1}, {4, 1}, {5, 1}, {6, 1}}},
    {.id = 15,
        .name = "1g.10gb",
        .slices = 1,
        .mem_bytes = 10 * GIB,
        .n_placements = 4,
        .placements = {{0, 2}, {2, 2}, {4, 2}, {6, 2}}},
    {.id = 14,
        .name = "2g.10gb",
        .slices = 2,
        .mem_bytes = 10 * GIB,
        .n_placements = 3,
        .placements = {{0, 2}, {2, 2}, {4, 2}}},
    {.id = 9,
        .name = "3g.20gb",
        .slices = 3,
        .mem_bytes = 20 * GIB,
        .n_placements = 2,
        .placements = {{0, 4}, {4, 4}}},
    {.id = 5,
        .name = "4g.20gb",
        .slices = 4,
        .mem_bytes = 20 * GIB,
        .n_placements = 1,
        .placements = {{0, 4}}},
    {.id = 0,
        .name = "7g.40gb",
        .slices = 7,
        .mem_bytes = 40 * GIB,
        .n_placements = 1,
        .placements = {{0, 8}}},
};

#define NAMES(...)                                                                                 \
    ((const char *const[]){__VA_ARGS__}),                                                          \
        sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *)

static int make(const char *const *names, size_t n, struct fault *fault, struct mig_plan *plan)
{
    return mig_plan_make(profiles, ARRAY_SIZE(profiles), names, n, fault, plan);
}

static void assert_lies(const struct mig_plan *plan, size_t i, const char *name, unsigned start)
{
    assert_true(i < plan->count);
    assert_string_equal(profiles[plan->instances[i].profile].name, name);
    assert_int_equal(plan->instances[i].at.start, start);
}

static void what_fits_only_one_way_round_is_found(void **state)
{
    struct mig_plan plan;
    assert_int_equal(make(NAMES("3g.20gb", "4g.20gb"), NULL, &plan), 0);
    assert_lies(&plan, 0, "4g.20gb", 0);
    assert_lies(&plan, 1, "3g.20gb", 4);
    assert_int_equal(make(NAMES("3g.20gb", "1g.5gb", "2g.10gb", "1g.5gb"), NULL, &plan), 0);
    assert_lies(&plan, 0, "2g.10gb", 0);
    assert_lies(&plan, 3, "3g.20gb", 4);
}

static void slices_name_the_smallest_profile(void **state)
{
    struct mig_plan plan;
    assert_int_equal(make(NAMES("1", "2g", "1g.10gb"), NULL, &plan), 0);
    assert_int_equal(plan.count, 3);
    assert_int_equal(make(NAMES("1"), NULL, &plan), 0);
    assert_lies(&plan, 0, "1g.5gb", 0);
}

static void no_instances_are_a_plan(void **state)
{
    struct mig_plan plan;
    assert_int_equal(make(NULL, 0, NULL, &plan), 0);
    assert_int_equal(plan.count, 0);
}

static void assert_computes(const struct mig_plan *plan, size_t i, const int *slices, size_t n)
{
    assert_int_equal(plan->instances[i].n_computes, n);
    for (size_t k = 0; k < n; k++)
        assert_int_equal(plan->instances[i].computes[k], slices[k]);
}
#define ASSERT_COMPUTES(plan, i, ...)                                                              \
    assert_computes(plan, i, (const int[]){__VA_ARGS__}, ARRAY_SIZE(((const int[]){__VA_ARGS__})))

static void compute_instances_fill_a_gpu_instance(void **state)
{
    struct mig_plan plan;
    assert_int_equal(make(NAMES("1g", "1c.3g.20gb", "2g", "2c.3g"), NULL, &plan), 0);
    assert_int_equal(plan.count, 3);
    assert_lies(&plan, 0, "3g.20gb", 0);
    ASSERT_COMPUTES(&plan, 0, 1, 2);
    ASSERT_COMPUTES(&plan, 1, 2);
    assert_int_equal(make(NAMES("1c.3", "2c.3", "1c.3", "1c.3"), NULL, &plan), 0);
    assert_int_equal(plan.count, 2);
    ASSERT_COMPUTES(&plan, 0, 1, 2);
    ASSERT_COMPUTES(&plan, 1, 1, 1);
    assert_int_equal(make(NAMES("3g", "1c.3g"), NULL, &plan), 0);
    assert_int_equal(plan.count, 2); /* a whole GPU instance has no slice left */
    assert_int_equal(make(NAMES("3c.3g"), NULL, &plan), 0);
    ASSERT_COMPUTES(&plan, 0, 3);
    assert_int_equal(
        make(NAMES("1c.7g", "1c.7g", "1c.7g", "1c.7g", "1c.7g", "1c.7g", "1c.7g"), NULL, &plan), 0);
    assert_int_equal(plan.count, 1);
    assert_int_equal(plan.instances[0].n_computes, 7);
}

static void names_are_those_of_nvidia_smi(void **state)
{
    char name[MIG_NAME_SIZE];
    assert_string_equal(mig_plan_name(&profiles[3], 1, name), "1c.3g.20gb");
    assert_string_equal(mig_plan_name(&profiles[3], 3, name), "3g.20gb");
}

static void a_compute_instance_that_cannot_be_is_said(void **state)
{
    static const struct {
        const char *name, *why;
    } wrong[] = {
        {"4c.3g.20gb", "4c.3g.20gb: a GPU instance 3g.20gb has 3 slices of compute"},
        {"5c.7g.40gb", "5c.7g.40gb: there are no compute instances of 5 slices"},
        {"1c.5g", "1c.5g: no MIG profile of this GPU; it has 1g.5gb"},
        {"0c.3g", "0c.3g: no MIG profile"},
        {"1c.", "1c.: no MIG profile"},
        {"1c", "1c: no MIG profile"},
        {"c.3g", "c.3g: no MIG profile"},
        {"11c.3g", "11c.3g: no MIG profile"},
        {"1c.1c.3g", "1c.1c.3g: no MIG profile"},
        {"-1c.3g", "-1c.3g: no MIG profile"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
        struct mig_plan plan;
        struct fault fault;
        assert_int_equal(make(&wrong[i].name, 1, &fault, &plan), -EINVAL);
        assert_non_null(strstr(fault.text, wrong[i].why));
    }
    struct mig_plan plan;
    struct fault fault;
    assert_int_equal(make(NAMES("2c.3g", "2c.3g", "2c.3g"), &fault, &plan), -EINVAL);
    assert_string_equal(fault.text, "these 3 instances do not fit on one GPU together");
}

static void what_cannot_be_is_said(void **state)
{
    struct mig_plan plan;
    struct fault fault;
    assert_int_equal(make(NAMES("4g.20gb", "4g.20gb"), &fault, &plan), -EINVAL);
    assert_string_equal(fault.text, "these 2 instances do not fit on one GPU together");
    static const char *const wrong[] = {
        "5g", "", "g", "3gb", "-1", "3g.20gbx", "99999999999999999999"};
    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
        assert_int_equal(make(&wrong[i], 1, &fault, &plan), -EINVAL);
        assert_non_null(strstr(fault.text, "1g.5gb, 1g.10gb, 2g.10gb, 3g.20gb, 4g.20gb, 7g.40gb"));
    }
    const char *many[17];
    for (size_t i = 0; i < 17; i++)
        many[i] = "1";
    assert_int_equal(make(many, 17, &fault, &plan), -EINVAL);
    assert_int_equal(make(many, 8, &fault, &plan), -EINVAL);
    assert_int_equal(make(many, 7, &fault, &plan), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_fits_only_one_way_round_is_found),
        cmocka_unit_test(slices_name_the_smallest_profile),
        cmocka_unit_test(no_instances_are_a_plan),
        cmocka_unit_test(compute_instances_fill_a_gpu_instance),
        cmocka_unit_test(names_are_those_of_nvidia_smi),
        cmocka_unit_test(a_compute_instance_that_cannot_be_is_said),
        cmocka_unit_test(what_cannot_be_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
