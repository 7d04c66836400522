/* SPDX-License-Identifier: Apache-2.0 */
/* Claims on a GPU, and which GPUs are available in spite of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/view.h"

static void a_set_of_kinds_finds_only_those(void **state)
{
    uint64_t claims[CLAIM_KINDS] = {[CLAIM_HEAD] = 7};
    assert_true(claims_any(claims, CLAIMS_HEAD));
    assert_true(claims_any(claims, CLAIMS_PASSING));
    assert_false(claims_any(claims, CLAIMS_BARRING));
    assert_false(claims_any(claims, CLAIMS_NONE));
}

static void a_claim_ends_for_its_task_only(void **state)
{
    uint64_t claims[CLAIM_KINDS] = {[CLAIM_CLOSED] = 7, [CLAIM_EXCLUSIVE] = 7};
    claims_end(claims, CLAIM_CLOSED, 8);
    assert_int_equal(claims[CLAIM_CLOSED], 7);
    claims_end(claims, CLAIM_CLOSED, 7);
    assert_int_equal(claims[CLAIM_CLOSED], 0);
    assert_int_equal(claims[CLAIM_EXCLUSIVE], 7);
}

static void dropping_what_passes_leaves_exclusive_tasks(void **state)
{
    uint64_t claims[CLAIM_KINDS] = {1, 2, 3, 4};
    claims_drop(claims, CLAIMS_PASSING);
    for (int kind = 0; kind < CLAIM_KINDS; kind++)
        assert_int_equal(claims[kind] != 0, kind == CLAIM_EXCLUSIVE);
}

/* One fact is changed at a time. */
static void a_gpu_is_available_unless_something_keeps_it_from_the_task(void **state)
{
    struct gpu_view gpus[1] = {{.health = VIEW_OK, .id = {.is_place = true}}};
    struct cluster_view view = {.gpus = gpus, .n_gpus = 1};
    struct task task = {.request = {.gpus = 1}};
    uint64_t set_aside[1] = {0};
    assert_true(cluster_view_is_available(&view, 0, &task, CLAIMS_BARRING, set_aside));
    set_aside[0] = 3;
    assert_false(cluster_view_is_available(&view, 0, &task, CLAIMS_BARRING, set_aside));
    assert_true(cluster_view_is_available(&view, 0, &task, CLAIMS_BARRING, NULL));
    gpus[0].claims[CLAIM_DRAIN] = 9;
    assert_false(cluster_view_is_available(&view, 0, &task, CLAIMS_LEAVING, NULL));
    assert_true(cluster_view_is_available(&view, 0, &task, CLAIMS_NONE, NULL));
    gpus[0].health = VIEW_LOST;
    assert_false(cluster_view_is_available(&view, 0, &task, CLAIMS_NONE, NULL));
    gpus[0].health = VIEW_OK;
    gpus[0].id.is_place = false;
    assert_false(cluster_view_is_available(&view, 0, &task, CLAIMS_NONE, NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_set_of_kinds_finds_only_those),
        cmocka_unit_test(a_claim_ends_for_its_task_only),
        cmocka_unit_test(dropping_what_passes_leaves_exclusive_tasks),
        cmocka_unit_test(a_gpu_is_available_unless_something_keeps_it_from_the_task),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
