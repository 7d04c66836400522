/* SPDX-License-Identifier: Apache-2.0 */
/* The order of a queue, and the positions in it, under insertions and removals anywhere. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/queue.h"

enum { N = 40 };

static struct task tasks[N + 1];
static struct task_queue queue;

static int reset(void **state)
{
    memset(tasks, 0, sizeof tasks);
    memset(&queue, 0, sizeof queue);
    for (uint64_t i = 1; i <= N; i++)
        tasks[i].id = i;
    return 0;
}

/* "3 5 8" */
static void assert_order(const char *expected)
{
    char text[256] = "";
    int n = 0;
    const struct task *last = NULL;
    for (const struct task *task = queue.first; task; last = task, task = task->next, n++) {
        snprintf(text + strlen(text), sizeof text - strlen(text), n ? " %d" : "%d", (int)task->id);
        assert_ptr_equal(task->previous, last);
        assert_ptr_equal(task->queue, &queue);
        assert_int_equal(queue_ahead_of(task), n);
    }
    assert_ptr_equal(queue.last, last);
    assert_int_equal(queue.count, n);
    assert_string_equal(text, expected);
}

static void keeps_the_order_of_submission(void **state)
{
    assert_order("");
    queue_push_in_order(&queue, &tasks[5]);
    queue_push_in_order(&queue, &tasks[9]);
    assert_order("5 9");
    queue_push_in_order(&queue, &tasks[7]);
    assert_order("5 7 9");
    queue_push_in_order(&queue, &tasks[1]);
    assert_order("1 5 7 9");
}

static void several_queues_are_counted_together(void **state)
{
    struct task_queue other = {0};
    int total = 0;
    queue.total = other.total = &total;
    queue_push_in_order(&queue, &tasks[1]);
    queue_push_in_order(&other, &tasks[2]);
    queue_push_in_order(&other, &tasks[3]);
    assert_int_equal(total, 3);
    queue_remove(&tasks[2]);
    queue_remove(&tasks[1]);
    assert_int_equal(total, 1);
}

static void takes_out_anywhere(void **state)
{
    for (int i = 1; i <= 5; i++)
        queue_push_in_order(&queue, &tasks[i]);
    queue_remove(&tasks[3]);
    assert_order("1 2 4 5");
    assert_null(tasks[3].queue);
    queue_remove(&tasks[1]);
    assert_order("2 4 5");
    queue_remove(&tasks[5]);
    assert_order("2 4");
    queue_remove(&tasks[2]);
    queue_remove(&tasks[4]);
    assert_order("");
    queue_push_in_order(&queue, &tasks[3]);
    assert_order("3");
}

static bool is_in_order(const struct task *before, const struct task *after)
{
    int priority = before->request.priority, next = after->request.priority;
    return priority > next || (priority == next && before->id < after->id);
}

/* Order and positions are right after each change at any place. */
static void assert_positions_stay_right(int n_classes)
{
    uint32_t random = 12345;
    for (int i = 1; i <= N; i++)
        tasks[i].request.priority = PRIORITY_LOW + i % n_classes;
    for (int i = 0; i < 20000; i++) {
        random = random * 1664525u + 1013904223u;
        struct task *task = &tasks[1 + (random >> 8) % N];
        if (task->queue)
            queue_remove(task);
        else
            queue_push_in_order(&queue, task);
        if (random >> 30)
            continue;
        int n = 0;
        for (const struct task *each = queue.first; each; each = each->next) {
            assert_int_equal(queue_ahead_of(each), n++);
            assert_true(!each->next || is_in_order(each, each->next));
        }
    }
}

static void positions_stay_right_in_one_class(void **state)
{
    assert_positions_stay_right(1);
}

static void positions_stay_right_in_all_classes(void **state)
{
    assert_positions_stay_right(PRIORITY_URGENT - PRIORITY_LOW + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(keeps_the_order_of_submission, reset),
        cmocka_unit_test_setup(several_queues_are_counted_together, reset),
        cmocka_unit_test_setup(takes_out_anywhere, reset),
        cmocka_unit_test_setup(positions_stay_right_in_one_class, reset),
        cmocka_unit_test_setup(positions_stay_right_in_all_classes, reset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
