/* SPDX-License-Identifier: Apache-2.0 */
/* The file of the emulated machine: its GPUs, its processes and their death, energy over time. */
#include "machine.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/units.h"
#include "emulator/gpu_list.h"
#include "emulator/memory.h"

static const struct seat gpu0 = {0, 0};

static void refuse(const char *gpus, const char *word)
{
    static struct gpu_kinds kinds;
    struct fault fault = {""};

    assert_int_equal(gpu_kinds_init(&kinds, &fault), 0);
    assert_int_equal(world_create("/tmp/colloc-test-never", &kinds, gpus, 1, &fault), -EINVAL);
    assert_non_null(strstr(fault.text, word));
    assert_int_equal(access("/tmp/colloc-test-never", F_OK), -1);
}

static void a_wrong_list_is_refused_in_words(void **state)
{
    refuse("4xB100", "unknown GPU; known: A100-40GB, A100-80GB, H100, H200");
    refuse("", "unknown GPU");
    refuse("0xH200", "must be 1 to 64");
    refuse("65xH200", "must be 1 to 64");
    refuse("64xH200,H200", "more than 64");
    refuse("A100-40GB:1g.18gb", "no MIG profile");
    refuse("A100-40GB:7g.40gb+1g.5gb", "does not fit");
    refuse("A100-40GB:4c.3g.20gb", "has 3 slices of compute");
    refuse("A30:2g.12gb+2g.12gb+1g.6gb", "does not fit");
    refuse("A30:1g.6gb+1g.6gb+1g.6gb+1g.6gb+1g.6gb", "more than 4 MIG instances");
}

/* Of an A30 a quarter is one slice of four, of compute and of memory. */
static void an_a30_has_four_slices(void **state)
{
    static const double parts[] = {1, 0.5, 0.25, 0.25};
    struct machine m = machine_make("A30:2g.12gb+1g.6gb+1g.6gb", 1);
    struct gpu *gpu = &m.world->gpus[0];

    assert_int_equal(gpu->unit_count, 4);
    for (int i = 0; i < 4; i++) {
        assert_float_equal(gpu->units[i].sms, parts[i], 1e-9);
        assert_float_equal(gpu->units[i].bandwidth, parts[i], 1e-9);
    }
    machine_end(&m);
}

/* 1c and 2c share the three slices of a GPU instance; another 1c needs one more. */
static void compute_instances_share_a_gpu_instance(void **state)
{
    static const char *const names[] = {"A100-40GB", "1c.3g.20gb", "2c.3g.20gb", "1c.3g.20gb"};
    static const int instances[] = {0, 1, 1, 2}, numbers[] = {0, 0, 1, 0},
                     sms[] = {108, 14, 28, 14};
    struct machine m = machine_make("A100-40GB:1c.3g.20gb+2c.3g.20gb+1c.3g.20gb", 1);
    struct gpu *gpu = &m.world->gpus[0];

    world_enter(m.world);
    assert_int_equal(gpu->unit_count, 4);
    for (int i = 0; i < 4; i++) {
        const struct unit *unit = &gpu->units[i];
        char name[UNIT_NAME_SIZE];
        assert_string_equal(unit_name(gpu, unit, name), names[i]);
        assert_int_equal(unit->instance, instances[i]);
        assert_int_equal(unit->number, numbers[i]);
        assert_float_equal(unit->sms * 108, sms[i], 1e-9);
    }
    assert_null(gpu_add_compute(gpu, 0, 1, 1));
    gpu->units[1].state = UNIT_GONE;
    assert_null(gpu_add_compute(gpu, 0, 1, 2));
    assert_ptr_equal(gpu_add_compute(gpu, 0, 1, 1), &gpu->units[1]);
    assert_int_equal(gpu->units[1].number, 0);
    assert_int_equal(gpu_add_instance(gpu, gpu->instances[1].profile, 4), -1);
    world_leave(m.world);
    machine_end(&m);
}

/* What is measured of a GPU instance is the mean over its SMs. */
static void activity_of_a_gpu_instance_is_a_mean(void **state)
{
    struct machine m = machine_make("A100-40GB:1c.3g.20gb+2c.3g.20gb+2g.10gb", 1);
    struct gpu *gpu = &m.world->gpus[0];

    world_enter(m.world);
    gpu->units[1].sum[m.world->turn] = (struct activity){.smact = 6, .dram = 3, .power_w = 5};
    gpu->units[2].sum[m.world->turn] = (struct activity){.smact = 3, .dram = 0, .power_w = 7};
    gpu->units[3].sum[m.world->turn] = (struct activity){.smact = 9, .dram = 9, .power_w = 9};
    struct activity sum = world_instance_sum(m.world, 0, 1);
    assert_float_equal(sum.smact, 6.0 / 3 + 3.0 * 2 / 3, 1e-9);
    assert_float_equal(sum.dram, 1, 1e-9);
    assert_float_equal(sum.power_w, 12, 1e-9);
    assert_float_equal(world_instance_sum(m.world, 0, 2).smact, 9, 1e-9);
    world_leave(m.world);
    machine_end(&m);
}

static void a_list_is_read(void **state)
{
    struct machine m = machine_make(
        "2xA100-40GB,1xH200, A100-40GB:3g.20gb+2g.10gb+1g.5gb+1g.5gb,H100-80GB", 1);

    assert_int_equal(m.world->gpu_count, 5);
    assert_string_equal(m.world->gpus[4].kind.name, "H100"); /* by the name it had before */
    assert_int_equal(m.world->gpus[1].units[0].total_bytes, 40960 * MIB);
    assert_int_equal(m.world->gpus[2].units[0].total_bytes, 143771 * MIB);
    assert_int_equal(m.world->gpus[2].unit_count, 1);
    assert_int_equal(m.world->gpus[3].unit_count, 5);
    assert_string_not_equal(m.world->gpus[0].units[0].uuid, m.world->gpus[1].units[0].uuid);
    machine_end(&m);
}

static void a_foreign_file_is_refused(void **state)
{
    char path[] = "/tmp/colloc-test-other.XXXXXX";
    struct fault fault = {""};
    struct world *world;
    int fd = mkstemp(path);

    assert_int_equal(write(fd, "hello", 5), 5);
    assert_int_equal(world_open(path, &fault, &world), -EINVAL);
    assert_int_equal(ftruncate(fd, sizeof(struct world)), 0);
    assert_int_equal(world_open(path, &fault, &world), -EINVAL);
    assert_int_equal(world_open("/nonexistent", &fault, &world), -ENOENT);
    close(fd);
    unlink(path);
}

/* A child that joins, takes 1 GiB, and pauses; it has done so when this returns. */
static pid_t start_child(struct world *world, bool holding_the_lock)
{
    int ready[2];
    char byte;

    assert_int_equal(pipe(ready), 0);
    pid_t pid = fork();
    if (pid == 0) {
        world_enter(world);
        struct process *p = world_join(world, ROLE_TRAINING, &gpu0, 1);
        p->demand = (struct demand){.gract = 1, .smact = 1, .power_w = 300};
        memory_take(world, p, gpu0, GIB);
        if (!holding_the_lock) {
            world_solve(world);
            world_leave(world);
        }
        if (write(ready[1], "x", 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    close(ready[1]);
    return pid;
}

/* The child is still a zombie when the world is entered: a zombie has no GPU memory either. */
static void end_child(struct world *world, pid_t pid)
{
    siginfo_t info;

    kill(pid, SIGKILL);
    assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
    world_enter(world);
    assert_int_equal(memory_used(world, gpu0), 0);
    assert_float_equal(world_unit(world, gpu0)->rate.smact, 0, 0);
    assert_int_equal(world->process_end, 0);
    world_leave(world);
    waitpid(pid, NULL, 0);
}

static void a_killed_process_is_gone_when_the_world_is_entered(void **state)
{
    struct machine m = machine_make("A100-40GB", 1);
    pid_t pid = start_child(m.world, false);

    world_enter(m.world);
    assert_int_equal(memory_used(m.world, gpu0), GIB);
    assert_float_equal(world_unit(m.world, gpu0)->rate.smact, 1, 1e-9);
    assert_float_equal(world_unit(m.world, gpu0)->rate.power_w, 85 + 300, 1e-9);
    world_leave(m.world);
    end_child(m.world, pid);
    machine_end(&m);
}

static void killed_with_the_lock_held_it_blocks_no_process(void **state)
{
    struct machine m = machine_make("A100-40GB", 1);

    for (int i = 0; i < 20; i++)
        end_child(m.world, start_child(m.world, true));
    machine_end(&m);
}

static void energy_is_of_emulated_time(void **state)
{
    struct machine m = machine_make("2xA100-40GB", 1000);

    world_enter(m.world);
    struct process *p = world_join(m.world, ROLE_TRAINING, &gpu0, 1);
    p->demand = (struct demand){.gract = 0.5, .smact = 0.25, .power_w = 150};
    world_solve(m.world);
    double from_s = world_now_s(m.world), from_j = world_sum(m.world, gpu0)->power_w;
    world_leave(m.world);
    int64_t begin_us = clock_monotonic_us();
    do {
        world_enter(m.world);
        world_leave(m.world);
    } while (clock_monotonic_us() < begin_us + 20 * MS_US);
    world_enter(m.world);
    double span_s = world_now_s(m.world) - from_s;
    assert_true(span_s >= 20);
    assert_float_equal(world_sum(m.world, gpu0)->power_w - from_j, (85 + 150) * span_s, 1e-3);
    assert_float_equal(process_done_s(m.world, p), span_s, 1e-6);
    assert_float_equal(
        world_sum(m.world, (struct seat){1, 0})->power_w, 50 * world_now_s(m.world), 1e-3);
    world_part(m.world, p);
    world_leave(m.world);
    machine_end(&m);
}

static void power_stops_at_the_limit(void **state)
{
    struct machine m = machine_make("A100-40GB", 1);

    world_enter(m.world);
    struct process *p = world_join(m.world, ROLE_TRAINING, &gpu0, 1);
    p->demand = (struct demand){.gract = 1, .smact = 1, .power_w = 900};
    world_solve(m.world);
    assert_float_equal(world_unit(m.world, gpu0)->rate.power_w, 400, 1e-9);
    world_part(m.world, p);
    world_leave(m.world);
    machine_end(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_wrong_list_is_refused_in_words),
        cmocka_unit_test(an_a30_has_four_slices),
        cmocka_unit_test(compute_instances_share_a_gpu_instance),
        cmocka_unit_test(activity_of_a_gpu_instance_is_a_mean),
        cmocka_unit_test(a_list_is_read),
        cmocka_unit_test(a_foreign_file_is_refused),
        cmocka_unit_test(a_killed_process_is_gone_when_the_world_is_entered),
        cmocka_unit_test(killed_with_the_lock_held_it_blocks_no_process),
        cmocka_unit_test(energy_is_of_emulated_time),
        cmocka_unit_test(power_stops_at_the_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
