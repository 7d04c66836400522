/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Suspensions in the daemon, with pretend parts below and a pretend helper: each test reads the
 * story of the calls to the driver and of the events, in order.
 */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/array.h"
#include "base/file.h"
#include "base/units.h"
#include "checkpoint/copy_speed.h"
#include "checkpoint/helper_client.h"
#include "daemon/attempts/attempts_query.h"
#include "daemon/gpus/gpus.h"
#include "daemon/gpus/gpus_query.h"
#include "daemon/suspension/suspension.h"
#include "exec/container_slice.h"
#include "exec/process_owner.h"
#include "preload/page.h"
#include "pretend_driver.h"

static const char *const uuids[] = {
    "GPU-00000000-0000-0000-0000-000000000000", "GPU-00000000-0000-0000-0000-000000000001"};

/* Task 1 is this process, task 2 its parent: /proc shows both. */
static struct process {
    enum process_state state;
    uint32_t flags; /* of its page */
    enum preload_gate_answer gate;
    bool is_without_library;
    bool is_without_shim;
    bool hides;             /* it cannot be inspected in time */
    bool hangs;             /* the driver does not say its state */
    bool is_on_both;        /* its process has memory on both GPUs */
    bool is_copying;        /* its copy by the driver is not at its end */
    uint64_t born;          /* as it was listed; inspected is one started at 88123 */
    int lost_helpers;       /* how many more helpers end while they inspect it */
    int64_t in_call_us;     /* its carrier waits for a call in flight until then; 0: it has none */
    int64_t bytes, copy_us; /* 0: a MiB, and a millisecond for each call */
    int64_t saves_us;       /* it handles its --signal for so long; 0: it has none */
} processes[3];

static struct config config;
static struct suspension *suspension;
static double host_available_bytes;
static bool had_record; /* when the task's cgroup was used last */

static pid_t pid_of(uint64_t task)
{
    return task == 1 ? getpid() : getppid();
}

/* Of a large host, whatever other programs have of this one. */
struct reading __wrap_host_memory_available(void);
struct reading __wrap_host_memory_available(void)
{
    return reading_of(host_available_bytes);
}

/* The slice of the tests' containers, if it has been made. */
bool __wrap_container_slice_find(const char *cgroup, char *ret_path);
bool __wrap_container_slice_find(const char *cgroup, char *ret_path)
{
    snprintf(ret_path, CGROUP_PATH_SIZE, "%s/slice", config.state_dir);
    return access(ret_path, F_OK) == 0;
}

/* ---- the pretend helpers ---- */

struct helper_client {
    helper_on_reply *on_reply; /* NULL: no call is under way */
    void *context;
    struct helper_request request;
    int64_t limit_us;
};

static struct helper_client helpers[8];
static size_t n_helpers;

struct helper_client *helper_client_create(uv_loop_t *loop, const char *program)
{
    assert_true(n_helpers < ARRAY_SIZE(helpers));
    return &helpers[n_helpers++];
}

void helper_client_close(struct helper_client *client)
{
}

bool helper_client_is_busy(const struct helper_client *client)
{
    return client->on_reply;
}

int helper_client_take_descriptor(struct helper_client *client)
{
    return -1; /* of a loan, which these tests do not ask for */
}

int helper_client_call(struct helper_client *client, const struct helper_request *request,
    int64_t limit_us, helper_on_reply *on_reply, void *context)
{
    assert_null(client->on_reply);
    *client = (struct helper_client){on_reply, context, *request, limit_us};
    return 0;
}

/* As helper_client.c answers when the limit is over. */
static void inspect(struct process *process, struct helper_reply *reply)
{
    reply->result = process->hides ? -ETIMEDOUT : 0;
    if (process->lost_helpers) {
        process->lost_helpers--;
        reply->result = -EPIPE;
    }
    strcpy(reply->text, process->hides                ? "the NVIDIA driver does not answer"
                        : process->is_without_library ? "88123 without-library"
                                                      : "88123");
}

static void make_call(struct process *process, enum helper_call call, struct helper_reply *reply)
{
    static const enum process_state states[HELPER_CALLS] = {[HELPER_LOCK] = PROCESS_LOCKED,
        [HELPER_SUSPEND] = PROCESS_SUSPENDED,
        [HELPER_RESUME] = PROCESS_LOCKED,
        [HELPER_UNLOCK] = PROCESS_RUNNING};
    if (states[call])
        process->state = states[call];
    if (call == HELPER_STATE)
        reply->state = process->state;
    if (call == HELPER_STATE && process->hangs)
        reply->result = 999;
}

static uint64_t task_of(const struct helper_client *client)
{
    return client->request.pid == getpid() ? 1 : 2;
}

static bool is_copy(const struct helper_client *client)
{
    return client->request.call == HELPER_SUSPEND || client->request.call == HELPER_RESUME;
}

static void answer_call(struct helper_client *client)
{
    static struct helper_reply reply;
    helper_on_reply *on_reply = client->on_reply;
    enum helper_call call = client->request.call;
    uint64_t task = task_of(client);
    int64_t copy_us = is_copy(client) ? processes[task].copy_us : 0;
    reply = (struct helper_reply){.took_us = copy_us ? copy_us : 1000};
    if (call == HELPER_GPUS)
        snprintf(reply.text, sizeof reply.text, "13000 %s,%s", uuids[0], uuids[1]);
    else if (call == HELPER_INSPECT)
        inspect(&processes[task], &reply);
    else
        make_call(&processes[task], call, &reply);
    if (call >= HELPER_LOCK)
        tell("%s %llu; ", helper_call_name(call), (unsigned long long)task);
    client->on_reply = NULL;
    on_reply(client->context, &reply);
}

/* Returns a helper whose call can be answered; NULL: there is none. */
static struct helper_client *find_call(void)
{
    for (size_t i = 0; i < n_helpers; i++)
        if (helpers[i].on_reply &&
            !(is_copy(&helpers[i]) && processes[task_of(&helpers[i])].is_copying))
            return &helpers[i];
    return NULL;
}

/* Carries out calls until none is due. */
static void answer_calls(void)
{
    for (struct helper_client *client; (client = find_call());)
        answer_call(client);
}

/* ---- the parts below ---- */

int64_t gpus_poll_closely(struct gpus *gpus)
{
    return 1;
}

/* GPU `i` has one process, which is of task `i` + 1, and perhaps that of task 1. */
bool gpus_report(const struct gpus *gpus, size_t i, struct gpu_report *ret_report)
{
    static struct {
        struct gpu_info info;
        struct gpu_process processes[2];
        struct gpu_sample sample;
    } polled[ARRAY_SIZE(uuids)]; /* pointers into it are valid until the next poll */
    if (i >= ARRAY_SIZE(uuids))
        return false;
    int64_t bytes = processes[i + 1].bytes ? processes[i + 1].bytes : MIB;
    snprintf(polled[i].info.uuid, sizeof polled[i].info.uuid, "%s", uuids[i]);
    polled[i].processes[0] = (struct gpu_process){.pid = pid_of(i + 1),
        .born = processes[i + 1].born,
        .used_bytes = reading_of((double)bytes)};
    polled[i].processes[1] = (struct gpu_process){.pid = pid_of(1), .used_bytes = reading_of(MIB)};
    polled[i].sample.processes.valid = true;
    polled[i].sample.processes.count = i == 1 && processes[1].is_on_both ? 2 : 1;
    polled[i].sample.processes.item = polled[i].processes;
    *ret_report = (struct gpu_report){.info = &polled[i].info, .sample = &polled[i].sample};
    return true;
}

/* That of a task is its process. */
pid_t attempts_find_shim(const struct attempts *attempts, uint64_t task)
{
    return processes[task].is_without_shim ? 0 : pid_of(task);
}

const char *attempts_cgroup_home(const struct attempts *attempts)
{
    return NULL;
}

int process_owner_find(pid_t pid, const struct attempt_roots *roots)
{
    return pid == roots->shims[0] ? 0 : -1;
}

int64_t attempts_warn(const struct attempts *attempts, uint64_t task)
{
    if (processes[task].saves_us)
        tell("warn %llu; ", (unsigned long long)task);
    return processes[task].saves_us;
}

/* Task 1 has one, if that has been made: plain files of the kernel's names. */
bool attempts_find_cgroup(const struct attempts *attempts, uint64_t task, char *path, size_t size)
{
    char record[600];
    snprintf(record, sizeof record, "%s/suspended/%d", config.state_dir, (int)task);
    had_record = access(record, F_OK) == 0;
    snprintf(path, size, "%s/cgroup", config.state_dir);
    return task == 1 && access(path, F_OK) == 0;
}

enum preload_gate_answer preload_manager_set_gate(
    struct preload_manager *manager, uint64_t task, struct process_id id, bool is_closed)
{
    return processes[task].gate;
}

uint32_t preload_manager_flags(struct preload_manager *manager, uint64_t task, struct process_id id)
{
    return processes[task].flags;
}

enum preload_carry_answer preload_manager_carry(
    struct preload_manager *manager, uint64_t task, struct process_id id, bool is_away)
{
    if (!processes[task].in_call_us)
        return PRELOAD_CARRIES_NOT;
    return preload_manager_is_away(manager, task, id) ? PRELOAD_CARRIES_DONE
                                                      : PRELOAD_CARRIES_STILL;
}

bool preload_manager_is_away(struct preload_manager *manager, uint64_t task, struct process_id id)
{
    int64_t until_us = processes[task].in_call_us;
    return until_us && clock_monotonic_us() >= until_us;
}

enum preload_place preload_manager_lies(
    struct preload_manager *manager, uint64_t task, struct process_id id)
{
    return PRELOAD_PLACE_OWN;
}

enum preload_carry_answer preload_manager_relocate(
    struct preload_manager *manager, uint64_t task, struct process_id id, enum preload_place place)
{
    return PRELOAD_CARRIES_NOT;
}

bool preload_manager_give_room(struct preload_manager *manager, uint64_t task, struct process_id id,
    enum preload_place place, uint64_t bytes, uint64_t offset, int fd)
{
    return true;
}

bool preload_manager_lend_room(struct preload_manager *manager, uint64_t task, struct process_id id)
{
    return false;
}

uint64_t preload_manager_room_bytes(
    struct preload_manager *manager, uint64_t task, struct process_id id)
{
    return 0;
}

void preload_manager_limit_rooms(struct preload_manager *manager, int64_t idle_max_bytes)
{
}

bool preload_manager_can_carry(struct preload_manager *manager, uint64_t task, struct process_id id)
{
    return false;
}

bool preload_manager_counts_collectives(
    struct preload_manager *manager, uint64_t task, struct process_id id)
{
    return false;
}

enum preload_hold_answer preload_manager_hold(struct preload_manager *manager, uint64_t task)
{
    return PRELOAD_HOLD_REACHED;
}

bool preload_manager_has_no_ranks(
    struct preload_manager *manager, uint64_t task, struct process_id id)
{
    return false;
}

uint64_t preload_manager_carried_bytes(
    struct preload_manager *manager, uint64_t task, struct process_id id)
{
    return 0;
}

bool preload_manager_explain_carrier(
    struct preload_manager *manager, uint64_t task, struct process_id id, char *text, size_t size)
{
    return false;
}

void preload_manager_log_ranks(const struct preload_manager *manager, uint64_t task)
{
}

/* ---- the hook ---- */

static void answer(void *context, struct api_request *request, uint64_t task, const char *why)
{
}

static void on_suspend(uint64_t task)
{
    suspension_suspend(suspension, task);
}

static void on_resume(uint64_t task)
{
    suspension_resume(suspension, task);
}

static void on_pause(uint64_t task)
{
    suspension_pause(suspension, task);
}

static void on_continue(uint64_t task)
{
    suspension_continue(suspension, task);
}

/* ---- tests ---- */

/* GPUs whose UUIDs are as NVML writes them; those of the pretend driver are lost then. */
static void feed_gpus(void)
{
    struct gpu_identity list[ARRAY_SIZE(uuids)] = {0};
    struct event gpus = driver_event(pretend.driver, EVENT_GPUS, 0);
    for (size_t i = 0; i < ARRAY_SIZE(uuids); i++) {
        list[i].mem_total_bytes = 40 * GIB;
        list[i].is_place = true;
        snprintf(list[i].uuid, sizeof list[i].uuid, "%s", uuids[i]);
        snprintf(list[i].label, sizeof list[i].label, "%zu", i);
    }
    gpus.gpus.list = list;
    gpus.gpus.n = ARRAY_SIZE(uuids);
    driver_feed(pretend.driver, &gpus, NULL);
    for (size_t i = 0; i < ARRAY_SIZE(uuids); i++) {
        struct event sample = driver_event(pretend.driver, EVENT_SAMPLE, 0);
        sample.sample = (struct core_sample){.gpu = (int)i + 1,
            .mem_used_bytes = reading_of(0),
            .smact = reading_of(0),
            .utilisation = reading_of(0),
            .external_processes = reading_of(0)};
        driver_feed(pretend.driver, &sample, NULL);
    }
}

static int begin(void **state)
{
    static char folder[] = "/tmp/test-suspension-XXXXXX";
    memset(processes, 0, sizeof processes);
    memset(helpers, 0, sizeof helpers);
    n_helpers = 0;
    host_available_bytes = 64.0 * GIB;
    for (size_t i = 0; i < ARRAY_SIZE(processes); i++)
        processes[i].state = PROCESS_RUNNING;
    strcpy(folder, "/tmp/test-suspension-XXXXXX");
    assert_non_null(mkdtemp(folder));
    snprintf(config.state_dir, sizeof config.state_dir, "%s", folder);
    config.carrier = false;
    pretend_driver_begin(1);
    feed_gpus();
    struct core_settings settings = *core_get_settings(pretend.core);
    settings.can_suspend = true;
    core_configure(pretend.core, &settings);
    pretend.suspend = on_suspend;
    pretend.resume = on_resume;
    pretend.pause = on_pause;
    pretend.unpause = on_continue;
    const struct suspension_options options = {.loop = &pretend.loop,
        .config = &config,
        .core = pretend.core,
        .driver = pretend.driver,
        .hooks = {.answer = answer}};
    suspension = suspension_create(&options);
    assert_non_null(suspension);
    for (uint64_t task = 1; task <= 2; task++) {
        feed(EVENT_SUBMIT, task);
        feed(EVENT_STARTED, task);
        assert_int_equal(core_task(pretend.core, task)->state, TASK_RUNNING);
    }
    pretend.story[0] = '\0';
    return 0;
}

static int end(void **state)
{
    char command[600];
    suspension_close(suspension);
    pretend_driver_end();
    suspension_destroy(suspension);
    snprintf(command, sizeof command, "rm -r %s", config.state_dir);
    return system(command);
}

/* A user suspends the task, and the GPUs are polled. */
static void suspend(uint64_t task)
{
    feed(EVENT_SUSPEND, task);
    suspension_polled(suspension, 1);
    answer_calls();
}

static void test_suspended_and_resumed(void **state)
{
    suspend(1);
    expect_story("SUSPEND; SUSPENDING; lock 1; checkpoint 1; SUSPENDED; ");
    feed(EVENT_RESUME, 1);
    answer_calls();
    expect_story("RESUME; RESUMING; reserve 1; restore 1; unlock 1; RESUMED; ");
    assert_string_equal(suspension_why_failed(suspension, 1), "");
}

static void pause_instead(void)
{
    struct core_settings settings = *core_get_settings(pretend.core);
    settings.can_suspend = false;
    settings.can_pause = true;
    core_configure(pretend.core, &settings);
}

static void make_folder(const char *name)
{
    char path[600];
    snprintf(path, sizeof path, "%s/%s", config.state_dir, name);
    assert_int_equal(mkdir(path, 0700), 0);
}

/* As the kernel's file of a task that runs. */
static void make_freezer(const char *folder)
{
    char path[600];
    make_folder(folder);
    snprintf(path, sizeof path, "%s/%s/cgroup.freeze", config.state_dir, folder);
    assert_int_equal(file_write_atomic(path, "0", 1, 0600), 0);
}

static char frozen(const char *folder)
{
    char path[600], text[4] = "";
    snprintf(path, sizeof path, "%s/%s/cgroup.freeze", config.state_dir, folder);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_non_null(fgets(text, sizeof text, file));
    fclose(file);
    return text[0];
}

static void test_paused_and_continued(void **state)
{
    pause_instead();
    make_freezer("cgroup");
    make_freezer("slice");
    feed(EVENT_SUSPEND, 1);
    expect_story("SUSPEND; PAUSE; ");
    assert_int_equal(frozen("cgroup"), '1');
    assert_int_equal(frozen("slice"), '1');
    feed(EVENT_RESUME, 1);
    expect_story("RESUME; CONTINUE; ");
    assert_int_equal(frozen("cgroup"), '0');
    assert_int_equal(frozen("slice"), '0');
}

static void expect_no_pause(void)
{
    feed(EVENT_SUSPEND, 1);
    expect_story("SUSPEND; PAUSE; SUSPENSION_FAILED; ");
    assert_int_equal(core_task(pretend.core, 1)->state, TASK_RUNNING);
    assert_non_null(strstr(suspension_why_failed(suspension, 1), "could not be paused"));
}

/* Its processes compute: it must not count as paused. */
static void test_without_freezer_and_shim_it_is_not_paused(void **state)
{
    pause_instead();
    make_folder("cgroup");
    processes[1].is_without_shim = true;
    expect_no_pause();
}

/* So do its containers. What was frozen of it goes on. */
static void test_containers_that_run_on(void **state)
{
    pause_instead();
    make_freezer("cgroup");
    make_folder("slice");
    expect_no_pause();
    assert_int_equal(frozen("cgroup"), '0');
}

static void expect_refusal(const char *why)
{
    suspend(1);
    expect_story("SUSPEND; SUSPENDING; SUSPENSION_FAILED; ");
    assert_non_null(strstr(suspension_why_failed(suspension, 1), why));
}

static void test_managed_memory_is_refused_before_a_lock(void **state)
{
    processes[1].flags = PRELOAD_USES_MANAGED;
    expect_refusal("managed memory");
}

/* The memory is of a process that has ended, whose pid another one of the task has now. */
static void test_another_process_with_the_pid(void **state)
{
    processes[1].born = 88122;
    expect_refusal("no process of the task uses CUDA now");
    processes[1].born = 88123;
    suspend(1);
    expect_story("SUSPEND; SUSPENDING; lock 1; checkpoint 1; SUSPENDED; ");
}

static void test_shared_memory_is_refused_before_a_lock(void **state)
{
    processes[1].flags = PRELOAD_USES_IPC;
    expect_refusal("CUDA IPC");
}

static void test_without_the_library(void **state)
{
    processes[1].gate = PRELOAD_GATE_AWAY;
    expect_refusal("has not called CUDA since");
    assert_false(core_task(pretend.core, 1)->run->yield.cannot_suspend);
    processes[1].gate = PRELOAD_GATE_NONE;
    expect_refusal("this daemon runs all tasks without the preloaded library");
}

/* What is not connected is not waited for when its environment has no library. */
static void test_a_process_started_without_the_library(void **state)
{
    processes[1].is_without_library = true;
    processes[1].gate = PRELOAD_GATE_AWAY;
    expect_refusal("--preload=yes");
    assert_true(core_task(pretend.core, 1)->run->yield.cannot_suspend);
}

/* It waits for a file, not for the driver, and may be suspended when it has got that. */
static void test_a_process_that_cannot_be_inspected(void **state)
{
    processes[1].hides = true;
    expect_refusal("could not be inspected within 2 s");
    assert_int_equal(helpers[0].limit_us, 2 * SECOND_US);
    assert_false(core_task(pretend.core, 1)->run->yield.cannot_suspend);
    suspend(2);
    expect_story("SUSPEND; SUSPENDING; lock 2; checkpoint 2; SUSPENDED; ");
    processes[1].hides = false;
    suspend(1);
    expect_story("SUSPEND; SUSPENDING; lock 1; checkpoint 1; SUSPENDED; ");
}

/* The driver hangs on task 1. What is ordered for task 2 does not wait for that. */
static void test_another_task_goes_on_while_one_is_retried(void **state)
{
    suspend(1);
    processes[1].hangs = true;
    pretend.story[0] = '\0';
    feed(EVENT_RESUME, 1);
    answer_calls();
    expect_story("RESUME; RESUMING; ");
    suspend(2);
    expect_story("SUSPEND; SUSPENDING; lock 2; checkpoint 2; SUSPENDED; ");
    assert_int_equal(core_task(pretend.core, 1)->state, TASK_RESUMING);
}

static void run_until_story(void);

/* The driver copies the memory of task 1. Task 2 is on another GPU, and does not wait for that. */
static void test_another_task_goes_on_while_the_driver_copies(void **state)
{
    processes[1].is_copying = true;
    suspend(1);
    expect_story("SUSPEND; SUSPENDING; lock 1; ");
    suspend(2);
    expect_story("SUSPEND; SUSPENDING; lock 2; checkpoint 2; SUSPENDED; ");
    feed(EVENT_RESUME, 2);
    answer_calls();
    expect_story("RESUME; RESUMING; reserve 2; restore 2; unlock 2; RESUMED; ");
    processes[1].is_copying = false;
    answer_calls();
    expect_story("checkpoint 1; SUSPENDED; ");
}

/* Copies of both end at once: each goes on where its own was. */
static void test_the_driver_copies_for_two_tasks(void **state)
{
    processes[1].is_copying = processes[2].is_copying = true;
    suspend(1);
    suspend(2);
    expect_story("SUSPEND; SUSPENDING; lock 1; SUSPEND; SUSPENDING; lock 2; ");
    processes[1].is_copying = processes[2].is_copying = false;
    answer_calls();
    expect_story("checkpoint 1; SUSPENDED; checkpoint 2; SUSPENDED; ");
    assert_int_equal(n_helpers, 3); /* two, and one for the order under way */
}

/* Task 1 has memory on the GPU of task 2, too: what one reserves there could be what the restore of
 * the other needs. */
static void test_two_orders_of_a_gpu_are_not_with_the_driver_at_once(void **state)
{
    processes[1].is_on_both = processes[1].is_copying = true;
    suspend(1);
    suspend(2);
    expect_story("SUSPEND; SUSPENDING; lock 1; SUSPEND; SUSPENDING; ");
    processes[1].is_copying = false;
    answer_calls();
    suspension_polled(suspension, 1);
    answer_calls();
    expect_story("checkpoint 1; SUSPENDED; lock 2; checkpoint 2; SUSPENDED; ");
}

/* The host has memory for one of the two copies. */
static void test_host_memory_that_the_driver_still_fills(void **state)
{
    processes[1].bytes = processes[2].bytes = 40 * GIB;
    processes[1].is_copying = true;
    suspend(1);
    pretend.story[0] = '\0';
    suspend(2);
    expect_story("SUSPEND; SUSPENDING; ");
    processes[1].is_copying = false;
    answer_calls();
    expect_story("checkpoint 1; SUSPENSION_COST; SUSPENDED; ");
    host_available_bytes -= 40.0 * GIB;
    run_until_story();
    expect_story("SUSPENSION_FAILED; ");
    assert_non_null(strstr(suspension_why_failed(suspension, 2), "too little free memory"));
}

static void test_a_task_that_ends_while_the_driver_copies(void **state)
{
    processes[1].is_copying = true;
    suspend(1);
    struct event exited = driver_event(pretend.driver, EVENT_EXITED, 1);
    driver_feed(pretend.driver, &exited, NULL);
    pretend.story[0] = '\0';
    processes[1].is_copying = false;
    answer_calls();
    expect_story("checkpoint 1; ");
    suspend(2);
    expect_story("SUSPEND; SUSPENDING; lock 2; checkpoint 2; SUSPENDED; ");
}

/* That says nothing of the task. */
static void test_a_helper_that_is_killed(void **state)
{
    processes[1].lost_helpers = 2;
    suspend(1);
    expect_story("SUSPEND; SUSPENDING; ");
    run_until_story();
    expect_story("lock 1; checkpoint 1; SUSPENDED; ");
    assert_string_equal(suspension_why_failed(suspension, 1), "");
}

static void test_a_helper_that_ends_each_time(void **state)
{
    processes[1].lost_helpers = 100;
    suspend(1);
    expect_story("SUSPEND; SUSPENDING; ");
    run_until_story();
    expect_story("SUSPENSION_FAILED; ");
}

static void run_until_story(void)
{
    while (!pretend.story[0]) {
        uv_run(&pretend.loop, UV_RUN_ONCE);
        suspension_polled(suspension, 1);
        answer_calls();
    }
}

/* A call of task 1 is in flight. It is waited for at the front of the queue for a moment, and
 * behind task 2 then. */
static void test_another_task_goes_on_while_a_call_is_in_flight(void **state)
{
    processes[1].gate = PRELOAD_GATE_BUSY;
    suspend(1);
    expect_story("SUSPEND; SUSPENDING; ");
    suspend(2);
    expect_story("SUSPEND; SUSPENDING; ");
    run_until_story();
    expect_story("lock 2; checkpoint 2; SUSPENDED; ");
    processes[1].gate = PRELOAD_GATE_CLEAR;
    run_until_story();
    expect_story("lock 1; checkpoint 1; SUSPENDED; ");
    assert_string_equal(suspension_why_failed(suspension, 1), "");
}

static void test_a_task_that_ends_while_a_call_is_in_flight(void **state)
{
    processes[1].gate = processes[2].gate = PRELOAD_GATE_BUSY;
    suspend(1);
    suspend(2);
    struct event exited = driver_event(pretend.driver, EVENT_EXITED, 1);
    driver_feed(pretend.driver, &exited, NULL);
    expect_story("SUSPEND; SUSPENDING; SUSPEND; SUSPENDING; EXITED none; END; ");
    processes[2].gate = PRELOAD_GATE_CLEAR;
    run_until_story();
    expect_story("lock 2; checkpoint 2; SUSPENDED; ");
}

/* What the core knows of the GPU; -1: of the machine. */
static struct suspension_costs costs_of(int gpu)
{
    return (struct suspension_costs){
        .driver = *core_stop_cost(pretend.core, gpu, SUSPENSION_BY_DRIVER),
        .carrier = *core_stop_cost(pretend.core, gpu, SUSPENSION_BY_CARRIER),
        .neighbour = *core_stop_cost(pretend.core, gpu, SUSPENSION_TO_NEIGHBOUR)};
}

/* A carrier that waits for a kernel of the program does not copy slowly. */
static void test_a_wait_for_a_call_is_no_cost_of_a_copy(void **state)
{
    char path[600], text[COPY_SPEED_TEXT_SIZE] = "";
    const struct suspension_costs before = costs_of(-1);
    config.carrier = true;
    processes[1].bytes = 10 * GIB;
    processes[1].in_call_us = clock_monotonic_us() + 2 * SECOND_US;
    suspend(1);
    expect_story("SUSPEND; SUSPENDING; ");
    run_until_story();
    assert_int_equal(core_task(pretend.core, 1)->state, TASK_SUSPENDED);
    pretend.story[0] = '\0';
    snprintf(path, sizeof path, "%s/copy-speed", config.state_dir);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    size_t size = fread(text, 1, sizeof text, file);
    fclose(file);
    struct copy_speed speed = copy_speed_read((struct span){text, size});
    assert_int_equal(speed.machine.learned[CARRY_TO_HOST], 1);
    assert_true(speed.machine.s_per_gib[CARRY_TO_HOST] < 0.08); /* with the wait 0.09 and more */
    double learned_us = 1e6 * speed.machine.s_per_gib[CARRY_TO_HOST],
           unknown_us = fabs((double)costs_of(-1).carrier.suspend_us_per_gib - learned_us);
    assert_true(unknown_us < 0.1 * (double)before.carrier.suspend_us_per_gib + 100);
    const struct suspension_costs after = costs_of(-1);
    assert_memory_equal(&after.driver, &before.driver, sizeof before.driver);
}

/* Of task 1, which an earlier daemon had begun to suspend, until its driver had its memory. */
static void leave_record(void)
{
    char path[600];
    snprintf(path, sizeof path, "%s/suspended", config.state_dir);
    assert_int_equal(mkdir(path, 0700), 0);
    snprintf(path, sizeof path, "%s/suspended/1", config.state_dir);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "attempt 1\nnumber 0\nphase suspending\ngpu %s\nprocess %d 88123\n", uuids[0],
        (int)pid_of(1));
    fclose(file);
    processes[1].state = PROCESS_SUSPENDED;
}

/* Its library is not connected yet, and never comes: it must not stand still in the driver. */
static void test_what_an_earlier_daemon_has_suspended_goes_on(void **state)
{
    leave_record();
    processes[1].gate = PRELOAD_GATE_AWAY;
    suspend(1);
    expect_story("SUSPEND; SUSPENDING; ");
    run_until_story();
    expect_story("restore 1; unlock 1; SUSPENSION_FAILED; ");
    assert_non_null(strstr(suspension_why_failed(suspension, 1), "has not called CUDA"));
}

static void test_what_an_earlier_daemon_has_suspended_stays_so(void **state)
{
    leave_record();
    processes[1].gate = PRELOAD_GATE_AWAY;
    suspend(1);
    expect_story("SUSPEND; SUSPENDING; ");
    processes[1].gate = PRELOAD_GATE_CLEAR; /* its library has found this daemon */
    run_until_story();
    expect_story("SUSPENDED; ");
}

static void limit_copies(int64_t bytes)
{
    struct core_settings settings = *core_get_settings(pretend.core);
    settings.copies_max_bytes = bytes;
    core_configure(pretend.core, &settings);
}

/* The core samples what the GPUs list of the task. */
static void sample_task(uint64_t task)
{
    struct task_memory memory = {
        .task = task, .mem_used_bytes = reading_of((double)processes[task].bytes)};
    struct event sample = driver_event(pretend.driver, EVENT_SAMPLE, 0);
    sample.sample = (struct core_sample){.gpu = core_task(pretend.core, task)->gpus[0],
        .mem_used_bytes = memory.mem_used_bytes,
        .smact = reading_of(0),
        .utilisation = reading_of(0),
        .external_processes = reading_of(0),
        .tasks = &memory,
        .n_tasks = 1};
    driver_feed(pretend.driver, &sample, NULL);
}

/* The host memory that a waiting order may take is not given to the next one. */
static void test_waiting_orders_count_in_the_host_memory(void **state)
{
    processes[1].gate = PRELOAD_GATE_BUSY;
    processes[1].bytes = processes[2].bytes = 4 * MIB;
    sample_task(1);
    sample_task(2);
    limit_copies(6 * MIB);
    suspend(1);
    suspend(2);
    pretend.story[0] = '\0';
    run_until_story();
    expect_story("SUSPENSION_FAILED; ");
    assert_non_null(strstr(suspension_why_failed(suspension, 2), "suspend-memory-max"));
}

/* Orders of other tasks are carried out while one saves its checkpoint. */
static void test_a_task_is_warned_before(void **state)
{
    processes[1].saves_us = 20 * MS_US;
    suspend(1);
    expect_story("SUSPEND; SUSPENDING; warn 1; ");
    suspend(2);
    expect_story("SUSPEND; SUSPENDING; lock 2; checkpoint 2; SUSPENDED; ");
    run_until_story();
    expect_story("lock 1; checkpoint 1; SUSPENDED; ");
    feed(EVENT_RESUME, 1);
    answer_calls();
    expect_story("RESUME; RESUMING; reserve 1; restore 1; unlock 1; RESUMED; ");
}

static void test_a_task_that_ends_in_its_warning(void **state)
{
    processes[1].saves_us = 5 * MS_US;
    feed(EVENT_SUSPEND, 1);
    struct event exited = driver_event(pretend.driver, EVENT_EXITED, 1);
    driver_feed(pretend.driver, &exited, NULL);
    uv_run(&pretend.loop, UV_RUN_ONCE);
    answer_calls();
    expect_story("SUSPEND; SUSPENDING; warn 1; EXITED none; END; ");
}

static void test_a_task_that_ends_meanwhile(void **state)
{
    feed(EVENT_SUSPEND, 1);
    struct event exited = driver_event(pretend.driver, EVENT_EXITED, 1);
    driver_feed(pretend.driver, &exited, NULL);
    suspension_polled(suspension, 1);
    answer_calls();
    expect_story("SUSPEND; SUSPENDING; EXITED none; END; ");
    suspend(2);
    expect_story("SUSPEND; SUSPENDING; lock 2; checkpoint 2; SUSPENDED; ");
}

/* By the driver, also with the carrier on, which cannot take the task. 4 GiB in 0.8 s each way:
 * faster to the host than assumed, and as fast back as assumed, which is not reported. */
static void test_the_core_learns_how_fast_copies_are(void **state)
{
    const struct suspension_costs before = costs_of(-1);
    config.carrier = true;
    processes[1].bytes = 4 * GIB;
    processes[1].copy_us = 800000;
    suspend(1);
    expect_story("SUSPEND; SUSPENDING; lock 1; checkpoint 1; SUSPENSION_COST; SUSPENDED; ");
    assert_in_range(
        costs_of(-1).driver.suspend_us_per_gib, 400000, before.driver.suspend_us_per_gib - 1);
    const struct suspension_costs after = costs_of(-1);
    assert_memory_equal(&after.carrier, &before.carrier, sizeof before.carrier);
    feed(EVENT_RESUME, 1);
    answer_calls();
    expect_story("RESUME; RESUMING; reserve 1; restore 1; unlock 1; RESUMED; ");
}

/* GPU 1 is on a link of a fifth of the speed. */
static void test_the_core_learns_what_a_stop_costs_on_each_gpu(void **state)
{
    for (uint64_t task = 1; task <= 2; task++) {
        processes[task].bytes = 4 * GIB;
        processes[task].copy_us = (task == 1 ? 16 : 80) * INT64_C(100000);
    }
    for (int i = 0; i < 16; i++) {
        uint64_t task = 1 + (uint64_t)i % 2;
        suspend(task);
        feed(EVENT_RESUME, task);
        answer_calls();
        pretend.story[0] = '\0';
    }
    int near = core_task(pretend.core, 1)->gpus[0], far = core_task(pretend.core, 2)->gpus[0];
    assert_in_range(costs_of(near).driver.suspend_us_per_gib, 380000, 460000);
    assert_in_range(costs_of(far).driver.suspend_us_per_gib, 1700000, 2100000);
    assert_in_range(costs_of(-1).driver.suspend_us_per_gib, 1000000, 1300000);
    assert_in_range(costs_of(near).driver.resume_us_per_gib, 340000, 460000);
    assert_in_range(costs_of(far).driver.resume_us_per_gib, 1500000, 2100000);
    assert_int_equal(
        costs_of(far).carrier.suspend_us_per_gib, costs_of(-1).carrier.suspend_us_per_gib);
    suspend(1); /* nothing new, which is not reported */
    expect_story("SUSPEND; SUSPENDING; lock 1; checkpoint 1; SUSPENDED; ");
}

/* Older versions had one cost for both ways. */
static void test_a_cost_of_both_ways_is_corrected(void **state)
{
    const struct suspension_costs before = costs_of(-1);
    struct event old = driver_event(pretend.driver, EVENT_SUSPENSION_COST, 0);
    old.suspension_cost.cost = (struct suspension_cost){600000, 60000, 26000};
    assert_int_equal(driver_feed(pretend.driver, &old, NULL), 0);
    assert_int_equal(costs_of(-1).driver.suspend_us_per_gib, 60000);
    assert_int_equal(costs_of(-1).carrier.suspend_us_per_gib, 60000);
    suspend(1);
    assert_in_range(
        costs_of(-1).driver.suspend_us_per_gib, 600000, before.driver.suspend_us_per_gib);
    assert_int_equal(costs_of(-1).carrier.suspend_us_per_gib, before.carrier.suspend_us_per_gib);
}

static const char *cgroup_file(const char *name)
{
    static char path[700];
    snprintf(path, sizeof path, "%s/cgroup/%s", config.state_dir, name);
    return path;
}

static void make_cgroup(const char *memory_max)
{
    static const char *const names[] = {"memory.high", "memory.max", "memory.oom.group"};
    assert_int_equal(mkdir(cgroup_file(""), 0700), 0);
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        FILE *file = fopen(cgroup_file(names[i]), "w");
        assert_non_null(file);
        fputs(i == 1 ? memory_max : "", file);
        fclose(file);
    }
}

/* As plain files keep the rest of a longer number, only what a write puts first is read. */
static int64_t limit_of_cgroup(const char *name)
{
    FILE *file = fopen(cgroup_file(name), "r");
    long long bytes = 0;
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%lld", &bytes), 1);
    fclose(file);
    assert_int_equal(truncate(cgroup_file(name), 0), 0);
    return bytes;
}

/* A limit of 2 GiB, and 4 GiB on the GPU. */
static void test_the_cgroup_may_hold_the_gpu_memory_meanwhile(void **state)
{
    make_cgroup("2147483648\n");
    processes[1].bytes = 4 * GIB;
    processes[1].copy_us = 800000;
    suspend(1);
    assert_string_equal(suspension_why_failed(suspension, 1), "");
    assert_in_range(limit_of_cgroup("memory.max"), 6 * GIB + 1, 7 * GIB);
    feed(EVENT_RESUME, 1);
    answer_calls();
    assert_int_equal(core_task(pretend.core, 1)->state, TASK_RUNNING);
    assert_int_equal(limit_of_cgroup("memory.max"), 2 * GIB);
}

static void test_a_suspension_that_fails_leaves_the_limit(void **state)
{
    make_cgroup("2147483648\n");
    processes[1].flags = PRELOAD_USES_MANAGED;
    expect_refusal("managed memory");
    assert_int_equal(limit_of_cgroup("memory.max"), 2 * GIB);
}

/* A daemon that is killed in between finds the limit in the record. */
static void test_the_limit_is_set_back_before_the_record_is_removed(void **state)
{
    make_cgroup("2147483648\n");
    processes[1].gate = PRELOAD_GATE_AWAY;
    expect_refusal("has not called CUDA since");
    assert_int_equal(limit_of_cgroup("memory.max"), 2 * GIB);
    assert_true(had_record);
    assert_false(attempts_find_cgroup(NULL, 2, (char[600]){0}, 600));
    assert_false(had_record);
}

static void test_a_cgroup_without_a_limit_gets_none(void **state)
{
    char text[8] = "";
    make_cgroup("max\n");
    suspend(1);
    feed(EVENT_RESUME, 1);
    answer_calls();
    assert_int_equal(file_read_start(cgroup_file("memory.max"), text, sizeof text), 4);
    assert_string_equal(text, "max\n");
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_suspended_and_resumed),
        TEST(test_paused_and_continued),
        TEST(test_without_freezer_and_shim_it_is_not_paused),
        TEST(test_containers_that_run_on),
        TEST(test_managed_memory_is_refused_before_a_lock),
        TEST(test_another_process_with_the_pid),
        TEST(test_shared_memory_is_refused_before_a_lock),
        TEST(test_without_the_library),
        TEST(test_a_process_started_without_the_library),
        TEST(test_a_process_that_cannot_be_inspected),
        TEST(test_a_helper_that_is_killed),
        TEST(test_a_helper_that_ends_each_time),
        TEST(test_another_task_goes_on_while_one_is_retried),
        TEST(test_another_task_goes_on_while_a_call_is_in_flight),
        TEST(test_another_task_goes_on_while_the_driver_copies),
        TEST(test_the_driver_copies_for_two_tasks),
        TEST(test_two_orders_of_a_gpu_are_not_with_the_driver_at_once),
        TEST(test_host_memory_that_the_driver_still_fills),
        TEST(test_a_task_that_ends_while_the_driver_copies),
        TEST(test_a_task_that_ends_while_a_call_is_in_flight),
        TEST(test_a_wait_for_a_call_is_no_cost_of_a_copy),
        TEST(test_what_an_earlier_daemon_has_suspended_goes_on),
        TEST(test_what_an_earlier_daemon_has_suspended_stays_so),
        TEST(test_waiting_orders_count_in_the_host_memory),
        TEST(test_a_task_is_warned_before),
        TEST(test_a_task_that_ends_in_its_warning),
        TEST(test_a_task_that_ends_meanwhile),
        TEST(test_the_core_learns_how_fast_copies_are),
        TEST(test_the_cgroup_may_hold_the_gpu_memory_meanwhile),
        TEST(test_a_suspension_that_fails_leaves_the_limit),
        TEST(test_a_cost_of_both_ways_is_corrected),
        TEST(test_the_core_learns_what_a_stop_costs_on_each_gpu),
        TEST(test_the_limit_is_set_back_before_the_record_is_removed),
        TEST(test_a_cgroup_without_a_limit_gets_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
