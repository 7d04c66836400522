/* SPDX-License-Identifier: Apache-2.0 */
/* On which GPU cuDNN may be asked. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/units.h"
#include "daemon/kernels/asking_rule.h"

enum { N = 3 };

#define NOW_US    (10 * INT64_C(1000000))
#define NEED_SIZE (768 * MIB)

static struct gpu_view gpus[N];
static struct resident residents[N][2];
static const struct cluster_view view = {.gpus = gpus, .n_gpus = N};
static const struct conditions conditions = {.sample_valid_us = 3000000};

/* Three idle GPUs of 80 GiB, the last of another kind. */
static int begin(void **state)
{
    memset(gpus, 0, sizeof gpus);
    memset(residents, 0, sizeof residents);
    for (int i = 0; i < N; i++) {
        gpus[i] = (struct gpu_view){.health = VIEW_OK,
            .is_listed = true,
            .sampled_us = NOW_US,
            .mem_used_bytes = reading_of(0),
            .residents = residents[i]};
        gpus[i].id.is_place = true;
        gpus[i].id.mem_total_bytes = 80 * GIB;
        strcpy(gpus[i].id.name, i < 2 ? "NVIDIA H100" : "NVIDIA A100");
    }
    return 0;
}

static int choose(const char *kind)
{
    const char *why = "";
    int gpu = asking_choose(&view, kind, &conditions, NEED_SIZE, NOW_US, &why);
    assert_true(gpu >= 0 || *why);
    return gpu;
}

static bool is_allowed(void)
{
    const char *why = NULL;
    bool allowed = asking_is_allowed(&gpus[0], &conditions, NEED_SIZE, NOW_US, &why);
    assert_true(allowed || why);
    return allowed;
}

static void add_resident(int gpu, double used_bytes, double need_bytes)
{
    gpus[gpu].residents[gpus[gpu].n_residents++] = (struct resident){.task = 1,
        .need_bytes = reading_of(need_bytes),
        .mem_used_bytes = reading_of(used_bytes),
        .level_bytes = used_bytes};
    gpus[gpu].mem_used_bytes.value += used_bytes;
}

static void test_kind_and_room(void **state)
{
    assert_int_equal(choose("NVIDIA A100"), 2);
    assert_int_equal(choose("NVIDIA V100"), -1);
    gpus[0].mem_used_bytes = reading_of(20.0 * GIB);
    assert_int_equal(choose("NVIDIA H100"), 1);
    add_resident(1, 1.0 * GIB, 1.0 * GIB);
    assert_int_equal(choose("NVIDIA H100"), 0); /* fewer tasks count before free memory */
}

static void test_only_what_is_free(void **state)
{
    gpus[0].mem_used_bytes = reading_of(80.0 * GIB - NEED_SIZE);
    assert_true(is_allowed());
    gpus[0].mem_used_bytes.value += 1;
    assert_false(is_allowed());
    gpus[0].mem_used_bytes = READING_NONE;
    assert_false(is_allowed());
}

static void test_what_tasks_will_take_is_not_free(void **state)
{
    add_resident(0, 1.0 * GIB, 80.0 * GIB);
    assert_false(is_allowed());
}

static void test_an_old_sample_says_nothing(void **state)
{
    gpus[0].sampled_us = NOW_US - conditions.sample_valid_us - 1;
    assert_false(is_allowed());
}

static void test_never_beside_an_exclusive_task(void **state)
{
    gpus[0].claims[CLAIM_EXCLUSIVE] = 7;
    assert_false(is_allowed());
    gpus[0].claims[CLAIM_EXCLUSIVE] = 0;
    gpus[0].claims[CLAIM_HEAD] = 7;
    assert_false(is_allowed());
}

static void test_services_and_promises_are_left_alone(void **state)
{
    add_resident(0, 1.0 * GIB, 1.0 * GIB);
    assert_true(is_allowed());
    residents[0][0].service.is_service = true;
    assert_false(is_allowed());
    residents[0][0].service.is_service = false;
    residents[0][0].promise.slowdown_max = 1.5;
    assert_false(is_allowed());
}

static void test_gpus_that_are_not_used(void **state)
{
    gpus[0].health = VIEW_FAULTY;
    assert_false(is_allowed());
    gpus[0].health = VIEW_OK;
    gpus[0].id.one_process = true;
    assert_false(is_allowed());
    gpus[0].id.one_process = false;
    gpus[0].id.is_place = false;
    assert_false(is_allowed());
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup(test_kind_and_room, begin),
        cmocka_unit_test_setup(test_only_what_is_free, begin),
        cmocka_unit_test_setup(test_what_tasks_will_take_is_not_free, begin),
        cmocka_unit_test_setup(test_an_old_sample_says_nothing, begin),
        cmocka_unit_test_setup(test_never_beside_an_exclusive_task, begin),
        cmocka_unit_test_setup(test_services_and_promises_are_left_alone, begin),
        cmocka_unit_test_setup(test_gpus_that_are_not_used, begin)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
