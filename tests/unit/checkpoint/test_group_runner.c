/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Groups brought to their goals by the real helper over the emulated driver, with its traps: MIG, a
 * profiler, managed memory, a full GPU, a host without memory, a driver that hangs, a helper
 * that is killed at any time.
 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/units.h"
#include "checkpoint/cuda_abi.h"
#include "checkpoint/cuda_process.h"
#include "checkpoint/group_runner.h"
#include "emulator/memory.h"

enum { CHILDREN = 2, MEMORY_MIB = 3000 };
static const int64_t LIMIT_US = 20 * SECOND_US;
static const char MEMORY[] = "--memory-mib=3000";

struct fixture {
    char path[64];
    struct world *world;
    uv_loop_t loop;
    struct helper_client *client;
    struct copy_speed speed;
    struct group_runner runner;
    pid_t children[CHILDREN];
    enum group_answer answer;
    char error[256];
    bool is_done;
};

static void on_done(void *context, enum group_answer answer, const char *error)
{
    struct fixture *f = context;
    f->answer = answer;
    f->is_done = true;
    snprintf(f->error, sizeof f->error, "%s", error);
    uv_stop(&f->loop);
}

static struct fixture *make(const char *gpus, double speedup)
{
    static struct gpu_kinds kinds;
    struct fixture *f = calloc(1, sizeof *f);
    struct fault fault = {0};
    snprintf(f->path, sizeof f->path, "/tmp/colloc-runner-%d", (int)getpid());
    assert_int_equal(gpu_kinds_init(&kinds, &fault), 0);
    assert_int_equal(world_create(f->path, &kinds, gpus, speedup, &fault), 0);
    assert_int_equal(world_open(f->path, &fault, &f->world), 0);
    setenv("COLLOC_EMULATOR", f->path, 1);
    uv_loop_init(&f->loop);
    f->client = helper_client_create(&f->loop, getenv("CHECKPOINT_HELPER"));
    f->speed = copy_speed_default();
    f->runner = (struct group_runner){
        .client = f->client, .speed = &f->speed, .on_done = on_done, .context = f};
    return f;
}

static int setup(void **state)
{
    *state = make("2xA100-40GB", 500);
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < CHILDREN; i++) {
        if (f->children[i]) {
            kill(f->children[i], SIGKILL);
            waitpid(f->children[i], NULL, 0);
        }
    }
    helper_client_close(f->client);
    uv_run(&f->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&f->loop), 0);
    world_close(f->world);
    unlink(f->path);
    free(f);
    return 0;
}

/* ---- the machine ---- */

static enum cuda_state state_of(struct fixture *f, int child)
{
    enum cuda_state state = CUDA_FAILED;
    world_enter(f->world);
    for (int i = 0; i < f->world->process_end; i++)
        if (f->world->processes[i].present && f->world->processes[i].pid == f->children[child])
            state = f->world->processes[i].cuda_state;
    world_leave(f->world);
    return state;
}

static int64_t used_mib(struct fixture *f, int gpu)
{
    world_enter(f->world);
    int64_t used = memory_used(f->world, (struct seat){gpu, 0}) / MIB;
    world_leave(f->world);
    return used;
}

static void wait_ms(void)
{
    usleep(1000);
}

/* A training on GPU 0 that has all its memory when this returns. */
static void start_child(struct fixture *f, int child, const char *option)
{
    char *argv[] = {getenv("EMULATOR_TRAIN"), (char *)MEMORY, (char *)"--seconds=1e8",
        (char *)"--ramp-seconds=0", (char *)(option ? option : "--epochs=1"), NULL};
    int64_t before = used_mib(f, 0), end_us = clock_monotonic_us() + LIMIT_US;
    posix_spawn_file_actions_t quiet;
    posix_spawn_file_actions_init(&quiet);
    posix_spawn_file_actions_addopen(&quiet, 1, "/dev/null", O_WRONLY, 0);
    assert_int_equal(posix_spawn(&f->children[child], argv[0], &quiet, NULL, argv, environ), 0);
    posix_spawn_file_actions_destroy(&quiet);
    while (used_mib(f, 0) < before + MEMORY_MIB) {
        assert_true(clock_monotonic_us() < end_us);
        wait_ms();
    }
}

static void gpu_name(const struct fixture *f, int gpu, char *name)
{
    snprintf(name, GPU_UUID_SIZE, "%s", f->world->gpus[gpu].units[0].uuid);
}

/* ---- a run ---- */

static void begin(struct fixture *f, enum group_goal goal, int to_gpu)
{
    struct cuda_process process;
    process_group_init(&f->runner.group, goal);
    for (int i = 0; i < CHILDREN; i++) {
        if (!f->children[i] || cuda_process_read(f->children[i], &process) < 0)
            continue;
        struct group_process *one = process_group_add(
            &f->runner.group, f->children[i], process.born);
        gpu_name(f, to_gpu, one->memory[0].gpu);
        one->memory[0].bytes = MEMORY_MIB * MIB;
        one->n_memory = 1;
    }
    f->is_done = false;
    assert_int_equal(group_runner_start(&f->runner), 0);
}

static enum group_answer finish(struct fixture *f)
{
    if (!f->is_done)
        uv_run(&f->loop, UV_RUN_DEFAULT);
    assert_true(f->is_done);
    return f->answer;
}

static enum group_answer run(struct fixture *f, enum group_goal goal)
{
    begin(f, goal, 0);
    return finish(f);
}

static void test_suspends_and_resumes(void **state)
{
    struct fixture *f = *state;
    start_child(f, 0, NULL);
    assert_int_equal(run(f, GROUP_SUSPENDED), GROUP_DONE);
    assert_int_equal(state_of(f, 0), CUDA_CHECKPOINTED);
    assert_int_equal(used_mib(f, 0), 0);
    assert_int_equal(run(f, GROUP_RUNNING), GROUP_DONE);
    assert_int_equal(state_of(f, 0), CUDA_RUNNING);
    assert_int_equal(used_mib(f, 0), MEMORY_MIB);
}

static void test_two_processes_together(void **state)
{
    struct fixture *f = *state;
    start_child(f, 0, NULL);
    start_child(f, 1, NULL);
    assert_int_equal(run(f, GROUP_SUSPENDED), GROUP_DONE);
    assert_int_equal(used_mib(f, 0), 0);
    assert_int_equal(run(f, GROUP_RUNNING), GROUP_DONE);
    assert_int_equal(used_mib(f, 0), 2 * MEMORY_MIB);
}

static void test_moves_to_the_other_gpu_and_back(void **state)
{
    struct fixture *f = *state;
    start_child(f, 0, NULL);
    for (int to = 1; to >= 0; to--) {
        assert_int_equal(run(f, GROUP_SUSPENDED), GROUP_DONE);
        gpu_name(f, !to, f->runner.moves[0].from);
        gpu_name(f, to, f->runner.moves[0].to);
        f->runner.n_moves = 1;
        begin(f, GROUP_RUNNING, to);
        assert_int_equal(finish(f), GROUP_DONE);
        assert_int_equal(used_mib(f, to), MEMORY_MIB);
        assert_int_equal(used_mib(f, !to), 0);
    }
}

static void refused(struct fixture *f, int error)
{
    assert_int_equal(run(f, GROUP_SUSPENDED), GROUP_UNDONE);
    assert_int_equal(f->runner.group.error, error);
    assert_true(*f->error);
    for (int i = 0; i < CHILDREN; i++)
        if (f->children[i])
            assert_int_equal(state_of(f, i), CUDA_RUNNING);
}

static void test_a_profiler_in_one_leaves_both_running(void **state)
{
    struct fixture *f = *state;
    start_child(f, 0, NULL);
    start_child(f, 1, "--profiler");
    refused(f, CUDA_ERROR_NOT_SUPPORTED);
}

static void test_managed_memory_in_one_brings_the_other_back(void **state)
{
    struct fixture *f = *state;
    start_child(f, 0, NULL);
    start_child(f, 1, "--managed");
    refused(f, CUDA_ERROR_NOT_SUPPORTED);
    assert_int_equal(used_mib(f, 0), 2 * MEMORY_MIB);
}

static void test_a_full_gpu_is_never_restored_to(void **state)
{
    struct fixture *f = *state;
    start_child(f, 0, NULL);
    assert_int_equal(run(f, GROUP_SUSPENDED), GROUP_DONE);
    f->world->gpus[0].foreign_bytes = 39000 * MIB;
    assert_int_equal(run(f, GROUP_RUNNING), GROUP_NO_ROOM);
    assert_int_equal(state_of(f, 0), CUDA_CHECKPOINTED);
    f->world->gpus[0].foreign_bytes = 0;
    assert_int_equal(run(f, GROUP_RUNNING), GROUP_DONE);
    assert_int_equal(state_of(f, 0), CUDA_RUNNING);
}

/* The placeholder needs nothing beside the memory itself. */
static void test_one_that_just_fits_comes_back(void **state)
{
    struct fixture *f = *state;
    start_child(f, 0, NULL);
    assert_int_equal(run(f, GROUP_SUSPENDED), GROUP_DONE);
    int64_t capacity = memory_capacity(f->world, (struct seat){0, 0});
    f->world->gpus[0].foreign_bytes = capacity - MEMORY_MIB * MIB;
    assert_int_equal(run(f, GROUP_RUNNING), GROUP_DONE);
}

static void test_one_that_just_fits_stays_where_others_may_take_it(void **state)
{
    struct fixture *f = *state;
    start_child(f, 0, NULL);
    assert_int_equal(run(f, GROUP_SUSPENDED), GROUP_DONE);
    int64_t capacity = memory_capacity(f->world, (struct seat){0, 0});
    f->world->gpus[0].foreign_bytes = capacity - MEMORY_MIB * MIB;
    f->runner.spare_bytes = 64 * MIB;
    assert_int_equal(run(f, GROUP_RUNNING), GROUP_NO_ROOM);
    assert_int_equal(state_of(f, 0), CUDA_CHECKPOINTED);
    f->world->gpus[0].foreign_bytes -= 64 * MIB;
    assert_int_equal(run(f, GROUP_RUNNING), GROUP_DONE);
}

static void test_a_host_without_memory_kills_the_process(void **state)
{
    struct fixture *f = *state;
    start_child(f, 0, NULL);
    f->world->host_memory_bytes = GIB;
    assert_int_not_equal(run(f, GROUP_SUSPENDED), GROUP_DONE); /* EMPTY, if it is dead by then */
    int status;
    waitpid(f->children[0], &status, 0);
    f->children[0] = 0;
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void test_a_driver_that_hangs(void **state)
{
    struct fixture *f = *state;
    start_child(f, 0, NULL);
    f->world->checkpoint_hangs = true;
    begin(f, GROUP_SUSPENDED, 0);
    int64_t end_us = clock_monotonic_us() + LIMIT_US;
    while (state_of(f, 0) != CUDA_CHECKPOINTED) {
        assert_true(clock_monotonic_us() < end_us);
        uv_run(&f->loop, UV_RUN_NOWAIT);
    }
    kill(helper_client_pid(f->client), SIGKILL); /* what the time limit does a minute later */
    assert_int_equal(finish(f), GROUP_DONE);
}

static void test_a_process_that_ends_before_and_meanwhile(void **state)
{
    struct fixture *f = *state;
    start_child(f, 0, NULL);
    start_child(f, 1, NULL);
    begin(f, GROUP_SUSPENDED, 0);
    kill(f->children[1], SIGKILL);
    waitpid(f->children[1], NULL, 0);
    f->children[1] = 0;
    assert_int_equal(finish(f), GROUP_DONE);
    assert_int_equal(state_of(f, 0), CUDA_CHECKPOINTED);
}

/* The helper is killed after every possible number of turns of the loop, in a slower world so that
 * copies are hit too. */
static void test_a_helper_killed_at_any_time(void **state)
{
    struct fixture *f = make("2xA100-40GB", 60);
    *state = f;
    start_child(f, 0, NULL);
    start_child(f, 1, NULL);
    int kills = 0;
    for (int i = 0; i < 24; i++) {
        enum group_goal goal = i % 2 ? GROUP_RUNNING : GROUP_SUSPENDED;
        int64_t at_us = clock_monotonic_us() + i * 5 * MS_US;
        begin(f, goal, 0);
        while (!f->is_done && clock_monotonic_us() < at_us) {
            uv_run(&f->loop, UV_RUN_NOWAIT);
            wait_ms();
        }
        if (!f->is_done && helper_client_pid(f->client)) {
            kill(helper_client_pid(f->client), SIGKILL);
            kills++;
        }
        assert_int_equal(finish(f), GROUP_DONE);
        enum cuda_state wanted = goal == GROUP_RUNNING ? CUDA_RUNNING : CUDA_CHECKPOINTED;
        assert_int_equal(state_of(f, 0), wanted);
        assert_int_equal(state_of(f, 1), wanted);
    }
    assert_true(kills >= 4);
}

static void test_an_old_driver(void **state)
{
    struct fixture *f = *state;
    start_child(f, 0, NULL);
    f->world->cuda_version = 12040;
    assert_int_equal(run(f, GROUP_SUSPENDED), GROUP_STUCK);
    assert_int_equal(f->runner.group.error, -ENOSYS);
    assert_false(f->runner.group.was_touched);
}

static void test_a_mig_instance(void **state)
{
    struct fixture *f = make("1xA100-40GB:3g.20gb", 500);
    *state = f;
    start_child(f, 0, NULL);
    refused(f, CUDA_ERROR_OUT_OF_MEMORY);
}

static void test_learns_the_speed(void **state)
{
    struct fixture *f = *state;
    start_child(f, 0, NULL);
    start_child(f, 1, NULL);
    assert_int_equal(run(f, GROUP_SUSPENDED), GROUP_DONE);
    assert_int_equal(f->speed.machine.learned[COPY_TO_HOST], 0); /* 3 GiB teach nothing */
}

#define TEST(function)       cmocka_unit_test_setup_teardown(function, setup, teardown)
#define TEST_ALONE(function) cmocka_unit_test_setup_teardown(function, NULL, teardown)

int main(void)
{
    signal(SIGPIPE, SIG_IGN); /* as collocd does */
    const struct CMUnitTest tests[] = {
        TEST(test_suspends_and_resumes),
        TEST(test_two_processes_together),
        TEST(test_moves_to_the_other_gpu_and_back),
        TEST(test_a_profiler_in_one_leaves_both_running),
        TEST(test_managed_memory_in_one_brings_the_other_back),
        TEST(test_a_full_gpu_is_never_restored_to),
        TEST(test_one_that_just_fits_comes_back),
        TEST(test_one_that_just_fits_stays_where_others_may_take_it),
        TEST(test_a_host_without_memory_kills_the_process),
        TEST(test_a_driver_that_hangs),
        TEST(test_a_process_that_ends_before_and_meanwhile),
        TEST_ALONE(test_a_helper_killed_at_any_time),
        TEST(test_an_old_driver),
        TEST_ALONE(test_a_mig_instance),
        TEST(test_learns_the_speed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
