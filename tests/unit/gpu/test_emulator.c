/* SPDX-License-Identifier: Apache-2.0 */
/* The same set and samples over the emulator's NVML, with a pretend training process on it. */
#include <poll.h>
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
#include "gpu/gpu.h"
#include "gpu/program.h"

#define PATIENCE_US (20 * SECOND_US)

struct world {
    char file[64];
    struct gpu_set *set;
    struct gpu_sample sample;
};

static void tool(char *const argv[])
{
    struct program run = {
        .path = getenv("EMULATOR_TOOL"),
        .argv = argv,
        .envp = environ,
        .limit_us = PATIENCE_US,
    };
    struct fault fault = {0};
    char output[256];
    int status = -1;

    assert_int_equal(program_run(&run, output, sizeof(output), &status, &fault), 0);
    assert_int_equal(status, 0);
}

static int setup(void **state)
{
    struct world *w = calloc(1, sizeof(*w));
    struct fault fault = {0};

    snprintf(w->file, sizeof(w->file), "/tmp/colloc-gpu-test-%d", (int)getpid());
    tool((char *[]){(char *)"tool", (char *)"create",
        (char *)"--gpus=1xA100-40GB,1xA100-40GB:3g.20gb+2g.10gb", (char *)"--speed=50", w->file,
        NULL});
    setenv("COLLOC_EMULATOR", w->file, 1);
    assert_int_equal(gpu_set_open(getenv("EMULATOR_NVML"), &fault, &w->set), 0);
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;

    gpu_set_close(w->set);
    gpu_sample_fini(&w->sample);
    unlink(w->file);
    free(w);
    return 0;
}

static void set_trouble(const char *what)
{
    tool((char *[]){(char *)"tool", (char *)"set", (char *)"0", (char *)what, NULL});
}

static void test_identity(void **state)
{
    struct world *w = *state;
    const struct gpu_info *gpu = w->set->gpu;

    assert_int_equal(w->set->count, 4);
    assert_true(gpu[0].is_place);
    assert_string_equal(gpu[0].name, "NVIDIA A100-SXM4-40GB");
    assert_true(gpu[0].mem_total_bytes.value > 39.0 * GIB);
    assert_false(gpu[1].is_place);
    assert_true(gpu[2].is_place);
    assert_string_equal(gpu[2].index, "1:0");
    assert_string_equal(gpu[2].profile, "3g.20gb");
    assert_int_equal((int)reading_or(gpu[2].sm_count, 0), 42);
    assert_string_equal(gpu[3].profile, "2g.10gb");
}

static pid_t start_training(const struct gpu_info *gpu)
{
    char *argv[] = {(char *)"train", (char *)"--memory-mib=6000", (char *)"--seconds=10000",
        (char *)"--smact=0.5", NULL};
    pid_t pid;

    setenv("CUDA_VISIBLE_DEVICES", gpu->uuid, 1);
    assert_int_equal(posix_spawn(&pid, getenv("EMULATOR_TRAIN"), NULL, NULL, argv, environ), 0);
    unsetenv("CUDA_VISIBLE_DEVICES");
    return pid;
}

static bool holds_its_memory(const struct gpu_sample *sample, pid_t pid)
{
    for (size_t i = 0; i < sample->processes.count; i++) {
        const struct gpu_process *process = &sample->processes.item[i];
        if (process->pid == pid)
            return process->used_bytes.valid && process->used_bytes.value >= 6000.0 * MIB;
    }
    return false;
}

static void look_until_it_holds_its_memory(struct world *w, size_t i, pid_t pid)
{
    int64_t end_us = clock_monotonic_us() + PATIENCE_US;

    do {
        poll(NULL, 0, 5);
        gpu_set_sample(w->set, i, &w->sample);
        assert_int_equal(w->sample.health, GPU_HEALTH_OK);
        assert_true(clock_monotonic_us() < end_us);
    } while (!holds_its_memory(&w->sample, pid));
}

static void look_until_smact(struct world *w, size_t i)
{
    int64_t end_us = clock_monotonic_us() + PATIENCE_US;

    do {
        poll(NULL, 0, 5);
        gpu_set_sample(w->set, i, &w->sample);
        assert_true(clock_monotonic_us() < end_us);
    } while (!w->sample.smact.valid || w->sample.smact.value < 0.4);
}

static void watch_training(struct world *w, size_t i)
{
    pid_t pid = start_training(&w->set->gpu[i]);

    look_until_it_holds_its_memory(w, i, pid);
    assert_true(w->sample.mem_used_bytes.value >= 6000.0 * MIB);
    look_until_smact(w, i);
    assert_true(w->sample.smact.value <= 1);

    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    gpu_set_sample(w->set, i, &w->sample);
    assert_true(w->sample.processes.valid);
    assert_int_equal(w->sample.processes.count, 0);
}

static void test_training_on_a_card(void **state)
{
    struct world *w = *state;
    watch_training(w, 0);
    assert_true(w->sample.power_w.valid);
    assert_true(w->sample.energy_j.valid);
}

static void test_training_on_a_mig_instance(void **state)
{
    watch_training(*state, 2);
}

static void test_troubles(void **state)
{
    struct world *w = *state;

    set_trouble("power=off");
    gpu_set_sample(w->set, 0, &w->sample);
    assert_int_equal(w->sample.health, GPU_HEALTH_OK);
    assert_false(w->sample.power_w.valid);
    assert_true(w->sample.mem_used_bytes.valid);

    set_trouble("lost=on");
    gpu_set_sample(w->set, 0, &w->sample);
    assert_int_equal(w->sample.health, GPU_HEALTH_LOST);
    assert_false(w->sample.mem_used_bytes.valid);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_identity, setup, teardown),
        cmocka_unit_test_setup_teardown(test_training_on_a_card, setup, teardown),
        cmocka_unit_test_setup_teardown(test_training_on_a_mig_instance, setup, teardown),
        cmocka_unit_test_setup_teardown(test_troubles, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
