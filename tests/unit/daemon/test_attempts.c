/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part attempts with pretend parts below, shims and cgroups: each test reads the story of
 * what was spawned, fed and killed.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/tcp_address.h"
#include "daemon/attempts/attempts.h"
#include "daemon/attempts/attempts_query.h"
#include "daemon/gpus/gpus.h"
#include "daemon/gpus/gpus_query.h"
#include "exec/attempt.h"
#include "exec/cgroup.h"
#include "exec/container_slice.h"
#include "exec/device_filter.h"
#include "exec/torch_responder.h"
#include "policy/policies.h"
#include "pretend_driver.h"
#include "service/user_helper.h"

static struct {
    struct attempts *attempts;
    struct config config;
    int create_fault; /* of the next attempt_create; 0: it succeeds */
    int spawn_fault;  /* the same of attempt_spawn */
    int probed;       /* the answer of attempt_probe */
    struct attempt_exit exit;
    int shim;        /* an eventfd in place of the shim's pidfd: readable when it has ended */
    bool joined_mps; /* the attempt's environment has it */
    int mps;         /* the answer of prepare_mps */
    bool gpu_is_lost;
    const char *preload_socket;
    int port; /* of the tasks */
    int64_t polls;
    int helper_fault; /* of user_helper_begin */
    struct user_helper *sweeper;
} seen;

/* ---- shims ---- */

int attempt_create(const char *folder, const struct attempt_spec *spec, struct fault *fault)
{
    int r = seen.create_fault;
    seen.create_fault = 0;
    if (r < 0)
        return fault_set(fault, -r, "the disk is full");
    tell("create %s; ", folder + strlen(seen.config.state_dir) + 1);
    for (const char *const *added = spec->env_added; *added; added++)
        if (strncmp(*added, "CUDA_VISIBLE_DEVICES=", 21) == 0)
            tell("GPU %s; ", *added + 21);
    for (const char *const *added = spec->env_added; *added; added++)
        if (strncmp(*added, "LD_PRELOAD=", 11) == 0)
            tell("preload %s; ", *added + 11);
    return 0;
}

static void open_shim(struct attempt_watch *ret_watch)
{
    seen.shim = eventfd(0, EFD_CLOEXEC);
    *ret_watch = (struct attempt_watch){.shim = 4711, .pidfd = seen.shim};
}

int attempt_spawn(
    const char *shim_path, const char *folder, struct fault *fault, struct attempt_watch *ret_watch)
{
    int r = seen.spawn_fault;
    seen.spawn_fault = 0;
    if (r < 0)
        return fault_set(fault, -r, "no process is free");
    tell("spawn; ");
    open_shim(ret_watch);
    return 0;
}

int attempt_probe(const char *folder, struct fault *fault, struct attempt_watch *ret_watch,
    struct attempt_exit *ret_exit)
{
    if (seen.probed < 0)
        return fault_set(fault, -seen.probed, "the exit cannot be read");
    if (seen.probed == ATTEMPT_RUNNING)
        open_shim(ret_watch);
    *ret_exit = seen.exit;
    return seen.probed;
}

int attempt_terminate(const struct attempt_watch *watch, enum attempt_ask ask)
{
    assert_int_equal(watch->pidfd, seen.shim);
    tell("end it%s; ", ask == ATTEMPT_ASK_TIME_LIMIT ? " at its limit" : "");
    return 0;
}

/* Of a shim that stays stopped: those here run. */
int attempt_signal_shim(const struct attempt_watch *watch, int signal)
{
    fail_msg("signal %d for shim %d", signal, (int)watch->shim);
    return 0;
}

int attempt_has_variable(
    const char *folder, const char *variable, struct fault *fault, bool *ret_has)
{
    *ret_has = seen.joined_mps;
    return 0;
}

bool attempt_keeps_other_limit(const char *folder, int64_t limit_us)
{
    return false;
}

void attempt_clean(const char *folder)
{
    tell("clean; ");
}

void attempt_unwatch(struct attempt_watch *watch)
{
    if (watch->pidfd >= 0)
        close(watch->pidfd);
    watch->pidfd = -1;
}

int64_t attempt_warn(const char *folder, const struct attempt_watch *watch, struct fault *fault)
{
    return 0;
}

int torch_responder_name(char ret_sockets[TORCH_SOCKET_FOLDER])
{
    return -ENOSYS;
}

/* Only a helper calls it, and none is started here. */
int attempt_sweep(const char *folder, uid_t uid)
{
    fail();
    return 0;
}

/* ---- the helper that sweeps ---- */

int user_helper_begin(struct user_helper *helper, uv_loop_t *loop,
    const struct user_helper_order *order, struct fault *fault)
{
    static char some_handles;
    tell("sweep; ");
    if (seen.helper_fault < 0)
        return fault_set(fault, -seen.helper_fault, "no process is free");
    seen.sweeper = helper;
    helper->handles = (struct user_helper_handles *)(void *)&some_handles;
    return 0;
}

void user_helper_leave(struct user_helper *helper)
{
    helper->handles = NULL;
}

int user_helper_become(const struct user_helper_order *order)
{
    abort();
}

_Noreturn void user_helper_end(struct user_helper *helper, const struct user_helper_report *report)
{
    abort();
}

static void end_sweep(int answer)
{
    const struct fault fault = {.text = "it did not answer"};
    seen.sweeper->handles = NULL;
    seen.sweeper->on_done(seen.sweeper, answer, &fault);
}

bool cgroup_find_name(const char *path, char *ret_name)
{
    return false;
}

int cgroup_open_home(char *home, struct cgroup_controllers *ret_enabled, struct fault *fault)
{
    return fault_set(fault, ENOENT, "none here");
}

int cgroup_limit(const char *path, const struct cgroup_limits *limits)
{
    return 0;
}

int cgroup_limit_attempt(const char *path, const struct cgroup_limits *limits)
{
    return 0;
}

bool container_slice_find_home(char *ret_home)
{
    return false; /* the system test has slices */
}

bool container_slice_find(const char *cgroup, char *ret_path)
{
    return false;
}

int container_slice_limit(const char *path, const struct cgroup_limits *limits)
{
    return 0;
}

int container_slice_end(const char *path)
{
    return 0;
}

bool cgroup_parse_slice_name(
    const char *name, const char *state_dir, uint64_t *ret_task, int *ret_attempt)
{
    return false;
}

int gpu_minors_parse(const char *text, struct gpu_minors *ret_minors)
{
    return 0;
}

int device_filter_set(const char *path, const struct gpu_minors *minors)
{
    return 0;
}

int device_filter_try(const char *home, struct fault *fault)
{
    return fault_set(fault, ENOSYS, "none here");
}

bool cgroup_of_attempt(const char *home, const char *folder, char *path, size_t size)
{
    return false;
}

bool cgroup_parse_name(
    const char *name, const char *state_dir, uint64_t *ret_task, int *ret_attempt)
{
    return false;
}

int cgroup_kill(const char *path)
{
    return 0;
}

int cgroup_remove(const char *path, int64_t limit_us)
{
    return 0;
}

int store_get_blob(
    struct store *store, const char *key, struct fault *fault, char **ret_data, size_t *ret_size)
{
    *ret_data = calloc(1, 1);
    *ret_size = 0;
    return 0;
}

/* ---- the parts below ---- */

const char *preload_manager_socket(const struct preload_manager *manager)
{
    return seen.preload_socket;
}

int mps_prepare(struct mps *mps, uid_t uid, gid_t gid, const char *instance,
    const char **ret_pipe_dir, struct fault *fault)
{
    assert_int_equal(gid, 100);
    assert_string_equal(instance, "");
    *ret_pipe_dir = "/mps";
    tell("prepare MPS; ");
    return seen.mps < 0 ? fault_set(fault, -seen.mps, "no MPS here") : seen.mps;
}

void mps_pipe_dir(const struct mps *mps, uid_t uid, const char *instance, char *path, size_t size)
{
    assert_string_equal(instance, "");
    snprintf(path, size, "/mps");
}

void mps_task_ended(struct mps *mps, uid_t uid, const char *instance)
{
    assert_string_equal(instance, "");
    tell("MPS task ended; ");
}

bool gpus_cuda_counts_as_nvml(const struct gpus *gpus, bool by_mps)
{
    return true;
}

const char *gpus_why_gone(const struct gpus *gpus, int gpu)
{
    return seen.gpu_is_lost ? "fell off the bus" : NULL;
}

void gpus_poll(struct gpus *gpus)
{
    tell("poll; ");
}

int64_t gpus_poll_closely(struct gpus *gpus)
{
    tell("poll closely; ");
    return ++seen.polls;
}

void gpus_end_usage(struct gpus *gpus, struct job *job)
{
    assert_non_null(job);
}

/* ---- */

static void start(uint64_t task)
{
    jobs_find(pretend.jobs, task)->port = seen.port;
    attempts_start(seen.attempts, task);
}

static void stop(uint64_t task)
{
    attempts_kill(seen.attempts, task);
}

static int begin_with(int n_gpus)
{
    memset(&seen, 0, sizeof seen);
    strcpy(seen.config.state_dir, "/nowhere");
    pretend_driver_begin(n_gpus);
    pretend.start = start;
    pretend.kill = stop;
    const struct attempts_options options = {
        .loop = &pretend.loop,
        .config = &seen.config,
        .core = pretend.core,
        .jobs = pretend.jobs,
        .driver = pretend.driver,
    };
    seen.attempts = attempts_create(&options);
    return 0;
}

static int begin(void **state)
{
    return begin_with(1);
}

static int begin_with_two(void **state)
{
    return begin_with(2);
}

static int end(void **state)
{
    attempts_close(seen.attempts);
    pretend_driver_end();
    attempts_destroy(seen.attempts);
    return 0;
}

static void run_task(void)
{
    assert_int_equal(feed(EVENT_SUBMIT, 1), 0);
    expect_story("SUBMIT; PLACE; create tasks/1/1; GPU 0; spawn; STARTED; ");
    assert_true(attempts_is_watched(seen.attempts, 1));
    assert_int_equal(attempts_find_shim(seen.attempts, 1), 4711);
}

/* What is to be tried again is done in a turn of the loop. */
static void retry(void)
{
    attempts_retry(seen.attempts);
    uv_run(&pretend.loop, UV_RUN_NOWAIT);
}

static void mps_ready(uid_t uid)
{
    attempts_mps_ready(seen.attempts, uid);
    uv_run(&pretend.loop, UV_RUN_NOWAIT);
}

static void polled(int64_t poll)
{
    attempts_polled(seen.attempts, poll);
    uv_run(&pretend.loop, UV_RUN_NOWAIT);
}

/* The shim ends, and its folder says that. */
static void end_shim(int probed, enum failure_class failure)
{
    seen.probed = probed;
    seen.exit = (struct attempt_exit){
        .exit_code = failure == FAILURE_NONE ? 0 : 1, .failure = {.class = failure}};
    assert_int_equal(eventfd_write(seen.shim, 1), 0);
    uv_run(&pretend.loop, UV_RUN_NOWAIT);
    assert_false(attempts_is_watched(seen.attempts, 1));
}

static void test_an_attempt_from_start_to_exit(void **state)
{
    run_task();
    end_shim(ATTEMPT_ENDED, FAILURE_NONE);
    expect_story("EXITED none; END; poll; ");
    assert_int_equal(attempts_find_shim(seen.attempts, 1), 0);
}

static void take_long(uint64_t task, const json_t *record)
{
    uv_sleep(10); /* more than the ends of one turn may take together */
}

static void test_many_ends_are_read_in_turns(void **state)
{
    run_task();
    int shim = seen.shim;
    assert_int_equal(feed(EVENT_SUBMIT, 2), 0);
    expect_story("SUBMIT; PLACE; create tasks/2/1; GPU 1; spawn; STARTED; ");
    pretend.ended = take_long;
    seen.probed = ATTEMPT_ENDED;
    assert_int_equal(eventfd_write(shim, 1), 0);
    assert_int_equal(eventfd_write(seen.shim, 1), 0);
    for (int turn = 0; turn < 2; turn++) {
        uv_run(&pretend.loop, UV_RUN_NOWAIT);
        expect_story("EXITED none; END; poll; ");
    }
}

static void test_it_is_preloaded(void **state)
{
    strcpy(seen.config.preload_library, "/lib/preload.so");
    seen.preload_socket = "/run/socket";
    seen.config.preload = true;
    assert_int_equal(feed_request(1, (struct task_request){.gpus = 1, .policy = &policy_rr}), 0);
    expect_story(
        "SUBMIT; PLACE; create tasks/1/1; GPU 0; preload /lib/preload.so; spawn; STARTED; ");
}

static void test_it_is_not_preloaded_where_the_setting_says_no(void **state)
{
    seen.preload_socket = "/run/socket";
    run_task();
}

static void test_an_exclusive_task_is_preloaded(void **state)
{
    strcpy(seen.config.preload_library, "/lib/preload.so");
    seen.preload_socket = "/run/socket";
    seen.config.preload = true;
    assert_int_equal(feed_request(1, (struct task_request){.gpus = 1, .exclusive = true}), 0);
    expect_story(
        "SUBMIT; PLACE; create tasks/1/1; GPU 0; preload /lib/preload.so; spawn; STARTED; ");
}

static void test_a_start_without_disk_space_is_deferred(void **state)
{
    seen.create_fault = -ENOSPC;
    assert_int_equal(feed(EVENT_SUBMIT, 1), 0);
    expect_story("SUBMIT; PLACE; ");
    assert_string_equal(attempts_why_deferred(seen.attempts, 1), "the disk is full");
    seen.create_fault = -ENOSPC;
    retry();
    expect_story("");
    retry();
    expect_story("create tasks/1/1; GPU 0; spawn; STARTED; ");
    assert_null(attempts_why_deferred(seen.attempts, 1));
    retry(); /* it runs: nothing to do */
    expect_story("");
}

static int listen_somewhere(void)
{
    struct tcp_address address;
    struct fault fault;
    assert_int_equal(tcp_address_parse("127.0.0.1:0", &address), 0);
    int fd = tcp_address_listen(&address, &fault);
    assert_true(fd >= 0);
    seen.port = tcp_address_port(&address);
    return fd;
}

/* It is run again, but has no GPU until then. */
static void test_a_service_whose_port_is_taken_leaves_its_gpu(void **state)
{
    char why[64];
    int fd = listen_somewhere();
    const struct task_request service = {.gpus = 1, .service = {.is_service = true}};
    assert_int_equal(feed_request(1, service), 0);
    expect_story("SUBMIT; PLACE; poll; EXITED launch; RESTART; ");
    close(fd);
    snprintf(why, sizeof why, "port %d is taken by another program", seen.port);
    assert_non_null(strstr(jobs_find(pretend.jobs, 1)->evidence, why));
    assert_int_equal(core_view(pretend.core)->gpus[0].n_residents, 0);
    assert_null(attempts_why_deferred(seen.attempts, 1));
}

static void test_a_fault_of_the_task_ends_the_attempt(void **state)
{
    seen.create_fault = -EACCES;
    assert_int_equal(feed(EVENT_SUBMIT, 1), 0);
    expect_story("SUBMIT; PLACE; poll; EXITED launch; END; "); /* it is fed within the call */
}

static void test_a_cancelled_start_is_unstarted(void **state)
{
    seen.create_fault = -ENOSPC;
    assert_int_equal(feed(EVENT_SUBMIT, 1), 0);
    assert_int_equal(feed(EVENT_CANCEL, 1), 0);
    expect_story("SUBMIT; PLACE; CANCEL; ");
    retry();
    expect_story("UNSTARTED; END; ");
    assert_null(attempts_why_deferred(seen.attempts, 1));
}

static void test_a_running_task_is_killed(void **state)
{
    run_task();
    assert_int_equal(feed(EVENT_CANCEL, 1), 0);
    expect_story("CANCEL; end it; ");
}

static void test_limits_that_cannot_be_written_are_said(void **state)
{
    struct fault fault = {0};
    assert_int_equal(attempts_apply_limits(seen.attempts, 1, &fault), 0); /* it has no attempt */
    run_task();
    assert_int_equal(attempts_apply_limits(seen.attempts, 1, &fault), -ENOENT);
    assert_non_null(strstr(fault.text, "task 1: its new limits are not all in force"));
}

static void test_a_deferred_start_takes_new_limits_later(void **state)
{
    struct fault fault = {0};
    seen.create_fault = -ENOSPC;
    assert_int_equal(feed(EVENT_SUBMIT, 1), 0);
    assert_int_equal(attempts_apply_limits(seen.attempts, 1, &fault), 0);
    seen.spawn_fault = -EAGAIN;
    retry();
    expect_story("SUBMIT; PLACE; create tasks/1/1; GPU 0; ");
    assert_int_equal(attempts_apply_limits(seen.attempts, 1, &fault), 0);
    retry(); /* with another spec than before */
    expect_story("clean; create tasks/1/1; GPU 0; spawn; STARTED; ");
}

static void submit_mps_task(int mps)
{
    seen.mps = mps;
    assert_int_equal(feed_request(1, (struct task_request){.gpus = 1, .sharing = SHARING_MPS}), 0);
}

static void test_the_reason_of_a_deferred_start_is_the_current_one(void **state)
{
    seen.create_fault = -ENOSPC;
    submit_mps_task(0);
    assert_string_equal(attempts_why_deferred(seen.attempts, 1), "the disk is full");
    seen.spawn_fault = -EAGAIN;
    retry();
    assert_string_equal(attempts_why_deferred(seen.attempts, 1), "no process is free");
    seen.mps = MPS_WAIT;
    retry();
    assert_null(attempts_why_deferred(seen.attempts, 1));
}

static void test_a_task_waits_for_mps(void **state)
{
    submit_mps_task(MPS_WAIT);
    expect_story("SUBMIT; PLACE; prepare MPS; ");
    seen.mps = 0;
    mps_ready(77); /* another user's */
    expect_story("");
    mps_ready(0);
    expect_story("prepare MPS; create tasks/1/1; GPU 0; spawn; STARTED; ");
    end_shim(ATTEMPT_ENDED, FAILURE_NONE);
    expect_story("EXITED none; END; MPS task ended; poll; ");
}

/* No task uses its control daemon, which must not stay. */
static void test_mps_hears_of_a_task_that_is_cancelled_meanwhile(void **state)
{
    submit_mps_task(MPS_WAIT);
    assert_int_equal(feed(EVENT_CANCEL, 1), 0);
    expect_story("SUBMIT; PLACE; prepare MPS; CANCEL; ");
    mps_ready(0);
    expect_story("MPS task ended; UNSTARTED; END; ");
}

static void test_a_task_starts_without_mps_where_there_is_none(void **state)
{
    submit_mps_task(-ENOENT);
    expect_story("SUBMIT; PLACE; prepare MPS; create tasks/1/1; GPU 0; spawn; "
                 "STARTED without MPS; ");
}

static void test_a_crash_waits_for_a_poll(void **state)
{
    run_task();
    end_shim(ATTEMPT_ENDED, FAILURE_PROGRAM);
    expect_story("poll closely; ");
    polled(0); /* it had begun before */
    expect_story("");
    polled(1);
    expect_story("poll; EXITED program; END; ");
}

static void test_a_crash_on_a_lost_gpu_is_not_the_tasks(void **state)
{
    run_task();
    end_shim(ATTEMPT_ENDED, FAILURE_SIGNAL);
    seen.gpu_is_lost = true;
    expect_story("poll closely; ");
    polled(1);
    assert_string_equal(json_string_value(json_object_get(pretend.exit_detail, "evidence")),
        "GPU 0: fell off the bus");
    assert_non_null(strstr(pretend.story, "EXITED gpu-gone; REQUEUE; "));
}

static void test_an_exit_that_cannot_be_read_is_read_again(void **state)
{
    run_task();
    end_shim(-EIO, FAILURE_NONE);
    expect_story("");
    seen.probed = ATTEMPT_ENDED;
    retry();
    expect_story("poll; EXITED none; END; ");
}

static void test_a_killed_shim(void **state)
{
    run_task();
    end_shim(ATTEMPT_LOST, FAILURE_NONE);
    retry();
    expect_story("sweep; "); /* its GPU is not free yet */
    end_sweep(3);
    expect_story("EXITED lost; END; poll; ");
}

static void test_what_a_killed_shim_left_is_not_known(void **state)
{
    run_task();
    end_shim(ATTEMPT_LOST, FAILURE_NONE);
    end_sweep(-ETIMEDOUT);
    expect_story("sweep; EXITED lost; END; poll; ");
}

static void test_a_sweep_that_cannot_begin_is_tried_again(void **state)
{
    run_task();
    seen.helper_fault = -EAGAIN;
    end_shim(ATTEMPT_LOST, FAILURE_NONE);
    seen.helper_fault = 0;
    retry();
    expect_story("sweep; sweep; ");
    end_sweep(0);
    expect_story("EXITED lost; END; poll; ");
}

/* ---- after a restart: a placed task without a watch ---- */

static void restart(enum event_kind last)
{
    pretend.start = NULL;
    assert_int_equal(feed(EVENT_SUBMIT, 1), 0);
    if (last == EVENT_STARTED)
        assert_int_equal(feed(EVENT_STARTED, 1), 0);
    pretend.start = start;
    pretend.story[0] = '\0';
}

static void test_a_running_attempt_is_found_again(void **state)
{
    restart(EVENT_STARTED);
    seen.probed = ATTEMPT_RUNNING;
    attempts_adopt(seen.attempts);
    expect_story("STARTED; ");
    end_shim(ATTEMPT_ENDED, FAILURE_NONE);
    expect_story("EXITED none; END; poll; ");
}

static void test_an_attempt_that_ended_meanwhile(void **state)
{
    restart(EVENT_STARTED);
    seen.probed = ATTEMPT_ENDED;
    attempts_adopt(seen.attempts);
    expect_story("EXITED none; END; poll; ");
}

static void test_a_deferred_start_is_started_after_a_restart(void **state)
{
    restart(EVENT_PLACE);
    attempts_adopt(seen.attempts);
    expect_story("create tasks/1/1; GPU 0; spawn; STARTED; ");
}

static void test_a_shim_that_started_nothing(void **state)
{
    char folder[] = "/tmp/colloc-attempts-XXXXXX", path[80];
    restart(EVENT_PLACE);
    assert_non_null(mkdtemp(folder));
    strcpy(seen.config.state_dir, folder);
    for (const char *const *at = (const char *const[]){"tasks", "tasks/1", "tasks/1/1", NULL}; *at;
         at++) {
        snprintf(path, sizeof path, "%s/%s", folder, *at);
        assert_int_equal(mkdir(path, 0700), 0);
    }
    seen.probed = ATTEMPT_NEVER_STARTED;
    attempts_adopt(seen.attempts); /* the core places it again at once */
    expect_story("UNSTARTED; PLACE; create tasks/1/2; GPU 0; spawn; STARTED; ");
    snprintf(path, sizeof path, "rm -r '%s'", folder);
    assert_int_equal(system(path), 0);
}

static void test_a_lost_folder_of_a_started_task(void **state)
{
    restart(EVENT_STARTED);
    seen.probed = ATTEMPT_NO_FOLDER;
    attempts_adopt(seen.attempts);
    end_sweep(0);
    expect_story("sweep; EXITED lost; END; poll; ");
}

/* The claim of a started task is gone: it has run nothing if it is known to have left nothing. */
static void lose_claim(void)
{
    restart(EVENT_STARTED);
    seen.probed = ATTEMPT_NEVER_STARTED;
    attempts_adopt(seen.attempts);
    expect_story("sweep; ");
    pretend.start = NULL;
}

static void test_a_lost_claim_without_processes(void **state)
{
    lose_claim();
    end_sweep(0);
    expect_story("UNSTARTED; PLACE; ");
}

static void test_a_lost_claim_with_processes(void **state)
{
    lose_claim();
    end_sweep(1);
    expect_story("EXITED lost; END; poll; ");
}

static void test_a_lost_claim_whose_processes_are_not_known(void **state)
{
    lose_claim();
    end_sweep(-ETIMEDOUT);
    expect_story("EXITED lost; END; poll; ");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(an_attempt_from_start_to_exit),
        cmocka_unit_test_setup_teardown(test_many_ends_are_read_in_turns, begin_with_two, end),
        TEST(it_is_preloaded),
        TEST(it_is_not_preloaded_where_the_setting_says_no),
        TEST(an_exclusive_task_is_preloaded),
        TEST(a_start_without_disk_space_is_deferred),
        TEST(a_service_whose_port_is_taken_leaves_its_gpu),
        TEST(a_fault_of_the_task_ends_the_attempt),
        TEST(a_cancelled_start_is_unstarted),
        TEST(a_running_task_is_killed),
        TEST(limits_that_cannot_be_written_are_said),
        TEST(a_deferred_start_takes_new_limits_later),
        TEST(the_reason_of_a_deferred_start_is_the_current_one),
        TEST(a_task_waits_for_mps),
        TEST(mps_hears_of_a_task_that_is_cancelled_meanwhile),
        TEST(a_task_starts_without_mps_where_there_is_none),
        TEST(a_crash_waits_for_a_poll),
        TEST(a_crash_on_a_lost_gpu_is_not_the_tasks),
        TEST(an_exit_that_cannot_be_read_is_read_again),
        TEST(a_killed_shim),
        TEST(what_a_killed_shim_left_is_not_known),
        TEST(a_sweep_that_cannot_begin_is_tried_again),
        TEST(a_lost_claim_without_processes),
        TEST(a_lost_claim_with_processes),
        TEST(a_lost_claim_whose_processes_are_not_known),
        TEST(a_running_attempt_is_found_again),
        TEST(an_attempt_that_ended_meanwhile),
        TEST(a_deferred_start_is_started_after_a_restart),
        TEST(a_shim_that_started_nothing),
        TEST(a_lost_folder_of_a_started_task),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
