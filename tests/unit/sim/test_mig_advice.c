/* SPDX-License-Identifier: Apache-2.0 */
/* Ways to divide a GPU by MIG, and which of them a queue of tasks is done with first. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/units.h"
#include "policy/policies.h"
#include "sharing/mig_division.h"
#include "sim/mig_advice.h"

static struct gpu_kinds kinds;

static int init_kinds(void **state)
{
    return gpu_kinds_init(&kinds, NULL);
}

static const struct gpu_kind *a100(void)
{
    return gpu_kinds_find(&kinds, span_of("A100-40GB"));
}

static const struct gpu_kind *a30(void)
{
    return gpu_kinds_find(&kinds, span_of("A30"));
}

static int count_of(const struct mig_layout *layouts, int n, const char *text)
{
    int count = 0;
    for (int i = 0; i < n; i++)
        count += strcmp(layouts[i].text, text) == 0;
    return count;
}

static void each_full_layout_is_listed_once(void **state)
{
    static struct mig_layout layouts[MIG_LAYOUTS_MAX];
    static const char *const present[] = {"7g.40gb", "4g.20gb+3g.20gb", "3g.20gb+3g.20gb",
        "4g.20gb+2g.10gb+1g.5gb", "3g.20gb+2g.10gb+1g.5gb+1g.5gb",
        "1g.5gb+1g.5gb+1g.5gb+1g.5gb+1g.5gb+1g.5gb+1g.5gb"};
    static const char *const absent[] = {"3g.20gb", "4g.20gb+4g.20gb",
        "3g.20gb+1g.5gb+1g.5gb+1g.5gb+1g.5gb+1g.5gb", "2g.10gb+2g.10gb+2g.10gb+2g.10gb"};
    int n = mig_layouts_list(a100(), layouts);
    assert_true(n < MIG_LAYOUTS_MAX);
    for (size_t i = 0; i < sizeof present / sizeof *present; i++)
        assert_int_equal(count_of(layouts, n, present[i]), 1);
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++)
        assert_int_equal(count_of(layouts, n, absent[i]), 0);
    assert_int_equal(mig_layouts_list(gpu_kinds_find(&kinds, span_of("T4")), layouts), 0);
}

static void an_a30_has_four_layouts(void **state)
{
    static struct mig_layout layouts[MIG_LAYOUTS_MAX];
    static const char *const all[] = {
        "4g.24gb", "2g.12gb+2g.12gb", "2g.12gb+1g.6gb+1g.6gb", "1g.6gb+1g.6gb+1g.6gb+1g.6gb"};
    int n = mig_layouts_list(a30(), layouts);
    assert_int_equal(n, 4);
    for (int i = 0; i < n; i++)
        assert_int_equal(count_of(layouts, n, all[i]), 1);
}

static struct sim_task task_of(double gib, double smact, double solo_s)
{
    static char name[] = "task";
    int64_t bytes = (int64_t)(gib * (double)GIB);
    return (struct sim_task){.name = name,
        .gpus = 1,
        .solo_s = solo_s,
        .memory_bytes = bytes,
        .need = {NEED_DECLARED, bytes},
        .demand = {.gract = NAN, .smact = smact, .smocc = NAN, .dram = NAN, .power_w = NAN}};
}

static struct mig_advice advise(
    const struct mig_advice_gpu *gpus, int n_gpus, struct sim_task *tasks, size_t n)
{
    const struct catalogue queue = {.tasks = tasks, .n = n};
    const struct mig_question question = {.kinds = &kinds,
        .gpus = gpus,
        .n_gpus = n_gpus,
        .queue = &queue,
        .policy = &policy_magm,
        .sharing = SHARING_STREAMS};
    struct mig_advice advice;
    assert_int_equal(mig_advise(&question, NULL, &advice), 0);
    return advice;
}

static void a_task_that_fits_nowhere_gets_an_instance(void **state)
{
    const struct mig_advice_gpu gpu = {
        .kind = a100(), .can_change = true, .now = {"2g.10gb+2g.10gb+2g.10gb+1g.5gb"}};
    struct sim_task tasks[] = {task_of(25, 0.5, 3600), task_of(3, 0.2, 3600)};
    struct mig_advice advice = advise(&gpu, 1, tasks, 2);
    assert_int_equal(advice.now.left_out, 1);
    assert_int_equal(advice.best.left_out, 0);
    assert_string_equal(advice.layouts[0].text, "7g.40gb");
    assert_true(advice.is_worth_it);
}

static void small_tasks_get_small_instances(void **state)
{
    const struct mig_advice_gpu gpu = {.kind = a100(), .can_change = true, .now = {"7g.40gb"}};
    struct sim_task tasks[7];
    for (int i = 0; i < 7; i++)
        tasks[i] = task_of(2, 0.12, 3600);
    struct mig_advice advice = advise(&gpu, 1, tasks, 7);
    assert_non_null(strchr(advice.layouts[0].text, '+'));
    assert_true(advice.best.total_s < 0.5 * advice.exclusive.total_s);
    assert_true(advice.is_worth_it);
    const struct mig_advice_gpu again = {
        .kind = a100(), .can_change = true, .now = advice.layouts[0]};
    advice = advise(&again, 1, tasks, 7);
    assert_false(advice.is_worth_it);
}

/* Eight small tasks and one that needs nearly a whole GPU. */
static void fill_with_small_and_large(struct sim_task tasks[9])
{
    for (int i = 0; i < 8; i++)
        tasks[i] = task_of(3, 0.12, 3600);
    tasks[8] = task_of(30, 0.9, 3600);
}

static void each_gpu_gets_its_own_layout(void **state)
{
    const struct mig_advice_gpu gpus[] = {{.kind = a100(), .can_change = true, .now = {"7g.40gb"}},
        {.kind = a100(), .can_change = true, .now = {"7g.40gb"}}};
    struct sim_task tasks[9];
    fill_with_small_and_large(tasks);
    struct mig_advice advice = advise(gpus, 2, tasks, 9);
    assert_int_equal(advice.best.left_out, 0);
    assert_string_not_equal(advice.layouts[0].text, advice.layouts[1].text);
}

static void each_kind_has_its_own_profiles(void **state)
{
    const struct mig_advice_gpu gpus[] = {{.kind = a30(), .can_change = true, .now = {"4g.24gb"}},
        {.kind = a100(), .can_change = true, .now = {"7g.40gb"}}};
    struct sim_task tasks[9];
    fill_with_small_and_large(tasks);
    struct mig_division division;
    struct mig_advice advice = advise(gpus, 2, tasks, 9);
    assert_int_equal(advice.best.left_out, 0);
    assert_non_null(strchr(advice.layouts[0].text, '+'));
    assert_int_equal(
        mig_division_parse(a30(), span_of(advice.layouts[0].text), NULL, &division), 0);
    assert_string_equal(advice.layouts[1].text, "7g.40gb");
}

static void a_gpu_that_may_not_change_stays(void **state)
{
    const struct mig_advice_gpu gpus[] = {{.kind = a100()}, {.kind = a100(), .can_change = true}};
    struct sim_task tasks[] = {task_of(4, 0.3, 3600), task_of(4, 0.3, 3600)};
    struct mig_advice advice = advise(gpus, 2, tasks, 2);
    assert_string_equal(advice.layouts[0].text, "");
    assert_string_not_equal(advice.layouts[1].text, "");
    assert_false(advice.now.is_known); /* a GPU without instances runs nothing */
    assert_true(advice.is_worth_it);
}

static void products_are_of_a_kind(void **state)
{
    const int64_t mib[] = {40960, 81920, 81559, 24000, 24576};
    static const char *const products[] = {"NVIDIA A100-SXM4-40GB", "NVIDIA A100 80GB PCIe",
        "NVIDIA H100 PCIe", "NVIDIA RTX A1000", "NVIDIA GeForce RTX 3090 Ti"};
    static const char *const names[] = {"A100-40GB", "A100-80GB", "H100", NULL, "RTX-3090"};
    for (int i = 0; i < 5; i++) {
        const struct gpu_kind *kind = gpu_kinds_find_product(&kinds, products[i], mib[i] * MIB);
        if (names[i])
            assert_string_equal(kind->name, names[i]);
        else
            assert_null(kind);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_full_layout_is_listed_once),
        cmocka_unit_test(an_a30_has_four_layouts),
        cmocka_unit_test(a_task_that_fits_nowhere_gets_an_instance),
        cmocka_unit_test(small_tasks_get_small_instances),
        cmocka_unit_test(each_gpu_gets_its_own_layout),
        cmocka_unit_test(each_kind_has_its_own_profiles),
        cmocka_unit_test(a_gpu_that_may_not_change_stays),
        cmocka_unit_test(products_are_of_a_kind),
    };
    return cmocka_run_group_tests(tests, init_kinds, NULL);
}
