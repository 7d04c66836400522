/* SPDX-License-Identifier: Apache-2.0 */
/* What ended tasks took: the last ones, and of those the oldest goes first. */
#include "daemon/run_history.h"

#include <stdlib.h>

#include "unit.h"

static json_t *record_of(int64_t batch)
{
    return json_pack("{s:s, s:i, s:i, s:{s:s, s:I}}", "state", "COMPLETED", "mem_peak_mib", 1000,
        "gpus_requested", 1, "subject", "fingerprint", "00000000000000ff", "batch",
        (json_int_t)batch);
}

static void put_of(struct store *store, uint64_t task, uint32_t uid)
{
    struct fault fault = {""};
    struct store_ended ended = {
        .task = task, .uid = uid, .state = TASK_COMPLETED, .ended_wall_us = (int64_t)task};
    json_t *record = record_of((int64_t)task);
    if (uid)
        json_object_set_new(record, "uid", json_integer(uid));
    if (store_put_ended(store, &ended, record, &fault) < 0)
        fail_msg("%s", fault.text);
    json_decref(record);
}

static void put(struct store *store, uint64_t task)
{
    put_of(store, task, 0);
}

static bool has(const struct run_history *history, int64_t batch)
{
    for (size_t i = 0; i < history->n; i++)
        if (history->runs[i].batch == batch)
            return true;
    return false;
}

static void the_oldest_goes_first(void **state)
{
    struct store *store = open_log(*state);
    struct run_history history = {0};
    struct fault fault = {""};
    const uint64_t n = RUN_HISTORY_MAX + 2;
    begin(store);
    for (uint64_t task = 1; task <= n; task++)
        put(store, task);
    commit(store);
    assert_int_equal(run_history_load(&history, store, &fault), 0);
    assert_int_equal(history.n, RUN_HISTORY_MAX);
    assert_false(has(&history, 2));
    assert_true(has(&history, 3));
    json_t *record = record_of((int64_t)n + 1);
    run_history_take(&history, record);
    json_decref(record);
    assert_int_equal(history.n, RUN_HISTORY_MAX);
    assert_false(has(&history, 3));
    assert_true(has(&history, (int64_t)n) && has(&history, (int64_t)n + 1));
    run_history_fini(&history);
    store_close(store);
}

/* ada's few runs are older than 10,000 of bob's: the start reads them, too, and each further one of
 * bob's replaces one of bob's. */
static void no_user_drives_out_what_others_ran(void **state)
{
    enum { ADA = 1001, BOB = 1002, OF_ADA = 5 };
    struct store *store = open_log(*state);
    struct run_history history = {0};
    struct fault fault = {""};
    const int64_t last = RUN_HISTORY_MAX + OF_ADA + 7;
    begin(store);
    for (int64_t task = 1; task <= last; task++)
        put_of(store, (uint64_t)task, task <= OF_ADA ? ADA : BOB);
    commit(store);
    assert_int_equal(run_history_load(&history, store, &fault), 0);
    json_t *record = record_of(last + 1);
    json_object_set_new(record, "uid", json_integer(BOB));
    for (int round = 0; round < 2; round++) {
        assert_int_equal(history.n, RUN_HISTORY_MAX);
        for (int64_t batch = 1; batch <= OF_ADA; batch++)
            assert_true(has(&history, batch));
        assert_false(has(&history, OF_ADA + 12 + round));
        assert_true(has(&history, OF_ADA + 13 + round));
        assert_true(has(&history, last + round));
        run_history_take(&history, record);
    }
    json_decref(record);
    run_history_fini(&history);
    store_close(store);
}

static void shares_of(void **state)
{
    (void)state;
    struct user_counts counts = {0};
    assert_int_equal(user_counts_share(&counts, 10), 10);
    user_counts_add(&counts, 1, 7);
    assert_int_equal(user_counts_share(&counts, 10), 10);
    user_counts_add(&counts, 2, 3);
    assert_int_equal(user_counts_share(&counts, 10), 10);
    user_counts_add(&counts, 1, 1);
    assert_int_equal(user_counts_share(&counts, 10), 7);
    user_counts_add(&counts, 3, 100);
    assert_int_equal(user_counts_share(&counts, 10), 3);
    assert_int_equal(user_counts_share(&counts, 2), 1);
    assert_int_equal(user_counts_most(&counts), 3);
    user_counts_fini(&counts);
}

/* A record without a user must not count as one of root. */
static void whose_run_it_was(void **state)
{
    struct run_history history = {0};
    json_t *record = record_of(1);
    run_history_take(&history, record);
    json_object_set_new(record, "uid", json_integer(1001));
    run_history_take(&history, record);
    json_decref(record);
    assert_int_equal(history.n, 2);
    assert_int_equal(history.runs[0].uid, PAST_RUN_NO_UID);
    assert_int_equal(history.runs[1].uid, 1001);
    run_history_fini(&history);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whose_run_it_was),
        cmocka_unit_test(shares_of),
        cmocka_unit_test_setup_teardown(
            no_user_drives_out_what_others_ran, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(the_oldest_goes_first, make_folder, remove_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
