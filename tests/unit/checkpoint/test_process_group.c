/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A group against a pretend driver that keeps the real one's rules: every order of faults leaves
 * all processes running or all suspended, unless the driver lost one.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "checkpoint/cuda_abi.h"
#include "checkpoint/process_group.h"

enum { N = 3, TRACE = 512 };

/* What the driver would say of each process, and what it was made to say. */
struct world {
    enum process_state states[N];
    bool has_reserved[N]; /* the helper holds memory for it */
    int fault_at;         /* the call of this number fails, */
    int fault_result;     /* so; 0: none fails */
    int kill_at;          /* before the call of this number a process is killed: */
    size_t killed;        /* this one; N: none */
    int calls;
    bool has_no_room;
    char trace[TRACE];
};

static struct process_group make_group(enum group_goal goal)
{
    struct process_group group;
    process_group_init(&group, goal);
    for (int i = 0; i < N; i++) {
        struct group_process *process = process_group_add(&group, 100 + i, 1);
        process->memory[0] = (struct group_memory){.gpu = "GPU-0", .bytes = 1000};
        process->n_memory = 1;
    }
    return group;
}

static struct world make_world(enum process_state state)
{
    struct world world = {.fault_at = -1, .killed = N};
    for (int i = 0; i < N; i++)
        world.states[i] = state;
    return world;
}

/* The driver's rules, as measured. */
static int change(struct world *world, size_t i, enum process_state from, enum process_state to)
{
    if (world->states[i] == PROCESS_FAILED)
        return CUDA_ERROR_OPERATING_SYSTEM;
    if (world->states[i] != from)
        return CUDA_ERROR_ILLEGAL_STATE;
    world->states[i] = to;
    return 0;
}

static int do_call(struct world *world, const struct group_step *step)
{
    if (step->call == HELPER_RELEASE)
        world->has_reserved[step->process] = false;
    else if (world->states[step->process] == PROCESS_GONE)
        return -ESRCH;
    switch (step->call) {
    case HELPER_LOCK:
        return change(world, step->process, PROCESS_RUNNING, PROCESS_LOCKED);
    case HELPER_SUSPEND:
        return change(world, step->process, PROCESS_LOCKED, PROCESS_SUSPENDED);
    case HELPER_RESUME:
        world->has_reserved[step->process] = false;
        if (world->has_no_room)
            world->states[step->process] = PROCESS_FAILED;
        return world->has_no_room ? CUDA_ERROR_OUT_OF_MEMORY
                                  : change(world, step->process, PROCESS_SUSPENDED, PROCESS_LOCKED);
    case HELPER_UNLOCK:
        return change(world, step->process, PROCESS_LOCKED, PROCESS_RUNNING);
    case HELPER_RESERVE:
        world->has_reserved[step->process] |= !world->has_no_room;
        return world->has_no_room ? CUDA_ERROR_OUT_OF_MEMORY : 0;
    default:
        return 0;
    }
}

/* A lost helper may have made its call before it died, or not. */
static int call_with_fault(struct world *world, const struct group_step *step)
{
    int number = world->calls++;
    if (number == world->kill_at && world->killed < N)
        world->states[world->killed] = PROCESS_GONE;
    if (number != world->fault_at)
        return do_call(world, step);
    if (world->fault_result == -EPIPE || world->fault_result == -ETIMEDOUT) {
        do_call(world, step);
        memset(world->has_reserved, 0, sizeof world->has_reserved); /* it ended with its memory */
    }
    return world->fault_result;
}

/* Whatever the answer is, the helper holds no memory after it. */
static enum group_answer run(struct world *world, struct process_group *group)
{
    struct group_step step;
    enum group_answer answer;
    for (int i = 0; (answer = process_group_next(group, &step)) == GROUP_CALL; i++) {
        assert_true(i < 200);
        int r = call_with_fault(world, &step);
        size_t used = strlen(world->trace);
        snprintf(
            world->trace + used, TRACE - used, "%s%zu ", helper_call_name(step.call), step.process);
        process_group_take(group, &step, r,
            step.call == HELPER_STATE && r == 0 ? world->states[step.process] : PROCESS_UNKNOWN);
    }
    for (int i = 0; i < N; i++)
        assert_false(world->has_reserved[i]);
    return answer;
}

static bool all_are(const struct world *world, enum process_state state)
{
    for (int i = 0; i < N; i++)
        if (world->states[i] != state)
            return false;
    return true;
}

static int64_t bytes_of(const struct process_group *group)
{
    int64_t sum = 0;
    for (size_t i = 0; i < group->count; i++)
        for (size_t k = 0; k < group->processes[i].n_memory; k++)
            sum += group->processes[i].memory[k].bytes;
    return sum;
}

static void test_all_are_locked_before_one_is_suspended(void **state)
{
    struct world world = make_world(PROCESS_RUNNING);
    struct process_group group = make_group(GROUP_SUSPENDED);
    assert_int_equal(run(&world, &group), GROUP_DONE);
    assert_true(all_are(&world, PROCESS_SUSPENDED));
    assert_string_equal(world.trace, "state0 state1 state2 lock0 lock1 lock2 "
                                     "checkpoint0 checkpoint1 checkpoint2 ");
    assert_int_equal(bytes_of(&group), 3000);
}

static void test_memory_is_reserved_for_all_before_one_is_restored(void **state)
{
    struct world world = make_world(PROCESS_SUSPENDED);
    struct process_group group = make_group(GROUP_RUNNING);
    assert_int_equal(run(&world, &group), GROUP_DONE);
    assert_true(all_are(&world, PROCESS_RUNNING));
    assert_string_equal(world.trace, "state0 state1 state2 reserve0 reserve1 reserve2 restore0 "
                                     "restore1 restore2 unlock0 unlock1 unlock2 ");
}

static void test_one_that_cannot_be_locked_frees_the_others(void **state)
{
    struct world world = make_world(PROCESS_RUNNING);
    struct process_group group = make_group(GROUP_SUSPENDED);
    world.fault_at = N + 1; /* the second lock */
    world.fault_result = CUDA_ERROR_NOT_SUPPORTED;
    assert_int_equal(run(&world, &group), GROUP_UNDONE);
    assert_true(all_are(&world, PROCESS_RUNNING));
    assert_int_equal(group.error, CUDA_ERROR_NOT_SUPPORTED);
    assert_int_equal(group.error_call, HELPER_LOCK);
    assert_int_equal(group.error_process, 1);
}

static void test_one_that_cannot_be_copied_brings_the_others_back(void **state)
{
    struct world world = make_world(PROCESS_RUNNING);
    struct process_group group = make_group(GROUP_SUSPENDED);
    world.fault_at = 2 * N + 2; /* the last copy */
    world.fault_result = CUDA_ERROR_NOT_SUPPORTED;
    assert_int_equal(run(&world, &group), GROUP_UNDONE);
    assert_true(all_are(&world, PROCESS_RUNNING));
}

static void test_no_room_leaves_all_suspended(void **state)
{
    struct world world = make_world(PROCESS_SUSPENDED);
    struct process_group group = make_group(GROUP_RUNNING);
    world.has_no_room = true;
    assert_int_equal(run(&world, &group), GROUP_NO_ROOM);
    assert_true(all_are(&world, PROCESS_SUSPENDED));
    world.has_no_room = false;
    group = make_group(GROUP_RUNNING);
    assert_int_equal(run(&world, &group), GROUP_DONE);
    assert_true(all_are(&world, PROCESS_RUNNING));
}

static void test_no_room_for_the_last_releases_the_others(void **state)
{
    struct world world = make_world(PROCESS_SUSPENDED);
    struct process_group group = make_group(GROUP_RUNNING);
    world.fault_at = N + 2; /* the last reservation */
    world.fault_result = CUDA_ERROR_OUT_OF_MEMORY;
    assert_int_equal(run(&world, &group), GROUP_NO_ROOM);
    assert_non_null(strstr(world.trace, "reserve2 release0 release1 "));
    assert_null(strstr(world.trace, "restore"));
}

static void test_a_restore_that_failed_is_not_repeated(void **state)
{
    struct world world = make_world(PROCESS_SUSPENDED);
    struct process_group group = make_group(GROUP_RUNNING);
    world.fault_at = 2 * N; /* the first restore */
    world.fault_result = CUDA_ERROR_OUT_OF_MEMORY;
    assert_int_equal(run(&world, &group), GROUP_BROKEN);
    assert_int_equal(group.error, CUDA_ERROR_OUT_OF_MEMORY);
    assert_null(strstr(strstr(world.trace, "restore") + 1, "restore"));
}

static void test_a_failed_process_is_found(void **state)
{
    struct world world = make_world(PROCESS_SUSPENDED);
    struct process_group group = make_group(GROUP_RUNNING);
    world.states[1] = PROCESS_FAILED;
    assert_int_equal(run(&world, &group), GROUP_BROKEN);
}

static void test_processes_that_end_do_not_count(void **state)
{
    struct world world = make_world(PROCESS_RUNNING);
    struct process_group group = make_group(GROUP_SUSPENDED);
    world.states[1] = PROCESS_GONE;
    assert_int_equal(run(&world, &group), GROUP_DONE);
    world = make_world(PROCESS_GONE);
    group = make_group(GROUP_SUSPENDED);
    assert_int_equal(run(&world, &group), GROUP_EMPTY);
}

/* A task that crashes when some of it is locked. */
static void test_one_that_ends_in_mid_suspension(void **state)
{
    for (int at = 0; at < 3 * N; at++) {
        struct world world = make_world(PROCESS_RUNNING);
        struct process_group group = make_group(GROUP_SUSPENDED);
        world.fault_at = at;
        world.fault_result = -ESRCH;
        assert_int_equal(run(&world, &group), GROUP_DONE);
    }
}

/* The helper is killed in each call in turn: the goal is reached. */
/* The others reach the goal. */
static void test_one_that_is_killed_before_any_call(void **state)
{
    for (enum group_goal goal = GROUP_RUNNING; goal <= GROUP_SUSPENDED; goal++)
        for (size_t killed = 0; killed < N; killed++)
            for (int at = 0; at < 13; at++) {
                enum process_state from = goal ? PROCESS_RUNNING : PROCESS_SUSPENDED;
                struct world world = make_world(from);
                struct process_group group = make_group(goal);
                world.killed = killed;
                world.kill_at = at;
                assert_int_equal(run(&world, &group), GROUP_DONE);
                for (size_t i = 0; i < N; i++)
                    assert_true(
                        world.states[i] == PROCESS_GONE || i != killed || at >= world.calls);
            }
}

/* All of them, in mid return. */
static void test_all_are_killed(void **state)
{
    struct world world = make_world(PROCESS_SUSPENDED);
    struct process_group group = make_group(GROUP_RUNNING);
    struct group_step step;
    while (process_group_next(&group, &step) == GROUP_CALL && step.call != HELPER_RESUME)
        process_group_take(&group, &step, do_call(&world, &step), world.states[step.process]);
    for (int i = 0; i < N; i++)
        world.states[i] = PROCESS_GONE;
    assert_int_equal(run(&world, &group), GROUP_EMPTY);
}

static void test_a_helper_that_dies_at_any_call(void **state)
{
    const enum process_state before[] = {PROCESS_SUSPENDED, PROCESS_RUNNING};
    for (int goal = GROUP_RUNNING; goal <= GROUP_SUSPENDED; goal++) {
        for (int at = 0; at < 4 * N; at++) {
            struct world world = make_world(before[goal]);
            struct process_group group = make_group((enum group_goal)goal);
            world.fault_at = at;
            world.fault_result = -EPIPE;
            assert_int_equal(run(&world, &group), GROUP_DONE);
            assert_true(all_are(&world, before[!goal]));
        }
    }
}

/* The daemon is killed at each call: its successor, which knows no state, reaches either goal. */
static void test_a_daemon_that_dies_at_any_call(void **state)
{
    for (int goal = GROUP_RUNNING; goal <= GROUP_SUSPENDED; goal++) {
        for (int at = 0; at < 3 * N; at++) {
            struct world world = make_world(PROCESS_RUNNING);
            struct process_group group = make_group(GROUP_SUSPENDED);
            struct group_step step;
            for (int i = 0; i < at && process_group_next(&group, &step) == GROUP_CALL; i++)
                process_group_take(
                    &group, &step, do_call(&world, &step), world.states[step.process]);
            group = make_group((enum group_goal)goal);
            assert_int_equal(run(&world, &group), GROUP_DONE);
            assert_true(
                all_are(&world, goal == GROUP_SUSPENDED ? PROCESS_SUSPENDED : PROCESS_RUNNING));
        }
    }
}

static void test_a_stuck_call_gives_the_suspension_up(void **state)
{
    for (int at = N; at < 3 * N; at++) {
        struct world world = make_world(PROCESS_RUNNING);
        struct process_group group = make_group(GROUP_SUSPENDED);
        world.fault_at = at;
        world.fault_result = -ETIMEDOUT;
        assert_int_equal(run(&world, &group), GROUP_UNDONE);
        assert_true(all_are(&world, PROCESS_RUNNING));
        assert_int_equal(group.error, -ETIMEDOUT);
    }
}

static void test_a_helper_that_always_dies_is_given_up(void **state)
{
    struct process_group group = make_group(GROUP_SUSPENDED);
    struct group_step step;
    int calls = 0;
    while (process_group_next(&group, &step) == GROUP_CALL && calls++ < 100)
        process_group_take(&group, &step, -EPIPE, PROCESS_UNKNOWN);
    assert_int_equal(process_group_next(&group, &step), GROUP_STUCK);
    assert_int_equal(calls, GROUP_HELPER_TRIES + 1);
    assert_false(group.was_touched);
}

/* No libcuda, or a state that a newer driver has: nothing was done, and nothing is broken. */
static void test_no_state_is_no_loss(void **state)
{
    struct world world = make_world(PROCESS_RUNNING);
    struct process_group group = make_group(GROUP_SUSPENDED);
    world.fault_at = 0;
    world.fault_result = -ENOSYS;
    assert_int_equal(run(&world, &group), GROUP_STUCK);
    assert_false(group.was_touched);
    world = make_world(PROCESS_UNKNOWN);
    group = make_group(GROUP_RUNNING);
    assert_int_equal(run(&world, &group), GROUP_STUCK);
}

static void test_as_many_processes_as_fit(void **state)
{
    struct process_group group;
    process_group_init(&group, GROUP_RUNNING);
    for (int i = 0; i < GROUP_PROCESSES_MAX; i++)
        assert_non_null(process_group_add(&group, i + 1, 1));
    assert_null(process_group_add(&group, 1000, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_are_locked_before_one_is_suspended),
        cmocka_unit_test(test_memory_is_reserved_for_all_before_one_is_restored),
        cmocka_unit_test(test_one_that_cannot_be_locked_frees_the_others),
        cmocka_unit_test(test_one_that_cannot_be_copied_brings_the_others_back),
        cmocka_unit_test(test_no_room_leaves_all_suspended),
        cmocka_unit_test(test_no_room_for_the_last_releases_the_others),
        cmocka_unit_test(test_a_restore_that_failed_is_not_repeated),
        cmocka_unit_test(test_a_failed_process_is_found),
        cmocka_unit_test(test_processes_that_end_do_not_count),
        cmocka_unit_test(test_one_that_ends_in_mid_suspension),
        cmocka_unit_test(test_one_that_is_killed_before_any_call),
        cmocka_unit_test(test_all_are_killed),
        cmocka_unit_test(test_a_helper_that_dies_at_any_call),
        cmocka_unit_test(test_a_daemon_that_dies_at_any_call),
        cmocka_unit_test(test_a_stuck_call_gives_the_suspension_up),
        cmocka_unit_test(test_a_helper_that_always_dies_is_given_up),
        cmocka_unit_test(test_no_state_is_no_loss),
        cmocka_unit_test(test_as_many_processes_as_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
