/* SPDX-License-Identifier: Apache-2.0 */
/* Each rule alone: a task that may be suspended, and one fact changed. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/units.h"
#include "checkpoint/suspend_rules.h"

static struct suspend_facts fine(void)
{
    return (struct suspend_facts){
        .has_helper = true,
        .cuda_version = 13000,
        .same_kind = true,
        .n_gpus = 2,
        .n_processes = 1,
        .gpu_bytes = reading_of(7.3 * GIB),
        .host_available_bytes = reading_of(64.0 * GIB),
        .cgroup_left_bytes = reading_of(INFINITY),
        .suspended_max_bytes = 40 * GIB,
    };
}

#define REFUSED(refusal, ...)                                                                      \
    do {                                                                                           \
        struct suspend_facts facts = fine();                                                       \
        __VA_ARGS__;                                                                               \
        assert_int_equal(suspend_check(&facts), refusal);                                          \
    } while (0)

static void test_a_plain_task_may(void **state)
{
    REFUSED(SUSPEND_ALLOWED, (void)facts);
    REFUSED(SUSPEND_ALLOWED, facts.is_move = true);
    REFUSED(SUSPEND_ALLOWED, facts.has_nccl = true);
    REFUSED(SUSPEND_ALLOWED, facts.n_processes = 4);
    REFUSED(SUSPEND_ALLOWED, facts.cuda_version = CUDA_VERSION_UNKNOWN);
}

static void test_the_machine(void **state)
{
    REFUSED(SUSPEND_NO_DRIVER, facts.has_helper = false);
    REFUSED(SUSPEND_DRIVER_TOO_OLD, facts.cuda_version = 12040);
    REFUSED(SUSPEND_ALLOWED, facts.cuda_version = 12080);
    REFUSED(SUSPEND_DRIVER_HANGS, facts.may_hang_host = true);
    REFUSED(SUSPEND_MOVE_TOO_OLD, facts.cuda_version = 12080; facts.is_move = true);
    REFUSED(SUSPEND_MOVE_ONE_GPU, facts.n_gpus = 1; facts.is_move = true);
    REFUSED(SUSPEND_MOVE_OTHER_KIND, facts.same_kind = false; facts.is_move = true);
}

static void test_the_task(void **state)
{
    REFUSED(SUSPEND_MPS, facts.is_mps_client = true);
    REFUSED(SUSPEND_ALLOWED, facts.is_mps_client = facts.is_by_carrier = facts.has_nccl = true);
    REFUSED(SUSPEND_NCCL, facts.is_mps_client = facts.is_by_carrier = facts.has_nccl = true;
            facts.n_processes = 2);
    REFUSED(SUSPEND_MPS, facts.is_mps_client = facts.is_by_carrier = facts.is_move = true);
    REFUSED(SUSPEND_MPS, facts.is_mps_client = facts.is_by_carrier = facts.is_mig = true);
    REFUSED(SUSPEND_NO_CUDA, facts.is_mps_client = facts.is_by_carrier = true;
            facts.n_processes = 0);
    REFUSED(SUSPEND_PAUSED, facts.is_mps_client = facts.is_by_carrier = facts.is_paused = true);
    REFUSED(SUSPEND_OVER_MAX, facts.is_mps_client = facts.is_by_carrier = true;
            facts.suspended_max_bytes = 0);
    REFUSED(SUSPEND_ALLOWED, facts.counts_collectives = facts.is_by_carrier = facts.has_nccl = true;
            facts.n_processes = 2);
    REFUSED(SUSPEND_ALLOWED, facts.counts_collectives = facts.is_by_carrier = facts.has_nccl = true;
            facts.is_mps_client = true; facts.n_processes = 2);
    REFUSED(SUSPEND_NCCL, facts.counts_collectives = facts.has_nccl = true; facts.n_processes = 2);
    REFUSED(SUSPEND_NCCL,
            facts.counts_collectives = facts.is_by_carrier = facts.has_nccl = facts.is_move = true;
            facts.n_processes = 2);
    REFUSED(SUSPEND_MIG, facts.is_mig = true);
    REFUSED(SUSPEND_NO_CUDA, facts.n_processes = 0);
    REFUSED(SUSPEND_32_BIT, facts.has_32_bit = true);
    REFUSED(SUSPEND_TRACED, facts.is_traced = true);
    REFUSED(SUSPEND_PROFILER, facts.has_profiler = true);
    REFUSED(SUSPEND_MANAGED_MEMORY, facts.uses_managed = true);
    REFUSED(SUSPEND_CUDA_IPC, facts.uses_ipc = true);
    REFUSED(SUSPEND_TOO_MANY, facts.has_too_many = true);
    REFUSED(
        SUSPEND_TOO_MANY, facts.has_too_many = facts.is_mps_client = facts.is_by_carrier = true);
    REFUSED(SUSPEND_PAUSED, facts.is_paused = true);
}

static void test_nccl_among_several_processes(void **state)
{
    REFUSED(SUSPEND_NCCL, facts.has_nccl = true; facts.n_processes = 2);
    REFUSED(SUSPEND_ALLOWED, facts.has_nccl = true; facts.n_processes = 1);
}

/* Unknown is not "none": the driver would lose them. */
static void test_programs_that_cannot_be_read(void **state)
{
    REFUSED(SUSPEND_NCCL_UNKNOWN, facts.may_have_nccl = true; facts.n_processes = 2);
    REFUSED(SUSPEND_ALLOWED, facts.may_have_nccl = true; facts.n_processes = 1);
    REFUSED(SUSPEND_NCCL, facts.may_have_nccl = facts.has_nccl = true; facts.n_processes = 2);
    REFUSED(SUSPEND_NCCL_UNKNOWN, facts.is_mps_client = facts.is_by_carrier = true;
            facts.may_have_nccl = true; facts.n_processes = 2);
}

static void test_host_memory(void **state)
{
    REFUSED(SUSPEND_HOST_MEMORY, facts.host_available_bytes = reading_of(8.0 * GIB));
    REFUSED(SUSPEND_ALLOWED, facts.host_available_bytes = reading_of(9.4 * GIB));
    REFUSED(
        SUSPEND_ALLOWED, facts.cgroup_left_bytes = reading_of(GIB), facts.pool_bytes = 6.5 * GIB);
    REFUSED(SUSPEND_CGROUP_MEMORY, facts.cgroup_left_bytes = reading_of(7.2 * GIB));
    REFUSED(SUSPEND_ALLOWED, facts.cgroup_left_bytes = reading_of(7.4 * GIB));
    REFUSED(SUSPEND_OVER_MAX, facts.suspended_bytes = 33 * GIB);
    REFUSED(SUSPEND_ALLOWED, facts.suspended_bytes = 32 * GIB);
    REFUSED(SUSPEND_OVER_MAX, facts.suspended_max_bytes = 0);
}

static void test_unknown_memory_is_never_enough(void **state)
{
    REFUSED(SUSPEND_MEMORY_UNKNOWN, facts.gpu_bytes = READING_NONE);
    REFUSED(SUSPEND_MEMORY_UNKNOWN, facts.host_available_bytes = READING_NONE);
    REFUSED(SUSPEND_MEMORY_UNKNOWN, facts.cgroup_left_bytes = READING_NONE);
}

static void test_the_reserve_grows_with_the_host(void **state)
{
    assert_int_equal(suspend_host_reserve(0), 2 * GIB);
    assert_int_equal(suspend_host_reserve(100 * GIB), 5 * GIB);
}

static void test_every_refusal_has_words(void **state)
{
    struct suspend_facts facts = fine();
    char text[512];
    for (int i = 1; i < SUSPEND_REFUSALS; i++) {
        suspend_refusal_write((enum suspend_refusal)i, &facts, text, sizeof text);
        assert_true(strlen(text) > 20);
    }
    facts.driver_fault = "libcuda.so.1 is missing";
    suspend_refusal_write(SUSPEND_NO_DRIVER, &facts, text, sizeof text);
    assert_non_null(strstr(text, "libcuda.so.1 is missing"));
    facts.host_available_bytes = reading_of(5.0 * GIB);
    suspend_refusal_write(SUSPEND_HOST_MEMORY, &facts, text, sizeof text);
    assert_non_null(strstr(text, "(7.3 GiB wanted, 5.0 GiB free)"));
    facts.pool_bytes = 7.0 * GIB;
    suspend_refusal_write(SUSPEND_HOST_MEMORY, &facts, text, sizeof text);
    assert_non_null(strstr(text, "(307.2 MiB wanted, 5.0 GiB free)"));
}

/* The largest GPU's whole memory. */
static void test_132_gib(void **state)
{
    char text[512];
    REFUSED(SUSPEND_OVER_MAX, facts.gpu_bytes = reading_of(132.0 * GIB));
    struct suspend_facts facts = fine();
    facts.gpu_bytes = reading_of(132.0 * GIB);
    facts.suspended_max_bytes = 200 * GIB;
    facts.host_available_bytes = reading_of(64.0 * GIB);
    assert_int_equal(suspend_check(&facts), SUSPEND_HOST_MEMORY);
    suspend_refusal_write(SUSPEND_HOST_MEMORY, &facts, text, sizeof text);
    assert_non_null(strstr(text, "too little free memory"));
    assert_non_null(strstr(text, "(132.0 GiB wanted, 64.0 GiB free)"));
    facts.pool_bytes = 100.0 * GIB;
    assert_int_equal(suspend_check(&facts), SUSPEND_ALLOWED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_plain_task_may),
        cmocka_unit_test(test_132_gib),
        cmocka_unit_test(test_the_machine),
        cmocka_unit_test(test_the_task),
        cmocka_unit_test(test_nccl_among_several_processes),
        cmocka_unit_test(test_programs_that_cannot_be_read),
        cmocka_unit_test(test_host_memory),
        cmocka_unit_test(test_unknown_memory_is_never_enough),
        cmocka_unit_test(test_the_reserve_grows_with_the_host),
        cmocka_unit_test(test_every_refusal_has_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
