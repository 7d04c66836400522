/* SPDX-License-Identifier: Apache-2.0 */
/* Effects keep their order, and many of them cost no more time each than few. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include "daemon/effect_queue.h"

/* Moving the others up for each one, and searching all of them, took 30 s for so many. */
enum { MANY = 200000, LIMIT_S = 5 };

static void add(struct effect_queue *queue, enum effect_kind kind, uint64_t task)
{
    assert_int_equal(effect_queue_add(queue, (struct pending_effect){kind, task}), 0);
}

static void test_first_in_first_out(void **state)
{
    struct effect_queue queue = {0};
    uint64_t added = 0, taken = 0;
    for (int round = 0; round < 100; round++) {
        for (int i = 0; i < round % 7; i++)
            add(&queue, EFFECT_START, ++added);
        for (int i = 0; i < round % 5 && taken < added; i++)
            assert_int_equal(effect_queue_take(&queue).task, ++taken);
        assert_int_equal(effect_queue_is_empty(&queue), taken == added);
    }
    effect_queue_fini(&queue);
}

static void test_a_task_is_there_until_its_last_effect_is_taken(void **state)
{
    struct effect_queue queue = {0};
    add(&queue, EFFECT_START, 7);
    add(&queue, EFFECT_KILL, 8);
    add(&queue, EFFECT_KILL, 7);
    effect_queue_take(&queue);
    assert_true(effect_queue_has(&queue, 7));
    assert_false(effect_queue_has(&queue, 9));
    effect_queue_take(&queue);
    assert_false(effect_queue_has(&queue, 8));
    effect_queue_take(&queue);
    assert_false(effect_queue_has(&queue, 7));
    effect_queue_fini(&queue);
}

static void test_the_first_of_a_kind_is_taken_before_others(void **state)
{
    struct effect_queue queue = {0};
    struct pending_effect found;
    add(&queue, EFFECT_SUSPEND, 1);
    add(&queue, EFFECT_RESUME, 2);
    add(&queue, EFFECT_KILL, 3);
    add(&queue, EFFECT_KILL, 4);
    assert_true(effect_queue_take_kind(&queue, EFFECT_KILL, &found));
    assert_int_equal(found.task, 3);
    assert_true(effect_queue_take_kind(&queue, EFFECT_KILL, &found));
    assert_int_equal(found.task, 4);
    assert_false(effect_queue_take_kind(&queue, EFFECT_KILL, &found));
    assert_int_equal(effect_queue_take(&queue).task, 1);
    assert_int_equal(effect_queue_take(&queue).task, 2);
    effect_queue_fini(&queue);
}

static void test_many(void **state)
{
    struct effect_queue queue = {0};
    clock_t began = clock();
    for (uint64_t task = 1; task <= MANY; task++) {
        assert_false(effect_queue_has(&queue, task));
        add(&queue, EFFECT_START, task);
    }
    for (uint64_t task = 1; task <= MANY; task++)
        assert_int_equal(effect_queue_take(&queue).task, task);
    assert_true((clock() - began) / CLOCKS_PER_SEC < LIMIT_S);
    effect_queue_fini(&queue);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_in_first_out),
        cmocka_unit_test(test_a_task_is_there_until_its_last_effect_is_taken),
        cmocka_unit_test(test_the_first_of_a_kind_is_taken_before_others),
        cmocka_unit_test(test_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
