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

static void add_term(char *text, const struct dependency_term *term)
{
    size_t used = strlen(text);
    used += (size_t)sprintf(text + used, "%s%s:%llu", used ? " " : "",
        term->each ? "each" : dependency_kind_name((int)term->kind), (unsigned long long)term->id);
    if (term->index >= 0)
        sprintf(text + used, "_%d", term->index);
}

static void texts_are_read(void **state)
{
    static const struct {
        const char *text, *read;
    } good[] = {
        {"ok:12", "ok:12"},
        {"ok:12,any:13,notok:1", "ok:12 any:13 notok:1"},
        {"any:12:13:14", "any:12 any:13 any:14"},
        {"ok:12_7:12_0,each:12", "ok:12_7 ok:12_0 each:12"},
        {"afterok:12:13,afterany:7_2147483647,afternotok:9223372036854775807,aftercorr:3",
            "ok:12 ok:13 any:7_2147483647 notok:9223372036854775807 each:3"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
        struct dependency_term list[DEPENDENCIES_MAX];
        struct fault fault = {0};
        char all[256] = "";
        int n = dependency_parse(good[i].text, &fault, list);
        assert_true(n > 0);
        for (int k = 0; k < n; k++)
            add_term(all, &list[k]);
        assert_string_equal(all, good[i].read);
    }
}

static void others_are_refused(void **state)
{
    static const char *const bad[] = {"", "ok", "ok:", ":12", "12", "ok:x", "ok:0", "ok:-1",
        "ok:12,", ",ok:12", "ok:12,,any:13", "ok:12:", "after:12", "OK:12", "ok: 12", "ok:12 ",
        "singleton", "ok:9223372036854775808", "ok:99999999999999999999999999999999", "ok:1?any:2",
        "okay:1", "\xff:1", "ok:12_", "ok:_7", "ok:12_x", "ok:12_7_8", "each:12_7",
        "ok:12_2147483648", "afteraftercorr:1"};
    struct dependency_term list[DEPENDENCIES_MAX];
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct fault fault = {0};
        if (dependency_parse(bad[i], &fault, list) != -EINVAL)
            fail_msg("'%s' was read", bad[i]);
        assert_non_null(strstr(fault.text, "after"));
    }
}

static void their_number_is_limited(void **state)
{
    struct dependency_term list[DEPENDENCIES_MAX];
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
    assert_int_equal(
        submit_after(core, 1, (struct dependency){DEPENDENCY_OK, 1, 1, false}), CORE_NOT_NOW);
    assert_int_equal(
        submit_after(core, 1, (struct dependency){DEPENDENCY_OK, 2, 2, false}), CORE_NOT_NOW);
    assert_int_equal(
        submit_after(core, 5, (struct dependency){DEPENDENCY_OK, 3, 5, false}), CORE_NOT_NOW);
    assert_int_equal(
        submit_after(core, 5, (struct dependency){DEPENDENCY_OK, 4, 3, false}), CORE_NOT_NOW);
    assert_int_equal(
        submit_after(core, 5, (struct dependency){DEPENDENCY_OK, 0, 3, false}), CORE_NOT_NOW);
    assert_null(core_task(core, 1));
    core_destroy(core);
}

/* Feeds ticks until the core has judged all ends. Returns how many it took. */
static int judge_all(struct core *core, int64_t now_us)
{
    int n = 0;
    for (; core_deadline_us(core) == 0; n++)
        assert_int_equal(world_input(core, now_us, EVENT_TICK, 0), 0);
    return n;
}

/* A long chain breaks by and by, and without a deep stack. */
static void a_chain_ends(void **state)
{
    enum { CHAIN = 20000 };
    struct core *core = world_core(&policy_magm, 1);
    assert_int_equal(world_submit(core, 1, 1, (struct task_request){.gpus = 1, .begin_us = 99}), 0);
    for (uint64_t id = 2; id <= CHAIN; id++)
        assert_int_equal(
            submit_after(core, id, (struct dependency){DEPENDENCY_OK, id - 1, id - 1, false}), 0);
    assert_int_equal(world_input(core, 2, EVENT_CANCEL, 1), 0);
    judge_all(core, 2);
    for (uint64_t id = 1; id <= CHAIN; id++)
        assert_int_equal(world_state(core, id), TASK_CANCELLED);
    assert_int_equal(core_task(core, CHAIN)->run->broken.by, CHAIN - 1);
    core_destroy(core);
}

/* The driver knows how tasks ended that the core has forgotten. */
static void the_driver_settles_what_the_core_forgot(void **state)
{
    struct core *core = world_core(&policy_magm, 1);
    const struct dependency on_3 = {DEPENDENCY_OK, 3, 3, false};
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

/* ---- arrays ---- */

static int submit_array(
    struct core *core, uint64_t array, int n, int limit, const struct dependency *after)
{
    struct array_element elements[8];
    for (int i = 0; i < n; i++)
        elements[i] = (struct array_element){array + 1 + (uint64_t)i, i};
    struct event event = {.kind = EVENT_SUBMIT, .time_us = 1, .task = array};
    event.submit.request = (struct task_request){
        .gpus = 1, .exclusive = true, .after = after, .n_after = after != NULL};
    event.submit.elements = elements;
    event.submit.n_elements = n;
    event.submit.array_limit = limit;
    return core_step(core, &event);
}

static int count_in_state(const struct core *core, uint64_t array, enum task_state state)
{
    int n = 0;
    for (const struct task *task = core_next_task(core, array); task && task->array.id == array;
         task = core_next_task(core, task->id))
        n += task->state == state;
    return n;
}

static void an_array_keeps_its_limit(void **state)
{
    struct core *core = world_core(&policy_magm, 1);
    assert_int_equal(submit_array(core, 10, 5, 2, NULL), 0);
    assert_null(core_task(core, 10));
    assert_int_equal(core_task(core, 15)->array.index, 4);
    assert_int_equal(count_in_state(core, 10, TASK_QUEUED), 2);
    assert_int_equal(count_in_state(core, 10, TASK_BLOCKED), 3);
    assert_string_equal(core_reason_word(core, 15), "JobArrayTaskLimit");
    assert_int_equal(world_input(core, 2, EVENT_CANCEL, 11), 0);
    assert_int_equal(world_state(core, 13), TASK_QUEUED);
    assert_int_equal(world_input(core, 3, EVENT_HOLD, 12), 0);
    assert_int_equal(world_state(core, 14), TASK_QUEUED);
    assert_int_equal(world_input(core, 4, EVENT_RELEASE, 12), 0);
    assert_int_equal(world_state(core, 12), TASK_BLOCKED);
    world_check(core);
    core_destroy(core);
}

static void a_later_begin_does_not_stop_an_array(void **state)
{
    struct core *core = world_core(&policy_magm, 1);
    assert_int_equal(submit_array(core, 10, 4, 1, NULL), 0);
    assert_int_equal(world_state(core, 12), TASK_BLOCKED);
    struct event event = {.kind = EVENT_UPDATE, .time_us = 2, .task = 12};
    event.update.sets_begin = true;
    event.update.begin_us = HOUR_US;
    assert_int_equal(core_step(core, &event), 0);
    assert_int_equal(world_input(core, 3, EVENT_CANCEL, 11), 0);
    assert_int_equal(world_state(core, 12), TASK_BLOCKED);
    assert_int_equal(world_state(core, 13), TASK_QUEUED);
    world_check(core);
    core_destroy(core);
}

static void ids_of_an_array_must_be_new(void **state)
{
    struct core *core = world_core(&policy_magm, 1);
    assert_int_equal(world_submit(core, 1, 12, (struct task_request){.gpus = 1}), 0);
    assert_int_equal(submit_array(core, 10, 5, 0, NULL), CORE_NOT_NOW);
    assert_int_equal(submit_array(core, 12, 5, 0, NULL), CORE_NOT_NOW);
    assert_null(core_task(core, 11));
    core_destroy(core);
}

static void submit_dependents(struct core *core, uint64_t first, int n, struct dependency on)
{
    for (int i = 0; i < n; i++)
        assert_int_equal(submit_after(core, first + (uint64_t)i, on), 0);
}

/* The driver writes what a step decides: it must not be too much. The end is judged by later steps
 * too, though the driver has forgotten its task by then. */
static void a_step_judges_only_some(void **state)
{
    enum { N = 1000, STEP_MAX = 3 * 64 };
    struct core *core = world_core(&policy_magm, 1);
    int n_effects, steps = 1;
    assert_int_equal(submit_array(core, 10, 3, 0, NULL), 0);
    submit_dependents(core, 20, N, (struct dependency){DEPENDENCY_OK, 11, 13, false});
    submit_dependents(core, 20 + N, N, (struct dependency){DEPENDENCY_NOT_OK, 11, 13, false});
    submit_dependents(core, 20 + 2 * N, N, (struct dependency){DEPENDENCY_ANY, 11, 13, false});
    assert_int_equal(world_input(core, 2, EVENT_CANCEL, 13), 0);
    core_forget(core, 13);
    for (; core_deadline_us(core) == 0; steps++) {
        core_effects(core, &n_effects);
        assert_in_range(n_effects, 1, STEP_MAX);
        assert_int_equal(world_input(core, 2, EVENT_TICK, 0), 0);
    }
    assert_true(steps > 2 * N / 64);
    for (uint64_t i = 20; i < 20 + N; i++) {
        assert_int_equal(world_state(core, i), TASK_CANCELLED);
        assert_int_equal(core_task(core, i)->run->broken.by, 13);
        assert_int_equal(world_state(core, i + N), TASK_QUEUED);
        assert_int_equal(world_state(core, i + 2 * N), TASK_BLOCKED);
    }
    world_check(core);
    core_destroy(core);
}

/* Two tasks end before the first of them is judged, and are forgotten: one of them has failed. */
static void ends_are_judged_together(void **state)
{
    enum { N = 300 };
    struct core *core = world_core(&policy_magm, 2);
    assert_int_equal(submit_array(core, 10, 3, 0, NULL), 0);
    submit_dependents(core, 20, N, (struct dependency){DEPENDENCY_ANY, 11, 11, false});
    submit_dependents(core, 20 + N, N, (struct dependency){DEPENDENCY_OK, 12, 13, false});
    for (uint64_t id = 11; id <= 13; id++) {
        assert_int_equal(world_input(core, 2, EVENT_CANCEL, id), 0);
        core_forget(core, id);
    }
    judge_all(core, 3);
    for (uint64_t i = 20; i < 20 + N; i++) {
        assert_int_equal(world_state(core, i), TASK_QUEUED);
        assert_int_equal(world_state(core, i + N), TASK_CANCELLED);
    }
    core_destroy(core);
}

static void an_array_depends_on_all_or_on_each(void **state)
{
    const struct dependency on_all = {DEPENDENCY_OK, 11, 12, false};
    const struct dependency on_each = {DEPENDENCY_OK, 11, 12, true};
    struct core *core = world_core(&policy_magm, 1);
    assert_int_equal(submit_array(core, 10, 2, 0, NULL), 0);
    assert_int_equal(submit_array(core, 20, 2, 0, &on_each), 0);
    assert_int_equal(submit_array(core, 30, 2, 0, &on_all), 0);
    assert_int_equal(world_sample(core, 2, 0, 0, 0, 0), 0);
    assert_int_equal(world_input(core, 3, EVENT_STARTED, 11), 0);
    assert_int_equal(world_exit(core, 4, 11, FAILURE_NONE), 0);
    assert_int_equal(world_state(core, 21), TASK_QUEUED);
    assert_int_equal(world_state(core, 22), TASK_BLOCKED);
    assert_int_equal(count_in_state(core, 30, TASK_BLOCKED), 2);
    assert_int_equal(world_input(core, 5, EVENT_CANCEL, 12), 0);
    if (task_state_has_attempt(world_state(core, 12)))
        assert_int_equal(world_input(core, 6, EVENT_UNSTARTED, 12), 0);
    assert_int_equal(world_state(core, 22), TASK_CANCELLED);
    assert_int_equal(count_in_state(core, 30, TASK_CANCELLED), 2);
    world_check(core);
    core_destroy(core);
}

/* ---- limits of users ---- */

static int submit_limited(struct core *core, uint64_t task, int gpus, int64_t need_gib)
{
    const struct task_request request = {
        .gpus = gpus, .limited = true, .need = {NEED_DECLARED, need_gib * GIB}};
    return world_submit(core, 1, task, request);
}

static void a_users_limits_hold(void **state)
{
    struct core *core = world_core(&policy_magm, 4);
    struct core_settings settings = *core_get_settings(core);
    char text[256];
    settings.user_limits.tasks = 2;
    core_configure(core, &settings);
    for (uint64_t id = 1; id <= 4; id++)
        assert_int_equal(submit_limited(core, id, 1, 10), 0);
    assert_int_equal(world_submit(core, 1, 5, (struct task_request){.gpus = 1}), 0);
    assert_int_equal(world_state(core, 2), TASK_QUEUED);
    assert_int_equal(world_state(core, 3), TASK_BLOCKED);
    assert_int_equal(world_state(core, 5), TASK_QUEUED);
    assert_string_equal(core_reason_word(core, 3), "QOSMaxJobsPerUserLimit");
    assert_non_null(strstr(core_explain(core, 3, 1, text, sizeof text), "running-per-user"));
    assert_int_equal(world_input(core, 2, EVENT_CANCEL, 1), 0);
    assert_int_equal(world_state(core, 3), TASK_QUEUED);
    settings.user_limits.tasks = 0;
    settings.user_limits.gpus = 3;
    core_configure(core, &settings);
    assert_int_equal(submit_limited(core, 6, 1, 10), 0);
    assert_int_equal(world_state(core, 4), TASK_QUEUED);
    assert_string_equal(core_reason_word(core, 6), "QOSMaxGRESPerUser");
    settings.user_limits.gpus = 0;
    settings.user_limits.memory_bytes = 30 * GIB;
    core_configure(core, &settings);
    assert_int_equal(world_input(core, 3, EVENT_TICK, 0), 0);
    assert_string_equal(core_reason_word(core, 6), "QOSMaxMemoryPerUser");
    settings.user_limits.memory_bytes = 40 * GIB;
    core_configure(core, &settings);
    assert_int_equal(world_input(core, 4, EVENT_TICK, 0), 0);
    assert_int_equal(world_state(core, 6), TASK_QUEUED);
    world_check(core);
    core_destroy(core);
}

static int submit_of(struct core *core, uint32_t uid, uint64_t task, int gpus)
{
    struct event event = {.kind = EVENT_SUBMIT, .time_us = 1, .task = task};
    event.submit.uid = uid;
    event.submit.request = (struct task_request){
        .gpus = gpus, .limited = true, .need = {NEED_DECLARED, 10 * GIB}};
    return core_step(core, &event);
}

/* Users 1 and 2 are in a project, user 3 is not. */
static void a_projects_limits_hold(void **state)
{
    static struct share_table table;
    struct core *core = world_core(&policy_magm, 4);
    struct core_settings settings = *core_get_settings(core);
    char text[256];
    share_table_init(&table);
    table.n_projects = 2;
    table.projects[1] = (struct share_project){.name = "vision", .shares = 1};
    table.n_users = 2;
    table.users[0] = (struct user_shares){.uid = 1, .project = 1, .shares = 1};
    table.users[1] = (struct user_shares){.uid = 2, .project = 1, .shares = 1};
    settings.shares = &table;
    settings.project_limits.gpus = 3;
    core_configure(core, &settings);
    assert_int_equal(submit_of(core, 1, 1, 2), 0);
    assert_int_equal(submit_of(core, 2, 2, 2), 0);
    assert_int_equal(submit_of(core, 3, 3, 4), 0);
    assert_int_equal(world_state(core, 1), TASK_QUEUED);
    assert_int_equal(world_state(core, 2), TASK_BLOCKED);
    assert_int_equal(world_state(core, 3), TASK_QUEUED);
    assert_string_equal(core_reason_word(core, 2), "AssocGrpGRES");
    assert_non_null(strstr(core_explain(core, 2, 1, text, sizeof text), "(gpus-per-project)"));
    assert_int_equal(world_input(core, 2, EVENT_CANCEL, 1), 0);
    assert_int_equal(world_state(core, 2), TASK_QUEUED);
    world_check(core);
    core_destroy(core);
}

/* 10 GPU hours are charged; the limit is 6, and half of it counts no more after the half-life. */
static void usage_beyond_its_limit_keeps_tasks_until_it_has_decayed(void **state)
{
    const int64_t hour_us = HOUR_US;
    struct core *core = world_core(&policy_magm, 1);
    struct core_settings settings = *core_get_settings(core);
    struct event usage = {.kind = EVENT_USAGE, .time_us = 1};
    char text[256];
    settings.usage_half_life_us = 24 * hour_us;
    settings.user_limits.usage_us = 6 * hour_us;
    core_configure(core, &settings);
    usage.usage.uid = 1;
    usage.usage.usage_us = 10 * hour_us;
    assert_int_equal(core_apply(core, &usage), 0);
    assert_int_equal(submit_of(core, 1, 1, 1), 0);
    assert_int_equal(submit_of(core, 2, 2, 1), 0);
    assert_int_equal(world_state(core, 1), TASK_BLOCKED);
    assert_int_equal(world_state(core, 2), TASK_QUEUED);
    assert_string_equal(core_reason_word(core, 1), "AssocGrpGRESMinutes");
    assert_non_null(strstr(core_explain(core, 1, 1, text, sizeof text), "have reached 6"));
    assert_int_equal(world_input(core, 12 * hour_us, EVENT_TICK, 0), 0);
    assert_int_equal(world_state(core, 1), TASK_BLOCKED);
    assert_true(core_deadline_us(core) <= 12 * hour_us + 60 * SECOND_US);
    assert_int_equal(world_input(core, 18 * hour_us, EVENT_TICK, 0), 0);
    assert_int_equal(world_state(core, 1), TASK_QUEUED);
    core_destroy(core);
}

/* 10 GPU hours were charged at the start to one user of a project and 5 in hour 9 to another: the
 * window of 32 hours has buckets of an hour. */
static struct core *core_with_window(struct share_table *table)
{
    const int64_t hour_us = HOUR_US;
    struct core *core = world_core(&policy_magm, 1);
    struct core_settings settings = *core_get_settings(core);
    share_table_init(table);
    table->n_projects = 2;
    table->projects[1] = (struct share_project){.name = "vision", .shares = 1};
    table->n_users = 2;
    table->users[0] = (struct user_shares){.uid = 1, .project = 1, .shares = 1};
    table->users[1] = (struct user_shares){.uid = 2, .project = 1, .shares = 1};
    settings.shares = table;
    settings.usage_window_us = 32 * hour_us;
    core_configure(core, &settings);
    for (uint32_t uid = 1; uid <= 2; uid++) {
        struct event usage = {.kind = EVENT_USAGE, .time_us = uid == 1 ? 1 : 9 * hour_us};
        usage.usage.uid = uid;
        usage.usage.usage_us = 1; /* decayed away: it is not what is compared */
        usage.usage.window.length_us = 32 * hour_us;
        usage.usage.window.charged_us[0] = (double)((uid == 1 ? 10 : 5) * hour_us);
        assert_int_equal(core_apply(core, &usage), 0);
    }
    return core;
}

static void usage_beyond_its_limit_keeps_tasks_until_it_leaves_the_window(void **state)
{
    const int64_t hour_us = HOUR_US;
    struct share_table table;
    struct core *core = core_with_window(&table);
    struct core_settings settings = *core_get_settings(core);
    char text[256];
    settings.user_limits.usage_us = 10 * hour_us;
    core_configure(core, &settings);
    assert_int_equal(submit_of(core, 1, 1, 1), 0);
    assert_int_equal(submit_of(core, 2, 2, 1), 0);
    assert_int_equal(world_input(core, 10 * hour_us, EVENT_TICK, 0), 0);
    assert_int_equal(world_state(core, 1), TASK_BLOCKED);
    assert_int_equal(world_state(core, 2), TASK_QUEUED);
    assert_string_equal(core_reason_word(core, 1), "AssocGrpGRESMinutes");
    assert_string_equal(core_explain(core, 1, 10 * hour_us, text, sizeof text),
        "the GPU hours charged to its user within the last 32 h, 10.0, have reached 10 "
        "(gpu-hours-per-user); if nothing more is charged, they are fewer in 22:00:00");
    assert_int_equal(core_deadline_us(core), 32 * hour_us);
    assert_int_equal(world_input(core, 32 * hour_us - 1, EVENT_TICK, 0), 0);
    assert_int_equal(world_state(core, 1), TASK_BLOCKED);
    assert_int_equal(world_input(core, 32 * hour_us, EVENT_TICK, 0), 0);
    assert_int_equal(world_state(core, 1), TASK_QUEUED);
    core_destroy(core);
}

/* A longer window keeps the charges; without one, the usage has decayed. */
static void a_projects_window_follows_the_settings(void **state)
{
    const int64_t hour_us = HOUR_US;
    struct share_table table;
    struct core *core = core_with_window(&table);
    struct core_settings settings = *core_get_settings(core);
    char text[256];
    settings.project_limits.usage_us = 12 * hour_us;
    core_configure(core, &settings);
    assert_int_equal(submit_of(core, 2, 1, 1), 0);
    assert_int_equal(world_input(core, 10 * hour_us, EVENT_TICK, 0), 0);
    assert_int_equal(world_state(core, 1), TASK_BLOCKED);
    assert_non_null(strstr(core_explain(core, 1, 10 * hour_us, text, sizeof text),
        "its project within the last 32 h, 15.0, have reached 12 (gpu-hours-per-project)"));
    settings.usage_window_us = 320 * hour_us;
    core_configure(core, &settings);
    assert_int_equal(world_input(core, 100 * hour_us, EVENT_TICK, 0), 0);
    assert_int_equal(world_state(core, 1), TASK_BLOCKED);
    settings.usage_window_us = 0;
    core_configure(core, &settings);
    assert_int_equal(world_input(core, 101 * hour_us, EVENT_TICK, 0), 0);
    assert_int_equal(world_state(core, 1), TASK_QUEUED);
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
        cmocka_unit_test(a_chain_ends),
        cmocka_unit_test(the_driver_settles_what_the_core_forgot),
        cmocka_unit_test(an_array_keeps_its_limit),
        cmocka_unit_test(a_later_begin_does_not_stop_an_array),
        cmocka_unit_test(ids_of_an_array_must_be_new),
        cmocka_unit_test(a_step_judges_only_some),
        cmocka_unit_test(ends_are_judged_together),
        cmocka_unit_test(an_array_depends_on_all_or_on_each),
        cmocka_unit_test(a_users_limits_hold),
        cmocka_unit_test(a_projects_limits_hold),
        cmocka_unit_test(usage_beyond_its_limit_keeps_tasks_until_it_has_decayed),
        cmocka_unit_test(usage_beyond_its_limit_keeps_tasks_until_it_leaves_the_window),
        cmocka_unit_test(a_projects_window_follows_the_settings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
