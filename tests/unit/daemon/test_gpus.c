/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part gpus with pretend hooks and pretend NVML. Polls run in libuv's real pool; a test runs
 * the loop until the hook `polled` was called.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/array.h"
#include "daemon/gpus/gpus.h"
#include "daemon/gpus/gpus_query.h"
#include "exec/ancestry_cache.h"
#include "pretend_driver.h"

enum { SHIM = 4711, TASKS_PROCESS = 4712, EXTERNAL = 1, GPUS = 3 };

static struct {
    struct gpus *gpus;
    struct config config;
    struct gpu_info info[GPUS];
    struct gpu_set sets[GPUS], *next; /* `next`: what the next close poll finds; NULL: no change */
    int open_answer;
    struct gpu_sample sample[GPUS]; /* what the next poll finds */
    struct gpu_process processes[2];
    int polls, close_polls; /* done by the pool; which of them were close: a bit each, from 2 on */
    int forgotten, write_failures;
    int64_t later_us; /* is added to the time of samples */
    char health[200]; /* changes that were reported: "lost: fell off; ok: ; " */
    int64_t polled;   /* the last number */
    struct reading calls_idle_us;
    bool is_hooked, can_carry;
} seen;

/* ---- NVML ---- */

int gpu_set_open(const char *library_path, struct fault *fault, struct gpu_set **ret_set)
{
    if (seen.open_answer) {
        fault_set(fault, ENOENT, "NVML is not installed");
        return seen.open_answer;
    }
    *ret_set = &seen.sets[0];
    return 0;
}

void gpu_set_close(struct gpu_set *set)
{
}

bool gpu_set_is_outdated(struct gpu_set *set, bool at_once)
{
    seen.polls++;
    seen.close_polls |= at_once << seen.polls;
    return at_once && seen.next;
}

int gpu_set_renew(struct gpu_set *set, bool at_once, struct gpu_set **ret_set)
{
    *ret_set = seen.next;
    seen.next = NULL;
    return *ret_set ? GPU_SET_CHANGED : 0;
}

void gpu_set_gpm_interval(struct gpu_set *set, int64_t interval_min_us)
{
}

void gpu_set_limit_overhead(struct gpu_set *set, double cpu_share)
{
}

int gpu_set_use_dcgm(struct gpu_set *set, const char *program, int64_t period_us)
{
    fail();
    return 0;
}

const char *gpu_set_dcgm_source(const struct gpu_set *set)
{
    return "";
}

void gpu_set_change_dcgm_period(struct gpu_set *set, int64_t period_us)
{
}

void gpu_set_query_all_next(struct gpu_set *set)
{
}

void gpu_set_forget_xids(struct gpu_set *set, size_t i)
{
    seen.forgotten++;
}

bool gpu_info_is_listed(const struct gpu_info *info, const char *list)
{
    return true;
}

bool gpu_info_shares_memory(const struct gpu_info *one, const struct gpu_info *other)
{
    return one->is_mig && other->is_mig;
}

void gpu_set_sample(struct gpu_set *set, size_t i, struct gpu_sample *ret_sample)
{
    *ret_sample = seen.sample[i];
    ret_sample->at_us = clock_monotonic_us() + seen.later_us;
}

void gpu_sample_fini(struct gpu_sample *sample)
{
}

int ancestry_cache_find_root(
    struct ancestry_cache *cache, pid_t pid, const struct attempt_roots *roots, int64_t now_us)
{
    for (size_t i = 0; i < roots->count; i++)
        if (roots->shims[i] == SHIM && pid == TASKS_PROCESS)
            return (int)i;
    return -1;
}

/* ---- the hooks ---- */

static pid_t on_find_shim(void *context, uint64_t task)
{
    return SHIM;
}

static const char *on_cgroup_home(void *context)
{
    return NULL;
}

static struct reading on_calls_idle_us(void *context, uint64_t task, struct process_id id)
{
    assert_int_equal(task, 1);
    assert_int_equal(id.pid, TASKS_PROCESS);
    return seen.calls_idle_us;
}

static bool on_is_hooked(void *context, uint64_t task, struct process_id id)
{
    assert_int_equal(task, 1);
    return seen.is_hooked;
}

static bool on_can_carry(void *context, uint64_t task, struct process_id id)
{
    assert_int_equal(task, 1);
    return seen.can_carry;
}

static void on_polled(void *context, int64_t poll)
{
    seen.polled = poll;
}

void disk_failed(struct disk *disk, const char *what)
{
    seen.write_failures++;
}

static void on_health_changed(
    void *context, int view, const struct gpu_info *info, const char *health, const char *why)
{
    size_t used = strlen(seen.health);
    snprintf(seen.health + used, sizeof seen.health - used, "%s: %s; ", health, why);
}

/* ---- */

static struct reading gib(double n)
{
    return reading_of(n * (double)GIB);
}

static int begin(void **state)
{
    memset(&seen, 0, sizeof seen);
    strcpy(seen.config.state_dir, "/nowhere/at/all");
    strcpy(seen.config.dcgmi, "none");
    seen.config.sample_period_us = HOUR_US;
    seen.config.unused_after_us = SECOND_US;
    for (int i = 0; i < GPUS; i++) {
        seen.info[i] = (struct gpu_info){.is_place = true, .mem_total_bytes = gib(40)};
        snprintf(seen.info[i].uuid, sizeof seen.info[i].uuid, "GPU-%d", i);
        snprintf(seen.info[i].index, sizeof seen.info[i].index, "%d", i);
        seen.sets[i] = (struct gpu_set){.gpu = seen.info, .count = (size_t)i + 1};
        seen.sample[i] = (struct gpu_sample){.mem_total_bytes = gib(40),
            .mem_used_bytes = gib(0),
            .mem_free_bytes = gib(40),
            .smact = reading_of(0),
            .utilisation = reading_of(0),
            .processes = {.valid = true}};
    }
    pretend_driver_begin(1);
    const struct gpus_options options = {
        .loop = &pretend.loop,
        .config = &seen.config,
        .core = pretend.core,
        .jobs = pretend.jobs,
        .driver = pretend.driver,
        .hooks = {NULL, on_find_shim, on_cgroup_home, on_calls_idle_us, on_is_hooked, on_can_carry,
            on_polled, on_health_changed},
    };
    seen.gpus = gpus_create(&options);
    return 0;
}

static int end(void **state)
{
    gpus_close(seen.gpus);
    pretend_driver_end();
    gpus_destroy(seen.gpus);
    return 0;
}

static void open_gpus(void)
{
    struct fault fault = {0};
    assert_int_equal(gpus_open(seen.gpus, &fault), 0);
    expect_story("GPUS; ");
}

/* Runs the loop until the poll of this number is complete. */
static void await_poll(int64_t number)
{
    int64_t until_us = clock_monotonic_us() + 20 * SECOND_US;
    while (seen.polled < number) {
        assert_true(clock_monotonic_us() < until_us);
        uv_run(&pretend.loop, UV_RUN_ONCE);
    }
}

static void poll_gpus(void)
{
    gpus_poll(seen.gpus);
    await_poll(seen.polled + 1);
}

/* Task 1 runs on GPU 0, where an external process is too. */
static void use_gpu(double task_gib, double external_gib)
{
    if (!core_task(pretend.core, 1)) {
        poll_gpus();
        assert_int_equal(feed(EVENT_SUBMIT, 1), 0);
        assert_int_equal(feed(EVENT_STARTED, 1), 0);
        expect_story("SUBMIT; PLACE; STARTED; ");
    }
    seen.processes[0] = (struct gpu_process){
        .pid = TASKS_PROCESS, .used_bytes = gib(task_gib), .kinds = GPU_PROCESS_COMPUTE};
    seen.processes[1] = (struct gpu_process){
        .pid = EXTERNAL, .used_bytes = gib(external_gib), .kinds = GPU_PROCESS_COMPUTE};
    seen.sample[0].processes.item = seen.processes;
    seen.sample[0].processes.count = external_gib > 0 ? 2 : 1;
    seen.sample[0].mem_used_bytes = gib(task_gib + external_gib);
}

static void test_a_poll_feeds_the_core(void **state)
{
    open_gpus();
    seen.sample[0].mem_used_bytes = gib(3);
    poll_gpus();
    assert_int_equal(seen.polled, 1);
    assert_true(core_view(pretend.core)->gpus[0].mem_used_bytes.value >= 3 * (double)GIB);
    assert_int_equal(seen.close_polls, 0);
}

/* The core starts tasks beside one of unknown memory whose processes all have the library. */
static void test_processes_with_the_library_are_counted(void **state)
{
    open_gpus();
    use_gpu(6, 2);
    poll_gpus();
    const struct resident *resident = &core_view(pretend.core)->gpus[0].residents[0];
    assert_int_equal(resident->hooked, 0);
    assert_int_equal(resident->unhooked, 1);
    seen.is_hooked = true;
    poll_gpus();
    assert_int_equal(resident->hooked, 1);
    assert_int_equal(resident->unhooked, 0);
    assert_int_equal(resident->carried, 0);
    seen.can_carry = true;
    poll_gpus();
    assert_int_equal(resident->carried, 1);
}

static void test_processes_are_attributed(void **state)
{
    struct gpu_report gpu;
    open_gpus();
    use_gpu(6, 2);
    poll_gpus();
    const struct job *job = jobs_find(pretend.jobs, 1);
    assert_true(job->mem_used_bytes.valid);
    assert_int_equal(job->mem_used_bytes.value / (double)GIB, 6);
    assert_true(gpus_report(seen.gpus, 0, &gpu));
    assert_int_equal(gpu.n_external, 1);
    assert_int_equal(gpu.external[0].pid, EXTERNAL);
    assert_int_equal(gpu.n_shares, 2);
    assert_int_equal(gpu.shares[0].task, 1);
    assert_int_equal(gpu.shares[1].task, 0);
    assert_false(gpus_report(seen.gpus, 1, &gpu));
    use_gpu(4, 0);
    poll_gpus();
    assert_int_equal(job->mem_used_bytes.value / (double)GIB, 4);
    assert_int_equal(job->mem_peak_bytes.value / (double)GIB, 6);
}

static void test_unexplained_memory_is_not_zero(void **state)
{
    open_gpus();
    use_gpu(6, 2);
    seen.sample[0].processes.count = 0; /* the driver lists none */
    poll_gpus();
    assert_false(jobs_find(pretend.jobs, 1)->mem_used_bytes.valid);
    seen.sample[0].mem_used_bytes = gib(0.1); /* less than any context */
    poll_gpus();
    assert_true(jobs_find(pretend.jobs, 1)->mem_used_bytes.valid);
    assert_int_equal(jobs_find(pretend.jobs, 1)->mem_used_bytes.value, 0);
}

/* The process of another instance that shares the memory explains it. */
static void test_memory_of_another_instance_is_explained(void **state)
{
    seen.info[0].is_mig = seen.info[1].is_mig = true;
    seen.sets[0].count = 2;
    open_gpus();
    use_gpu(6, 0);
    seen.sample[1] = seen.sample[0];
    seen.sample[0].processes.count = 0;
    poll_gpus();
    const struct cluster_view *view = core_view(pretend.core);
    assert_int_equal(view->gpus[0].id.memory_domain, 1);
    assert_int_equal(view->gpus[1].id.memory_domain, 1);
    assert_true(jobs_find(pretend.jobs, 1)->mem_used_bytes.valid);
    assert_int_equal(jobs_find(pretend.jobs, 1)->mem_used_bytes.value, 0);
    seen.sample[1].processes.valid = false;
    poll_gpus();
    assert_false(jobs_find(pretend.jobs, 1)->mem_used_bytes.valid);
}

/* The pid of a process that has ended. */
static pid_t run_briefly(void)
{
    pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    return pid;
}

/* It may have been the task's, so that task was not seen beside others. */
static void test_a_process_that_has_ended_before_it_was_looked_at(void **state)
{
    struct gpu_report gpu;
    open_gpus();
    use_gpu(6, 2);
    seen.processes[1].pid = run_briefly();
    poll_gpus();
    const struct gpu_view *view = &core_view(pretend.core)->gpus[0];
    assert_true(gpus_report(seen.gpus, 0, &gpu));
    assert_int_equal(gpu.n_external, 0);
    assert_false(view->external_processes.valid);
    assert_false(core_task(pretend.core, 1)->had_coresidents);
    seen.processes[1].pid = EXTERNAL;
    poll_gpus();
    assert_true(gpus_report(seen.gpus, 0, &gpu));
    assert_int_equal(gpu.n_external, 1);
    assert_int_equal(view->external_processes.value, 1);
    assert_true(core_task(pretend.core, 1)->had_coresidents);
}

/* Listed on both instances, a task's process is external on neither. */
static void test_a_process_of_another_instance_is_not_external(void **state)
{
    struct gpu_report gpu;
    seen.info[0].is_mig = seen.info[1].is_mig = true;
    seen.sets[0].count = 2;
    open_gpus();
    use_gpu(6, 2);
    seen.sample[1] = seen.sample[0];
    poll_gpus();
    for (size_t i = 0; i < 2; i++) {
        assert_true(gpus_report(seen.gpus, i, &gpu));
        assert_int_equal(gpu.n_external, 1);
        assert_int_equal(gpu.external[0].pid, EXTERNAL);
        assert_int_equal(gpu.n_shares, 2 - i); /* on its own instance also the task's */
        assert_true(core_view(pretend.core)->gpus[i].external_processes.value == 1);
    }
    assert_int_equal(jobs_find(pretend.jobs, 1)->mem_used_bytes.value / (double)GIB, 6);
}

/* A card with two compute instances, of one slice and of two, in one GPU instance of three. Task 1
 * is on the first. */
static void open_compute_instances(int card_slices)
{
    seen.info[0].is_place = false;
    seen.info[0].card_slices = reading_of(card_slices);
    for (int i = 1; i < GPUS; i++) {
        seen.info[i].is_mig = true;
        seen.info[i].gpu_slices = reading_of(3);
        seen.info[i].compute_slices = reading_of(i);
    }
    seen.sets[0].count = GPUS;
    seen.sample[0].power_w = reading_of(70);
    open_gpus();
    poll_gpus();
    assert_int_equal(feed(EVENT_SUBMIT, 1), 0);
    assert_int_equal(feed(EVENT_STARTED, 1), 0);
    seen.processes[0] = (struct gpu_process){.pid = TASKS_PROCESS, .kinds = GPU_PROCESS_COMPUTE};
    seen.processes[1] = (struct gpu_process){.pid = EXTERNAL, .kinds = GPU_PROCESS_COMPUTE};
    for (int i = 1; i < GPUS; i++) {
        seen.sample[i].processes.item = &seen.processes[i - 1];
        seen.sample[i].processes.count = 1;
        seen.sample[i].smact = reading_of(0.6);
    }
}

static void assert_share(size_t i, double smact, double power_w, bool is_estimated)
{
    struct gpu_report gpu;
    assert_true(gpus_report(seen.gpus, i, &gpu));
    assert_int_equal(gpu.n_shares, 1);
    assert_float_equal(gpu.shares[0].smact.value, smact, 1e-9);
    assert_float_equal(gpu.shares[0].power_w.value, power_w, 1e-9);
    assert_int_equal(gpu.shares_estimated, is_estimated);
}

/* All shares on instances that share a GPU instance add up to its activity, and the idle power of
 * their slices is counted once. */
static void test_compute_instances_share_what_is_measured(void **state)
{
    open_compute_instances(7);
    seen.sample[0].power_w = reading_of(100);
    poll_gpus();
    assert_share(1, 0.3, 70 * 1 / 7.0 + 15, true);
    assert_share(2, 0.3, 70 * 2 / 7.0 + 15, true);
    seen.sample[2].processes.count = 0;
    poll_gpus(); /* the external process has worked until now */
    assert_share(1, 0.3, 70 * 1 / 7.0 + 15, true);
    poll_gpus();
    assert_share(1, 0.6, 70 * 1 / 7.0 + 30, false);
}

static void test_idle_power_is_divided_by_the_slices_of_the_card(void **state)
{
    open_compute_instances(4); /* an A30 */
    seen.sample[0].power_w = reading_of(100);
    poll_gpus();
    assert_share(1, 0.3, 70 * 1 / 4.0 + 15, true);
    assert_share(2, 0.3, 70 * 2 / 4.0 + 15, true);
}

static void test_a_close_poll_begins_after_it_was_wanted(void **state)
{
    open_gpus();
    gpus_poll(seen.gpus); /* under way */
    assert_int_equal(gpus_poll_closely(seen.gpus), 2);
    await_poll(2);
    poll_gpus();
    assert_int_equal(gpus_poll_closely(seen.gpus), 4);
    await_poll(4);
    assert_int_equal(seen.close_polls, 1 << 2 | 1 << 4);
}

static void test_another_gpu_appears(void **state)
{
    open_gpus();
    use_gpu(6, 0);
    poll_gpus();
    seen.next = &seen.sets[1];
    await_poll(gpus_poll_closely(seen.gpus) + 1); /* the new list is polled at once */
    expect_story("GPUS; ");
    assert_int_equal(gpus_count(seen.gpus), 2);
    assert_int_equal(core_view(pretend.core)->n_gpus, 2);
    struct gpu_report gpu;
    assert_true(gpus_report(seen.gpus, 0, &gpu)); /* its state moved with it */
    assert_int_equal(gpu.n_shares, 1);
}

static void test_a_lost_gpu(void **state)
{
    open_gpus();
    poll_gpus();
    assert_null(gpus_why_gone(seen.gpus, 0));
    assert_true(gpus_cuda_counts_as_nvml(seen.gpus, false));
    seen.sample[0] = (struct gpu_sample){
        .health = GPU_HEALTH_LOST, .health_reason = "fell off the bus"};
    poll_gpus();
    assert_string_equal(gpus_why_gone(seen.gpus, 0), "fell off the bus");
    assert_false(gpus_cuda_counts_as_nvml(seen.gpus, false));
}

/* Each change once; a failure soon after the last is not reported, unless it lasts. */
static void test_changes_of_health_are_reported(void **state)
{
    const struct gpu_sample well = seen.sample[0],
                            lost = {.health = GPU_HEALTH_LOST, .health_reason = "fell off the bus"};
    open_gpus();
    poll_gpus();
    assert_string_equal(seen.health, "");
    const struct gpu_sample *const samples[] = {&lost, &lost, &well, &lost};
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
        seen.sample[0] = *samples[i];
        poll_gpus();
    }
    assert_string_equal(seen.health, "lost: fell off the bus; ok: ; ");
    seen.later_us = 700 * SECOND_US;
    poll_gpus();
    assert_string_equal(seen.health, "lost: fell off the bus; ok: ; lost: fell off the bus; ");
}

static void test_errors_are_cleared_before_the_next_poll(void **state)
{
    open_gpus();
    gpus_clear_errors(seen.gpus, 0);
    await_poll(1);
    poll_gpus();
    assert_int_equal(seen.forgotten, 1);
}

static void test_an_idle_holder(void **state)
{
    bool is_long;
    open_gpus();
    use_gpu(6, 0);
    const struct gpu_view *view = &core_view(pretend.core)->gpus[0];
    seen.sample[0].smact = reading_of(0.5);
    poll_gpus();
    struct reading idle = gpus_idle_us(seen.gpus, 0, &view->residents[0], &is_long);
    assert_true(idle.valid && idle.value <= 0 && !is_long);
    seen.sample[0].smact = seen.sample[0].utilisation = READING_NONE;
    poll_gpus();
    assert_false(gpus_idle_us(seen.gpus, 0, &view->residents[0], &is_long).valid);
    assert_false(is_long);
    seen.config.unused_after_us = 0;
    seen.sample[0].smact = reading_of(0);
    pretend.story[0] = '\0';
    poll_gpus();
    assert_non_null(strstr(pretend.story, "IDLE"));
    pretend.story[0] = '\0';
    assert_true(gpus_idle_us(seen.gpus, 0, &view->residents[0], &is_long).valid);
    assert_true(is_long);
    poll_gpus();
    assert_null(strstr(pretend.story, "IDLE")); /* it was reported once */
}

static bool is_reported(void)
{
    pretend.story[0] = '\0';
    poll_gpus();
    return strstr(pretend.story, "IDLE");
}

static void test_an_idle_task_beside_others(void **state)
{
    open_gpus();
    use_gpu(6, 2);
    seen.sample[0].smact = reading_of(0.9);
    seen.config.unused_after_us = 0;
    assert_true(is_reported()); /* limits of zero are passed at once */
    seen.config.unused_after_us = 1;
    assert_false(is_reported()); /* others use the GPU; of this task's calls nothing is known */
    seen.calls_idle_us = reading_of(1e12);
    use_gpu(6, 0);
    assert_false(is_reported()); /* it is alone: the activity is its own, without a call */
    use_gpu(6, 2);
    seen.processes[0].sm_utilisation = reading_of(0.3);
    assert_false(is_reported()); /* the driver sees its kernels */
    seen.processes[0].sm_utilisation = reading_of(0);
    assert_true(is_reported());
    assert_false(is_reported());
    seen.config.core.suspend_unused_us = HOUR_US; /* it has not held its GPU as long */
    assert_false(is_reported());
    seen.config.core.suspend_unused_us = 1;
    assert_true(is_reported());
    assert_true(is_reported()); /* it was not suspended: again after twice the time */
    seen.config.core.suspend_unused_us = 0;
    assert_false(is_reported());
    seen.calls_idle_us = reading_of(0); /* it is at work again: everything begins anew */
    assert_false(is_reported());
    seen.calls_idle_us = reading_of(1e12);
    assert_true(is_reported());
    assert_false(is_reported());
}

/* The activity is that of the whole GPU instance: it may be that of the other compute instance. */
static void test_an_idle_task_beside_a_compute_instance(void **state)
{
    open_compute_instances(7);
    seen.config.unused_after_us = 1;
    seen.calls_idle_us = reading_of(0);
    assert_false(is_reported());
    seen.calls_idle_us = reading_of(1e12);
    assert_true(is_reported());
    seen.sample[2].processes.count = 0;
    assert_false(is_reported()); /* the activity is its own */
}

static void test_no_gpus(void **state)
{
    seen.open_answer = GPU_NO_LIBRARY;
    open_gpus();
    assert_string_equal(gpus_why_none(seen.gpus), "NVML is not installed");
    assert_int_equal(gpus_count(seen.gpus), 0);
    assert_int_equal(gpus_poll_closely(seen.gpus), 0);
    gpus_start(seen.gpus);
    assert_false(gpus_cuda_counts_as_nvml(seen.gpus, false));
}

static void test_a_close_during_a_poll(void **state)
{
    open_gpus();
    gpus_poll(seen.gpus);
    gpus_close(seen.gpus);
    uv_run(&pretend.loop, UV_RUN_DEFAULT); /* until the poll has ended, too */
    assert_int_equal(seen.polled, 0);
    assert_int_equal(gpus_poll_closely(seen.gpus), 0);
}

static void test_usage_that_cannot_be_written(void **state)
{
    open_gpus();
    gpus_save_usage(seen.gpus);
    assert_int_equal(seen.write_failures, 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(a_poll_feeds_the_core),
        TEST(processes_with_the_library_are_counted),
        TEST(processes_are_attributed),
        TEST(unexplained_memory_is_not_zero),
        TEST(memory_of_another_instance_is_explained),
        TEST(a_process_that_has_ended_before_it_was_looked_at),
        TEST(a_process_of_another_instance_is_not_external),
        TEST(compute_instances_share_what_is_measured),
        TEST(idle_power_is_divided_by_the_slices_of_the_card),
        TEST(a_close_poll_begins_after_it_was_wanted),
        TEST(another_gpu_appears),
        TEST(a_lost_gpu),
        TEST(changes_of_health_are_reported),
        TEST(errors_are_cleared_before_the_next_poll),
        TEST(an_idle_holder),
        TEST(an_idle_task_beside_others),
        TEST(an_idle_task_beside_a_compute_instance),
        TEST(no_gpus),
        TEST(a_close_during_a_poll),
        TEST(usage_that_cannot_be_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
