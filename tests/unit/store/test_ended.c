/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks that have ended: records, lists, totals, and how they are forgotten. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit.h"

/* A task that waits 1 s and runs 2 s, from `ended_wall_us` - 3 s. */
static struct store_ended ended(
    uint64_t task, uint32_t uid, enum task_state state, int oom_count, int64_t ended_wall_us)
{
    return (struct store_ended){
        .task = task,
        .uid = uid,
        .state = state,
        .submitted_wall_us = ended_wall_us - 3000000,
        .ended_wall_us = ended_wall_us,
        .wait_us = 1000000,
        .exec_us = 2000000,
        .jct_us = 3000000,
        .oom_count = oom_count,
    };
}

static void put(struct store *store, struct store_ended task)
{
    struct fault fault = {""};
    json_t *record = json_pack(
        "{s:I, s:s}", "id", (json_int_t)task.task, "user", task.uid == 1000 ? "ada" : "bo\"b");
    if (store_put_ended(store, &task, record, &fault) < 0)
        fail_msg("%s", fault.text);
    json_decref(record);
}

/* Four tasks; 3 ended last, though it is not the newest. */
static struct store *open_history(const char *folder)
{
    struct store *store = open_log(folder);
    begin(store);
    for (uint64_t task = 1; task <= 5; task++)
        append(store, submit_event(task, 1));
    put(store, ended(1, 1000, TASK_COMPLETED, 0, 10000000));
    put(store, ended(2, 1001, TASK_FAILED, 0, 20000000));
    put(store, ended(4, 1000, TASK_COMPLETED, 2, 30000000));
    put(store, ended(3, 1000, TASK_OUT_OF_MEMORY, 3, 40000000));
    commit(store);
    return store;
}

static void a_record_is_found_by_id(void **state)
{
    struct store *store = open_history(*state);
    json_t *record;
    assert_int_equal(store_get_ended(store, 4, NULL, &record), 0);
    assert_int_equal(json_integer_value(json_object_get(record, "id")), 4);
    json_decref(record);
    assert_int_equal(store_get_ended(store, 5, NULL, &record), STORE_NONE);
    store_close(store);
}

static int note_id(void *context, uint64_t task, const json_t *record)
{
    char *ids = context;
    assert_int_equal(json_integer_value(json_object_get(record, "id")), task);
    sprintf(ids + strlen(ids), "%llu ", (unsigned long long)task);
    return strlen(ids) > 40;
}

static void assert_list(struct store *store, struct store_ended_filter filter, const char *wanted)
{
    char ids[64] = "";
    assert_int_equal(store_list_ended(store, &filter, note_id, ids, NULL), 0);
    assert_string_equal(ids, wanted);
}

static void lists_are_filtered_and_the_last_to_end_is_first(void **state)
{
    struct store *store = open_history(*state);
    assert_list(store, (struct store_ended_filter){0}, "3 4 2 1 ");
    assert_list(store, (struct store_ended_filter){.limit = 2}, "3 4 ");
    assert_list(store, (struct store_ended_filter){.before = 4}, "2 1 ");
    assert_list(store, (struct store_ended_filter){.before = 5}, "");
    assert_list(store, (struct store_ended_filter){.of_uid = true, .uid = 1000}, "3 4 1 ");
    assert_list(store, (struct store_ended_filter){.of_uid = true, .uid = 0}, "");
    assert_list(store, (struct store_ended_filter){.state = TASK_COMPLETED}, "4 1 ");
    assert_list(
        store, (struct store_ended_filter){true, 1000, TASK_COMPLETED, 3, 1, 0, 0, 0, NULL}, "4 ");
    assert_list(store, (struct store_ended_filter){.since_wall_us = 20000000}, "3 4 2 ");
    assert_list(store, (struct store_ended_filter){.until_wall_us = 30000000}, "2 1 ");
    assert_list(store,
        (struct store_ended_filter){
            .since_wall_us = 20000000, .until_wall_us = 40000000, .of_uid = true, .uid = 1000},
        "4 ");
    assert_list(store, (struct store_ended_filter){.since_wall_us = 40000001}, "");
    assert_list(store, (struct store_ended_filter){.holds = "\"ada\""}, "3 4 1 ");
    assert_list(store, (struct store_ended_filter){.holds = "\"ada\"", .examine = 2}, "3 4 ");
    assert_list(store, (struct store_ended_filter){.holds = "\"bo\\\"b\""}, "2 ");
    assert_list(store, (struct store_ended_filter){.holds = "\"ad\""}, "");
    store_close(store);
}

static int note_user(void *context, uint32_t uid, int64_t tasks)
{
    char *users = context;
    sprintf(users + strlen(users), "%u:%lld ", (unsigned)uid, (long long)tasks);
    return uid == 1001 ? 5 : 0;
}

static void users_of_ended_tasks(void **state)
{
    struct store *store = open_history(*state);
    char users[64] = "";
    assert_int_equal(store_list_ended_users(store, note_user, users, NULL), 5);
    assert_string_equal(users, "1000:3 1001:1 ");
    store_close(store);
}

static uint64_t next_step(struct store *store, struct store_ended_filter filter)
{
    uint64_t task = 99;
    assert_int_equal(store_skip_ended(store, &filter, NULL, &task), 0);
    return task;
}

/* The tasks are 3 4 2 1, the last to end first. */
static void a_search_is_made_in_steps(void **state)
{
    struct store *store = open_history(*state);
    assert_list(store, (struct store_ended_filter){.examine = 3}, "3 4 2 ");
    assert_list(store, (struct store_ended_filter){.examine = 2, .before = 3}, "4 2 ");
    assert_list(store, (struct store_ended_filter){.examine = 2, .state = TASK_FAILED}, "");
    assert_list(
        store, (struct store_ended_filter){.examine = 2, .before = 4, .state = TASK_FAILED}, "2 ");
    assert_list(
        store, (struct store_ended_filter){.examine = 2, .of_uid = true, .uid = 1000}, "3 4 ");
    assert_list(store, (struct store_ended_filter){.examine = 2, .before = 1}, "");
    assert_int_equal(next_step(store, (struct store_ended_filter){.examine = 2}), 4);
    assert_int_equal(next_step(store, (struct store_ended_filter){.examine = 2, .before = 4}), 1);
    assert_int_equal(next_step(store, (struct store_ended_filter){.examine = 2, .before = 2}), 0);
    assert_int_equal(
        next_step(store, (struct store_ended_filter){.examine = 3, .of_uid = true, .uid = 1000}),
        1);
    assert_int_equal(next_step(store, (struct store_ended_filter){.examine = 5}), 0);
    store_close(store);
}

static void first_submission(void **state)
{
    struct store *store = open_log(*state);
    struct fault fault = {""};
    int64_t wall_us = -1;
    assert_int_equal(store_first_submitted(store, &fault, &wall_us), 0);
    assert_int_equal(wall_us, 0);
    store_close(store);
    store = open_history(*state);
    assert_int_equal(store_first_submitted(store, &fault, &wall_us), 0);
    assert_int_equal(wall_us, 7000000);
    store_close(store);
}

/* Adds all, at most that many in a step. Returns in how many steps. */
static int add_all(struct store *store, int max, struct store_totals *totals)
{
    int steps = 1;
    int r;
    while ((r = store_add_totals(store, max, NULL, totals)) > 0)
        steps++;
    assert_int_equal(r, 0);
    return steps;
}

static void totals_add_up(void **state)
{
    struct store *store = open_history(*state);
    struct store_totals totals = {0};
    assert_int_equal(add_all(store, 1000, &totals), 1);
    assert_int_equal(totals.tasks[TASK_COMPLETED], 2);
    assert_int_equal(totals.tasks[TASK_FAILED], 1);
    assert_int_equal(totals.tasks[TASK_OUT_OF_MEMORY], 1);
    assert_int_equal(totals.tasks[TASK_CANCELLED], 0);
    assert_int_equal(totals.wait_us, 4000000);
    assert_int_equal(totals.exec_us, 8000000);
    assert_int_equal(totals.jct_us, 12000000);
    assert_int_equal(totals.oom_count, 5);
    assert_int_equal(totals.recovered, 1);
    assert_int_equal(totals.first_submitted_wall_us, 7000000);
    assert_int_equal(totals.last_ended_wall_us, 40000000);
    for (int max = 1; max <= 4; max++) {
        struct store_totals by_steps = {0};
        assert_int_equal(add_all(store, max, &by_steps), 4 / max + 1);
        assert_memory_equal(&by_steps, &totals, sizeof totals);
    }
    store_close(store);
}

static void totals_of_nothing_are_zero(void **state)
{
    static const struct store_totals none;
    struct store *store = open_log(*state);
    struct store_totals totals = {0};
    assert_int_equal(store_add_totals(store, 1, NULL, &totals), 0);
    assert_memory_equal(&totals, &none, sizeof none);
    store_close(store);
}

static void what_has_not_ended_gets_no_record(void **state)
{
    struct store *store = open_log(*state);
    struct store_ended running = ended(1, 0, TASK_RUNNING, 0, 1),
                       done = ended(1, 0, TASK_FAILED, 0, 1);
    json_t *record = json_object(), *text = json_string("done");
    assert_int_equal(store_put_ended(store, &done, record, NULL), -EINVAL);
    begin(store);
    assert_int_equal(store_put_ended(store, &running, record, NULL), -EINVAL);
    assert_int_equal(store_put_ended(store, &done, text, NULL), -EINVAL);
    assert_int_equal(store_put_ended(store, &done, record, NULL), 0);
    commit(store);
    json_decref(record);
    json_decref(text);
    store_close(store);
}

static int forget(struct store *store, int64_t before_wall_us, int limit)
{
    struct fault fault = {""};
    int forgotten;
    begin(store);
    if (store_forget_before(store, before_wall_us, limit, &fault, &forgotten) < 0)
        fail_msg("%s", fault.text);
    commit(store);
    return forgotten;
}

static void old_tasks_are_forgotten_in_chunks(void **state)
{
    struct store *store = open_history(*state);
    assert_int_equal(forget(store, 10000000, 10), 0);
    assert_int_equal(forget(store, 40000000, 2), 2);
    assert_list(store, (struct store_ended_filter){0}, "3 4 ");
    assert_int_equal(forget(store, 40000000, 2), 1);
    assert_int_equal(forget(store, 40000000, 2), 0);
    assert_list(store, (struct store_ended_filter){0}, "3 ");
    json_t *record;
    assert_int_equal(store_get_ended(store, 1, NULL, &record), STORE_NONE);
    assert_string_equal(replayed(store), "SUBMIT3 SUBMIT5 ");
    store_close(store);
}

/* It has the whole usage of a user. A restart needs no other. */
static void the_last_usage_of_each_user_stays(void **state)
{
    static const uint32_t uids[] = {1000, 1001, 1000, 1000, 1001, 1002};
    struct store *store = open_history(*state);
    begin(store);
    for (size_t i = 0; i < sizeof uids / sizeof *uids; i++) {
        struct event usage = plain_event(EVENT_USAGE, 0, 100 + (int64_t)i);
        usage.usage.uid = uids[i];
        append(store, usage);
    }
    commit(store);
    assert_non_null(strstr(replayed(store), "USAGE0 USAGE0 USAGE0 USAGE0 USAGE0 USAGE0 "));
    assert_int_equal(forget(store, 10000000, 10), 0);
    assert_string_equal(
        replayed(store), "SUBMIT1 SUBMIT2 SUBMIT3 SUBMIT4 SUBMIT5 USAGE0 USAGE0 USAGE0 ");
    store_close(store);
}

/* Of each user and each way of sharing. */
static void the_last_delays_of_each_user_stay(void **state)
{
    static const struct {
        uint32_t uid;
        enum sharing sharing;
    } each[] = {{1000, SHARING_MPS}, {1001, SHARING_MPS}, {1000, SHARING_STREAMS},
        {1000, SHARING_MPS}, {1000, SHARING_MPS}};
    struct store *store = open_history(*state);
    begin(store);
    for (size_t i = 0; i < sizeof each / sizeof *each; i++) {
        struct event delays = plain_event(EVENT_DELAYS, 0, 100 + (int64_t)i);
        delays.delays.uid = each[i].uid;
        delays.delays.sharing = each[i].sharing;
        append(store, delays);
    }
    commit(store);
    assert_int_equal(forget(store, 10000000, 10), 0);
    assert_string_equal(
        replayed(store), "SUBMIT1 SUBMIT2 SUBMIT3 SUBMIT4 SUBMIT5 DELAYS0 DELAYS0 DELAYS0 ");
    store_close(store);
}

/* It is that of all tasks before. */
static void the_last_schedule_stays(void **state)
{
    const int64_t free_us = 7;
    struct store *store = open_history(*state);
    begin(store);
    for (int i = 0; i < 3; i++) {
        struct event fifo = plain_event(EVENT_FIFO, 0, 100 + i);
        fifo.fifo.free_us = &free_us;
        fifo.fifo.n = 1;
        append(store, fifo);
    }
    append(store, plain_event(EVENT_USAGE, 0, 103));
    commit(store);
    assert_int_equal(forget(store, 10000000, 10), 0);
    assert_string_equal(replayed(store), "SUBMIT1 SUBMIT2 SUBMIT3 SUBMIT4 SUBMIT5 FIFO0 USAGE0 ");
    store_close(store);
}

/* How many events a check of the closed log misses. */
static int64_t missing_events(const char *folder)
{
    struct fault fault = {""};
    struct store *store;
    int64_t missing = -1;
    if (store_open_to_check(path_in(folder, "colloc.db"), &fault, &store) < 0 ||
        store_count_missing_events(store, &fault, &missing) < 0)
        fail_msg("%s", fault.text);
    store_close(store);
    return missing;
}

/* Tasks 1 to 4 are forgotten in all orders of their last events, one of them the last of all. */
static void forgotten_events_are_not_missing(void **state)
{
    static const int64_t befores[] = {15000000, 25000000, 35000000, 45000000};
    struct store *store = open_history(*state);
    begin(store);
    append(store, end_event(5, 2));
    append(store, end_event(1, 3));
    append(store, end_event(4, 4));
    append(store, end_event(2, 5));
    commit(store);
    for (size_t i = 0; i < sizeof befores / sizeof *befores; i++) {
        assert_int_equal(forget(store, befores[i], 10), 1);
        store_close(store);
        assert_int_equal(missing_events(*state), 0);
        store = open_log(*state);
        begin(store);
        append(store, plain_event(EVENT_USAGE, 0, 100));
        commit(store);
    }
    store_close(store);
    assert_int_equal(missing_events(*state), 0);
}

static void an_event_that_was_deleted_is_missing(void **state)
{
    struct store *store = open_history(*state);
    assert_int_equal(forget(store, 15000000, 10), 1);
    store_close(store);
    execute(*state, "DELETE FROM events WHERE task = 3");
    assert_int_equal(missing_events(*state), 1);
    store = open_log(*state);
    assert_int_equal(forget(store, 25000000, 10), 1);
    store_close(store);
    assert_int_equal(missing_events(*state), 1);
    store = open_log(*state);
    assert_int_equal(store_accept_loss(store, NULL), 0);
    store_close(store);
    assert_int_equal(missing_events(*state), 0);
}

static void the_highest_id_is_never_forgotten(void **state)
{
    struct store *store = open_history(*state);
    uint64_t task;
    int64_t time_us;
    begin(store);
    append(store, end_event(5, 2));
    put(store, ended(5, 1000, TASK_COMPLETED, 0, 1000));
    commit(store);
    assert_int_equal(forget(store, 50000000, 100), 4);
    assert_int_equal(store_get_last(store, NULL, &task, &time_us), 0);
    assert_int_equal(task, 5);
    store_close(store);
}

static void a_text_stays_as_long_as_a_task_uses_it(void **state)
{
    struct store *store = open_history(*state);
    char shared[65], own[65], *data;
    size_t size;
    begin(store);
    store_put_blob(store, 1, "shared", 6, NULL, shared);
    store_put_blob(store, 5, "shared", 6, NULL, shared);
    store_put_blob(store, 1, "own", 3, NULL, own);
    commit(store);
    assert_int_equal(forget(store, 15000000, 1), 1);
    assert_int_equal(store_get_blob(store, own, NULL, &data, &size), STORE_NONE);
    assert_int_equal(store_get_blob(store, shared, NULL, &data, &size), 0);
    free(data);
    store_close(store);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, make_folder, remove_folder)
    const struct CMUnitTest tests[] = {
        TEST(a_record_is_found_by_id),
        TEST(lists_are_filtered_and_the_last_to_end_is_first),
        TEST(a_search_is_made_in_steps),
        TEST(users_of_ended_tasks),
        TEST(first_submission),
        TEST(totals_add_up),
        TEST(totals_of_nothing_are_zero),
        TEST(what_has_not_ended_gets_no_record),
        TEST(old_tasks_are_forgotten_in_chunks),
        TEST(the_last_usage_of_each_user_stays),
        TEST(the_last_delays_of_each_user_stay),
        TEST(the_last_schedule_stays),
        TEST(forgotten_events_are_not_missing),
        TEST(an_event_that_was_deleted_is_missing),
        TEST(the_highest_id_is_never_forgotten),
        TEST(a_text_stays_as_long_as_a_task_uses_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
