/* SPDX-License-Identifier: Apache-2.0 */
/* Events are appended and read back: which, in which order, and what a restart replays. */
#include <errno.h>
#include <string.h>

#include "base/units.h"
#include "core/policy.h"
#include "unit.h"

static struct store *reopen(struct store *store, const char *folder)
{
    store_close(store);
    return open_log(folder);
}

static int check_events(
    void *context, const struct event *event, int64_t wall_us, const json_t *detail)
{
    int *seen = context;
    assert_int_equal(wall_us, event->time_us + 1000);
    switch (event->kind) {
    case EVENT_GPUS:
        assert_int_equal(event->gpus.n, 2);
        assert_string_equal(event->gpus.list[1].uuid, "GPU-b");
        assert_string_equal(event->gpus.list[1].label, "1");
        assert_int_equal(event->gpus.list[1].mem_total_bytes, 40 * GIB);
        assert_true(event->gpus.list[1].is_place && !event->gpus.list[1].is_mig_instance);
        break;
    case EVENT_SUBMIT:
        assert_int_equal(event->submit.uid, 1000);
        assert_false(event->submit.held);
        assert_int_equal(event->submit.request.gpus, 1);
        assert_ptr_equal(event->submit.request.policy, find_policy("magm"));
        assert_int_equal(event->submit.request.sharing, SHARING_MPS);
        assert_int_equal(event->submit.request.need.kind, NEED_ESTIMATED);
        assert_int_equal(event->submit.request.need.bytes, 5 * GIB);
        assert_int_equal(event->submit.request.time_limit_us, 60000000);
        assert_true(event->submit.request.expect.smact.valid &&
                    event->submit.request.expect.smact.value == 0.5);
        assert_false(
            event->submit.request.expect.gract.valid || event->submit.request.expect.dram.valid);
        assert_int_equal(event->submit.request.expect.time_us.value, 30000000);
        assert_string_equal(json_string_value(json_object_get(detail, "name")), "resnet");
        break;
    case EVENT_PLACE:
        assert_int_equal(event->place.n, 1);
        assert_int_equal(event->place.gpus[0], 1);
        assert_null(detail);
        break;
    case EVENT_EXITED:
        assert_int_equal(event->exited.failure, FAILURE_GPU_OOM);
        assert_int_equal(event->exited.code, 1);
        assert_int_equal(event->exited.ended_us, 35);
        break;
    default:
        fail_msg("%s was never appended", event_name(event->kind));
    }
    ++*seen;
    return 0;
}

static void events_come_back_as_they_were(void **state)
{
    struct store *store = open_log(*state);
    struct event submit = submit_event(7, 20), exited = plain_event(EVENT_EXITED, 7, 40);
    exited.exited = (struct task_exit){.failure = FAILURE_GPU_OOM, .code = 1, .ended_us = 35};
    json_t *detail = json_pack("{s:s}", "name", "resnet");
    struct fault fault = {""};

    begin(store);
    append(store, gpus_event(10));
    assert_int_equal(store_append(store, &submit, 1020, detail, &fault), 0);
    append(store, place_event(7, 30));
    append(store, exited);
    commit(store);
    json_decref(detail);
    store = reopen(store, *state);

    int seen = 0;
    assert_int_equal(store_replay(store, find_policy, check_events, &seen, &fault), 0);
    assert_int_equal(seen, 4);
    uint64_t task;
    int64_t time_us;
    assert_int_equal(store_get_last(store, &fault, &task, &time_us), 0);
    assert_int_equal(task, 7);
    assert_int_equal(time_us, 40);
    store_close(store);
}

/* Array 10 with tasks 11 to 14, of which 12 has ended. */
static struct event array_event(struct array_element elements[static 4])
{
    struct event event = submit_event(10, 20);
    for (int i = 0; i < 4; i++)
        elements[i] = (struct array_element){11 + (uint64_t)i, i * 10};
    event.submit.elements = elements;
    event.submit.n_elements = 4;
    event.submit.array_limit = 2;
    return event;
}

static int note_elements(
    void *context, const struct event *event, int64_t wall_us, const json_t *detail)
{
    uint64_t *sum = context;
    for (int i = 0; event->kind == EVENT_SUBMIT && i < event->submit.n_elements; i++)
        *sum = *sum * 1000 + event->submit.elements[i].task * 10 +
               (uint64_t)event->submit.elements[i].index / 10;
    return 0;
}

static void end_task(struct store *store, uint64_t task)
{
    struct store_ended ended = {
        .task = task, .state = TASK_COMPLETED, .submitted_wall_us = 1, .ended_wall_us = 2};
    json_t *record = json_pack("{s:i}", "id", (int)task);
    struct fault fault = {""};
    append(store, end_event(task, 40));
    assert_int_equal(store_put_ended(store, &ended, record, &fault), 0);
    json_decref(record);
}

static void an_array_is_one_event(void **state)
{
    struct store *store = open_log(*state);
    struct array_element elements[4];
    struct fault fault = {""};
    uint64_t first, last, sum = 0, task;
    int64_t time_us;
    begin(store);
    append(store, gpus_event(10));
    append(store, array_event(elements));
    end_task(store, 12);
    commit(store);
    store = reopen(store, *state);
    assert_string_equal(store_get_loss(store), "");
    assert_int_equal(store_last_event(store), 3);
    assert_int_equal(store_get_last(store, &fault, &task, &time_us), 0);
    assert_int_equal(task, 14);
    assert_int_equal(store_get_array(store, 10, &fault, &first, &last), 0);
    assert_true(first == 11 && last == 14);
    assert_int_equal(store_get_array(store, 11, &fault, &first, &last), STORE_NONE);
    assert_int_equal(store_replay(store, find_policy, note_elements, &sum, &fault), 0);
    assert_int_equal(sum, 110132143); /* 11 with index 0, 13 with 2, 14 with 3 */
    sum = 0;
    assert_int_equal(store_task_events(store, 13, find_policy, note_elements, &sum, &fault), 0);
    assert_true(sum > 0);
    assert_true(store_is_live(store, 14) && !store_is_live(store, 12) && !store_is_live(store, 10));
    store_close(store);
}

static void an_array_is_forgotten_with_its_last_task(void **state)
{
    struct store *store = open_log(*state);
    struct array_element elements[4];
    struct fault fault = {""};
    int64_t counts[TASK_STATES];
    uint64_t first, last;
    int forgotten;
    begin(store);
    append(store, array_event(elements));
    for (uint64_t task = 11; task <= 13; task++)
        end_task(store, task);
    append(store, submit_event(15, 50));
    commit(store);
    assert_int_equal(store_count_ended(store, 11, 14, &fault, counts), 0);
    assert_int_equal(counts[TASK_COMPLETED], 3);
    begin(store);
    assert_int_equal(store_forget_before(store, 100, 100, &fault, &forgotten), 0);
    commit(store);
    assert_int_equal(forgotten, 3);
    assert_int_equal(store_get_array(store, 10, &fault, &first, &last), 0);
    begin(store);
    end_task(store, 14);
    assert_int_equal(store_forget_before(store, 100, 100, &fault, &forgotten), 0);
    commit(store);
    assert_int_equal(store_get_array(store, 10, &fault, &first, &last), STORE_NONE);
    store = reopen(store, *state);
    assert_string_equal(store_get_loss(store), "");
    assert_string_equal(replayed(store), "SUBMIT15 ");
    store_close(store);
}

static int check_gone(
    void *context, const struct event *event, int64_t wall_us, const json_t *detail)
{
    int *gone = context;
    for (int i = 0; event->kind == EVENT_GPUS && i < event->gpus.n; i++)
        *gone += event->gpus.list[i].is_gone;
    return 0;
}

static void what_is_gone_is_kept(void **state)
{
    struct store *store = open_log(*state);
    struct gpu_identity list[] = {
        {.uuid = "MIG-a", .is_mig_instance = true, .is_gone = true}, {.uuid = "MIG-b"}};
    struct event gpus = plain_event(EVENT_GPUS, 0, 10);
    struct fault fault;
    int gone = 0;
    gpus.gpus.list = list;
    gpus.gpus.n = 2;
    begin(store);
    append(store, gpus);
    append(store, submit_event(7, 20));
    append(store, plain_event(EVENT_EVICT, 7, 30));
    commit(store);
    store = reopen(store, *state);
    assert_int_equal(store_replay(store, find_policy, check_gone, &gone, &fault), 0);
    assert_int_equal(gone, 1);
    assert_string_equal(replayed(store), "GPUS0 SUBMIT7 EVICT7 ");
    store_close(store);
}

static void an_empty_log_is_empty(void **state)
{
    struct store *store = open_log(*state);
    uint64_t task = 99;
    int64_t time_us = 99;
    assert_string_equal(replayed(store), "");
    assert_int_equal(store_get_last(store, NULL, &task, &time_us), 0);
    assert_int_equal(task, 0);
    assert_int_equal(time_us, 0);
    store_close(store);
}

static void ended_tasks_are_not_replayed(void **state)
{
    struct store *store = open_log(*state);
    begin(store);
    append(store, gpus_event(1));
    append(store, submit_event(1, 2));
    append(store, submit_event(2, 3));
    append(store, place_event(1, 4));
    append(store, plain_event(EVENT_EXITED, 1, 5));
    append(store, end_event(1, 6));
    append(store, gpus_event(7));
    commit(store);
    assert_string_equal(replayed(store), "GPUS0 SUBMIT2 GPUS0 ");
    store_close(store);
}

/* Task 1, which has ended, was a co-resident of 2; task 3 ended before 2 got its GPU. */
static void the_coresidents_of_a_running_task_are_replayed(void **state)
{
    struct store *store = open_log(*state);
    begin(store);
    for (uint64_t task = 1; task <= 3; task++)
        append(store, submit_event(task, 1));
    append(store, place_event(3, 2));
    append(store, plain_event(EVENT_EXITED, 3, 3));
    append(store, end_event(3, 3));
    append(store, place_event(1, 4));
    append(store, place_event(2, 5));
    append(store, plain_event(EVENT_EXITED, 1, 6));
    append(store, end_event(1, 6));
    commit(store);
    assert_string_equal(replayed(store), "SUBMIT1 SUBMIT2 PLACE1 PLACE2 EXITED1 END1 ");

    begin(store);
    append(store, plain_event(EVENT_UNSTARTED, 2, 7));
    commit(store);
    assert_string_equal(replayed(store), "SUBMIT2 PLACE2 UNSTARTED2 ");

    begin(store);
    append(store, place_event(2, 8));
    append(store, submit_event(4, 8));
    append(store, end_event(4, 8));
    commit(store);
    assert_string_equal(replayed(store), "SUBMIT2 PLACE2 UNSTARTED2 PLACE2 SUBMIT4 END4 ");

    begin(store);
    append(store, plain_event(EVENT_EXITED, 2, 9));
    commit(store);
    assert_string_equal(replayed(store), "SUBMIT2 PLACE2 UNSTARTED2 PLACE2 EXITED2 ");
    store_close(store);
}

static void what_was_not_committed_never_was(void **state)
{
    struct store *store = open_log(*state);
    begin(store);
    append(store, submit_event(1, 1));
    store_rollback(store);
    begin(store);
    append(store, submit_event(2, 1));
    commit(store);
    begin(store);
    append(store, submit_event(3, 1));
    store = reopen(store, *state);
    assert_string_equal(replayed(store), "SUBMIT2 ");
    store_close(store);
}

static void what_cannot_be_appended_is_refused(void **state)
{
    struct store *store = open_log(*state);
    struct fault fault = {""};
    struct event submit = submit_event(1, 1), tick = plain_event(EVENT_TICK, 0, 1),
                 sample = plain_event(EVENT_SAMPLE, 1, 1),
                 no_task = plain_event(EVENT_CANCEL, 0, 1);

    assert_int_equal(store_append(store, &submit, 1, NULL, &fault), -EINVAL);
    assert_non_null(strstr(fault.text, "no transaction"));
    assert_int_equal(store_commit(store, &fault), -EINVAL);

    begin(store);
    assert_int_equal(store_append(store, &tick, 1, NULL, &fault), -EINVAL);
    assert_int_equal(store_append(store, &sample, 1, NULL, &fault), -EINVAL);
    assert_int_equal(store_append(store, &no_task, 1, NULL, &fault), -EINVAL);
    json_t *list = json_array();
    assert_int_equal(store_append(store, &submit, 1, list, &fault), -EINVAL);
    json_decref(list);
    append(store, submit);
    commit(store);
    assert_string_equal(replayed(store), "SUBMIT1 ");
    store_close(store);
}

static void a_task_is_submitted_once_only(void **state)
{
    struct store *store = open_log(*state);
    struct event again = submit_event(1, 2);
    begin(store);
    append(store, submit_event(1, 1));
    commit(store);
    begin(store);
    append(store, submit_event(2, 1));
    assert_true(store_append(store, &again, 2, NULL, NULL) < 0);
    assert_int_equal(store_commit(store, NULL), -EINVAL);
    assert_string_equal(replayed(store), "SUBMIT1 ");
    store_close(store);
}

static int stop_at_second(
    void *context, const struct event *event, int64_t wall_us, const json_t *detail)
{
    return ++*(int *)context == 2 ? 42 : 0;
}

static void a_callback_can_end_the_walk(void **state)
{
    struct store *store = open_log(*state);
    int calls = 0;
    begin(store);
    append(store, submit_event(1, 1));
    append(store, place_event(1, 2));
    append(store, plain_event(EVENT_STARTED, 1, 3));
    commit(store);
    assert_int_equal(store_task_events(store, 1, find_policy, stop_at_second, &calls, NULL), 42);
    assert_int_equal(calls, 2);
    calls = 10;
    assert_int_equal(store_task_events(store, 1, find_policy, stop_at_second, &calls, NULL), 0);
    assert_int_equal(calls, 13);
    assert_int_equal(store_task_events(store, 2, find_policy, stop_at_second, &calls, NULL), 0);
    assert_int_equal(calls, 13);
    store_close(store);
}

static const struct policy *find_no_policy(const char *name)
{
    return NULL;
}

static void an_event_that_is_not_understood_is_named(void **state)
{
    struct store *store = open_log(*state);
    struct fault fault = {""};
    int calls = 0;
    begin(store);
    append(store, gpus_event(1));
    append(store, submit_event(5, 1));
    commit(store);
    assert_int_equal(store_replay(store, find_no_policy, stop_at_second, &calls, &fault), -EUCLEAN);
    assert_non_null(
        strstr(fault.text, "event 2 (SUBMIT of task 5): policy: 'magm' is not known here"));
    store_close(store);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, make_folder, remove_folder)
    const struct CMUnitTest tests[] = {
        TEST(an_array_is_one_event),
        TEST(an_array_is_forgotten_with_its_last_task),
        TEST(events_come_back_as_they_were),
        TEST(what_is_gone_is_kept),
        TEST(an_empty_log_is_empty),
        TEST(ended_tasks_are_not_replayed),
        TEST(the_coresidents_of_a_running_task_are_replayed),
        TEST(what_was_not_committed_never_was),
        TEST(what_cannot_be_appended_is_refused),
        TEST(a_task_is_submitted_once_only),
        TEST(a_callback_can_end_the_walk),
        TEST(an_event_that_is_not_understood_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
