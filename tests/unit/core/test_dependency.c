/* SPDX-License-Identifier: Apache-2.0 */
/* Dependencies: their text, any bytes of it; what each kind waits for; that there is no cycle. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/array.h"
#include "core/dependency.h"
#include "policy/policies.h"
#include "pretend_gpus.h"

static void texts_are_read(void **state)
{
    static const struct {
        const char *text, *read;
    } good[] = {
        {"ok:12", "ok:12"},
        {"ok:12,any:13,notok:1", "ok:12 any:13 notok:1"},
        {"any:12:13:14", "any:12 any:13 any:14"},
        {"afterok:12:13,afterany:7,afternotok:9223372036854775807",
            "ok:12 ok:13 any:7 notok:9223372036854775807"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
        struct dependency list[DEPENDENCIES_MAX];
        struct fault fault = {0};
        char text[64], all[256] = "";
        int n = dependency_parse(good[i].text, &fault, list);
        assert_true(n > 0);
        for (int k = 0; k < n; k++) {
            strcat(all, k ? " " : "");
            strcat(all, dependency_format(&list[k], text, sizeof text));
        }
        assert_string_equal(all, good[i].read);
    }
}

static void others_are_refused(void **state)
{
    static const char *const bad[] = {"", "ok", "ok:", ":12", "12", "ok:x", "ok:0", "ok:-1",
        "ok:12,", ",ok:12", "ok:12,,any:13", "ok:12:", "after:12", "OK:12", "ok: 12", "ok:12 ",
        "singleton", "ok:9223372036854775808", "ok:99999999999999999999999999999999", "ok:1?any:2",
        "okay:1", "\xff:1"};
    struct dependency list[DEPENDENCIES_MAX];
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct fault fault = {0};
        if (dependency_parse(bad[i], &fault, list) != -EINVAL)
            fail_msg("'%s' was read", bad[i]);
        assert_non_null(strstr(fault.text, "after"));
    }
}

static void their_number_is_limited(void **state)
{
    struct dependency list[DEPENDENCIES_MAX];
    struct fault fault = {0};
    char text[1024] = "ok";
    for (int i = 0; i < DEPENDENCIES_MAX; i++)
        strcat(text, ":7");
    assert_int_equal(dependency_parse(text, &fault, list), DEPENDENCIES_MAX);
    strcat(text, ",any:8");
    assert_int_equal(dependency_parse(text, &fault, list), -EINVAL);
    assert_non_null(strstr(fault.text, "64"));
}

static void each_kind_has_its_answer(void **state)
{
    static const struct {
        int live, failed;
        enum dependency_answer ok, any, not_ok;
    } cases[] = {
        {1, 0, DEPENDENCY_WAITS, DEPENDENCY_WAITS, DEPENDENCY_WAITS},
        {1, 1, DEPENDENCY_NEVER, DEPENDENCY_WAITS, DEPENDENCY_HOLDS},
        {0, 0, DEPENDENCY_HOLDS, DEPENDENCY_HOLDS, DEPENDENCY_NEVER},
        {0, 1, DEPENDENCY_NEVER, DEPENDENCY_HOLDS, DEPENDENCY_HOLDS},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        int live = cases[i].live, failed = cases[i].failed;
        assert_int_equal(dependency_judge(DEPENDENCY_OK, live, failed), cases[i].ok);
        assert_int_equal(dependency_judge(DEPENDENCY_ANY, live, failed), cases[i].any);
        assert_int_equal(dependency_judge(DEPENDENCY_NOT_OK, live, failed), cases[i].not_ok);
    }
}

static int submit_after(struct core *core, uint64_t task, struct dependency dependency)
{
    const struct task_request request = {.gpus = 1, .after = &dependency, .n_after = 1};
    return world_submit(core, 1, task, request);
}

static void a_cycle_cannot_be_submitted(void **state)
{
    struct core *core = world_core(&policy_magm, 1);
    assert_int_equal(submit_after(core, 1, (struct dependency){DEPENDENCY_OK, 1, 1}), CORE_NOT_NOW);
    assert_int_equal(submit_after(core, 1, (struct dependency){DEPENDENCY_OK, 2, 2}), CORE_NOT_NOW);
    assert_int_equal(submit_after(core, 5, (struct dependency){DEPENDENCY_OK, 3, 5}), CORE_NOT_NOW);
    assert_int_equal(submit_after(core, 5, (struct dependency){DEPENDENCY_OK, 4, 3}), CORE_NOT_NOW);
    assert_int_equal(submit_after(core, 5, (struct dependency){DEPENDENCY_OK, 0, 3}), CORE_NOT_NOW);
    assert_null(core_task(core, 1));
    core_destroy(core);
}

/* A long chain breaks in one step, and without a deep stack. */
static void a_chain_ends_in_one_step(void **state)
{
    enum { CHAIN = 20000 };
    struct core *core = world_core(&policy_magm, 1);
    assert_int_equal(world_submit(core, 1, 1, (struct task_request){.gpus = 1, .begin_us = 99}), 0);
    for (uint64_t id = 2; id <= CHAIN; id++)
        assert_int_equal(
            submit_after(core, id, (struct dependency){DEPENDENCY_OK, id - 1, id - 1}), 0);
    assert_int_equal(world_input(core, 2, EVENT_CANCEL, 1), 0);
    for (uint64_t id = 1; id <= CHAIN; id++)
        assert_int_equal(world_state(core, id), TASK_CANCELLED);
    assert_int_equal(core_task(core, CHAIN)->broken.by, CHAIN - 1);
    core_destroy(core);
}

/* The driver knows how tasks ended that the core has forgotten. */
static void the_driver_settles_what_the_core_forgot(void **state)
{
    struct core *core = world_core(&policy_magm, 1);
    const struct dependency on_3 = {DEPENDENCY_OK, 3, 3};
    struct event event = {.kind = EVENT_DEPENDENCY, .time_us = 2, .task = 7};
    assert_int_equal(submit_after(core, 7, on_3), 0);
    assert_int_equal(submit_after(core, 8, on_3), 0);
    assert_int_equal(world_state(core, 7), TASK_BLOCKED);
    event.dependency = (struct dependency_end){on_3, true, 3};
    assert_int_equal(core_step(core, &event), 0);
    assert_int_equal(world_state(core, 7), TASK_QUEUED);
    assert_int_equal(core_step(core, &event), CORE_NOT_NOW);
    event.task = 8;
    event.dependency.holds = false;
    assert_int_equal(core_step(core, &event), 0);
    assert_int_equal(world_state(core, 8), TASK_CANCELLED);
    world_check(core);
    core_destroy(core);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_are_read),
        cmocka_unit_test(others_are_refused),
        cmocka_unit_test(their_number_is_limited),
        cmocka_unit_test(each_kind_has_its_answer),
        cmocka_unit_test(a_cycle_cannot_be_submitted),
        cmocka_unit_test(a_chain_ends_in_one_step),
        cmocka_unit_test(the_driver_settles_what_the_core_forgot),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
