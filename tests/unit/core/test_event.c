/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of events: each list and text that an event points to is the copy's own. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/array.h"
#include "core/event.h"

static struct event copy_of(const struct event *event)
{
    struct event copy;
    assert_int_equal(event_copy(event, &copy), 0);
    assert_int_equal(copy.kind, event->kind);
    return copy;
}

static void lists_of_gpus_are_copied(void **state)
{
    static const enum event_kind kinds[] = {EVENT_MOVE, EVENT_MOVING, EVENT_RESUMING};
    int gpus[] = {3, 1};
    struct event place = {.kind = EVENT_PLACE, .task = 7, .place = {.gpus = gpus, .n = 2}};
    struct event copy = copy_of(&place);
    assert_int_equal(copy.task, 7);
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        struct event event = {.kind = kinds[i], .yield = {.gpus = gpus, .n = 2}};
        struct event other = copy_of(&event);
        assert_ptr_not_equal(other.yield.gpus, gpus);
        assert_memory_equal(other.yield.gpus, gpus, sizeof gpus);
        event_release(&other);
        assert_null(other.yield.gpus);
    }
    gpus[0] = 5;
    assert_int_equal(copy.place.gpus[0], 3);
    assert_int_equal(copy.place.gpus[1], 1);
    event_release(&copy);
}

static void a_submission_owns_its_dependencies_its_kinds_and_its_array(void **state)
{
    struct dependency after[] = {{DEPENDENCY_OK, 1, 2, false}};
    struct array_element elements[] = {{4, 0}, {5, 1}};
    char kinds[] = "A100";
    struct event submit = {.kind = EVENT_SUBMIT, .task = 3};
    submit.submit.request.after = after;
    submit.submit.request.n_after = 1;
    submit.submit.request.gpu_kind = kinds;
    submit.submit.elements = elements;
    submit.submit.n_elements = 2;
    struct event copy = copy_of(&submit);
    memset(after, 0, sizeof after);
    memset(elements, 0, sizeof elements);
    memset(kinds, 'x', sizeof kinds - 1);
    assert_int_equal(copy.submit.request.after[0].last, 2);
    assert_string_equal(copy.submit.request.gpu_kind, "A100");
    assert_int_equal(copy.submit.elements[1].task, 5);
    event_release(&copy);
}

static void other_lists_are_copied(void **state)
{
    struct gpu_identity identities[] = {{.uuid = "GPU-a"}, {.uuid = "GPU-b"}};
    struct dependency after[] = {{DEPENDENCY_ANY, 8, 9, false}};
    struct task_memory tasks[] = {{.task = 7, .mem_used_bytes = reading_of(5)}};
    int64_t free_us[] = {10, 20};
    struct event events[] = {
        {.kind = EVENT_GPUS, .gpus = {.list = identities, .n = 2}},
        {.kind = EVENT_UPDATE, .update = {.after = after, .n_after = 1}},
        {.kind = EVENT_SAMPLE, .sample = {.tasks = tasks, .n_tasks = 1}},
        {.kind = EVENT_FIFO, .fifo = {.free_us = free_us, .n = 2}},
    };
    struct event copies[4];
    for (int i = 0; i < 4; i++)
        copies[i] = copy_of(&events[i]);
    memset(identities, 0, sizeof identities);
    memset(after, 0, sizeof after);
    memset(tasks, 0, sizeof tasks);
    memset(free_us, 0, sizeof free_us);
    assert_string_equal(copies[0].gpus.list[1].uuid, "GPU-b");
    assert_int_equal(copies[1].update.after[0].first, 8);
    assert_int_equal(copies[2].sample.tasks[0].task, 7);
    assert_int_equal(copies[3].fifo.free_us[1], 20);
    for (int i = 0; i < 4; i++)
        event_release(&copies[i]);
}

/* NULL may mean another thing than an empty list: a submission of no array has no elements. */
static void an_empty_list_and_none_stay_different(void **state)
{
    const int none[] = {0};
    struct event empty = {.kind = EVENT_PLACE, .place = {.gpus = none, .n = 0}};
    struct event submit = {.kind = EVENT_SUBMIT};
    struct event copy = copy_of(&empty), other = copy_of(&submit);
    assert_non_null(copy.place.gpus);
    assert_int_equal(copy.place.n, 0);
    assert_null(other.submit.elements);
    assert_null(other.submit.request.gpu_kind);
    event_release(&copy);
    event_release(&other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_of_gpus_are_copied),
        cmocka_unit_test(a_submission_owns_its_dependencies_its_kinds_and_its_array),
        cmocka_unit_test(other_lists_are_copied),
        cmocka_unit_test(an_empty_list_and_none_stay_different),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
