/* SPDX-License-Identifier: Apache-2.0 */
/* Which collectives a CUDA graph launches: from its capture to its executables. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "preload/graph_collectives.h"
#include "preload/message_page.h"

static struct graph_collectives table;

static int clear(void **state)
{
    table = (struct graph_collectives){0};
    return 0;
}

static const struct graph_launch reduce = {.communicator = 7, .count = 1};

static void test_from_a_capture_to_its_executables(void **state)
{
    const struct graph_launch send = {7, message_ends(0, 1), 1};
    for (int i = 0; i < 50; i++)
        assert_true(graph_add(&table, GRAPH_CAPTURE, 1, &reduce));
    assert_true(graph_add(&table, GRAPH_CAPTURE, 1, &send));
    assert_true(graph_copy(&table, GRAPH_CAPTURE, 1, GRAPH_MADE, 100));
    graph_forget(&table, GRAPH_CAPTURE, 1);
    assert_true(graph_copy(&table, GRAPH_MADE, 100, GRAPH_EXECUTABLE, 200));
    assert_true(graph_copy(&table, GRAPH_MADE, 100, GRAPH_EXECUTABLE, 201));
    graph_forget(&table, GRAPH_MADE, 100);
    graph_forget(&table, GRAPH_EXECUTABLE, 200);
    assert_null(graph_find(&table, GRAPH_CAPTURE, 1));
    assert_null(graph_find(&table, GRAPH_MADE, 100));
    assert_null(graph_find(&table, GRAPH_EXECUTABLE, 200));
    const struct graph *graph = graph_find(&table, GRAPH_EXECUTABLE, 201);
    assert_non_null(graph);
    assert_int_equal(graph->n, 2);
    assert_int_equal(graph->launches[0].count, 50);
    assert_int_equal(graph->launches[1].ends, message_ends(0, 1));
    assert_int_equal(graph->launches[1].count, 1);
}

/* The same number is of another thing in each kind. */
static void test_kinds_are_apart(void **state)
{
    assert_true(graph_add(&table, GRAPH_CAPTURE, 1, &reduce));
    assert_null(graph_find(&table, GRAPH_MADE, 1));
    assert_true(graph_add(&table, GRAPH_MADE, 1, &reduce));
    graph_forget_all(&table, GRAPH_CAPTURE);
    assert_null(graph_find(&table, GRAPH_CAPTURE, 1));
    assert_non_null(graph_find(&table, GRAPH_MADE, 1));
}

static void test_a_graph_without_collectives_takes_no_place(void **state)
{
    assert_true(graph_copy(&table, GRAPH_MADE, 100, GRAPH_EXECUTABLE, 200));
    assert_null(graph_find(&table, GRAPH_EXECUTABLE, 200));
}

static void test_what_has_no_place_is_said(void **state)
{
    struct graph_launch launch = reduce;
    for (unsigned i = 0; i < GRAPH_LAUNCHES_MAX; i++) {
        launch.communicator = i + 1;
        assert_true(graph_add(&table, GRAPH_CAPTURE, 1, &launch));
    }
    launch.communicator = GRAPH_LAUNCHES_MAX + 1;
    assert_false(graph_add(&table, GRAPH_CAPTURE, 1, &launch));
    for (uint64_t i = 1; i < GRAPHS_MAX; i++)
        assert_true(graph_add(&table, GRAPH_MADE, i, &reduce));
    assert_false(graph_add(&table, GRAPH_MADE, GRAPHS_MAX, &reduce));
    assert_false(graph_copy(&table, GRAPH_CAPTURE, 1, GRAPH_MADE, GRAPHS_MAX));
    graph_forget(&table, GRAPH_MADE, 5);
    assert_true(graph_copy(&table, GRAPH_CAPTURE, 1, GRAPH_MADE, GRAPHS_MAX));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_from_a_capture_to_its_executables, clear),
        cmocka_unit_test_setup(test_kinds_are_apart, clear),
        cmocka_unit_test_setup(test_a_graph_without_collectives_takes_no_place, clear),
        cmocka_unit_test_setup(test_what_has_no_place_is_said, clear),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
