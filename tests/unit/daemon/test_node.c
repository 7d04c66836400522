/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part node with a pretend part mps, a pretend link to the controller and pretend helper
 * processes, on a machine without GPUs. A child process stands for slurmstepd: it sends requests
 * and passes the answers on.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "../gpu/fake_nvml.h"
#include "base/units.h"
#include "daemon/node/node.h"
#include "daemon/node/node_gres.h"
#include "nodelink/node_uplink.h"
#include "service/user_helper.h"

enum { ADA = 1000, ANSWER_MAX = 128, TURNS_MAX = 10000 };

static struct {
    uv_loop_t loop;
    struct config config;
    struct node *node;
    char folder[32];

    /* the pretend mps */
    int mps_answer; /* of mps_prepare */
    int n_prepared, n_ended;
    uid_t ended_uid;

    /* the pretend link and helper process */
    struct node_uplink_options link;
    struct node_crash reported;  /* in the last report; job 0: none */
    size_t n_gpus;               /* there */
    bool processes_known;        /* of the first of them */
    uint32_t external_at_least;  /* there */
    struct user_helper *verdict; /* finds out why a job failed; NULL: not begun */
} seen;

static struct fake_nvml *seen_nvml;

/* ---- what the part calls ---- */

int mps_prepare(struct mps *mps, uid_t uid, gid_t gid, const char *instance,
    const char **ret_pipe_dir, struct fault *fault)
{
    assert_int_equal(uid, ADA);
    seen.n_prepared++;
    *ret_pipe_dir = "/run/mps";
    if (seen.mps_answer < 0)
        return fault_set(fault, EAGAIN, "no control daemon");
    return seen.mps_answer;
}

void mps_task_ended(struct mps *mps, uid_t uid, const char *instance)
{
    seen.n_ended++;
    seen.ended_uid = uid;
}

int node_uplink_create(
    const struct node_uplink_options *options, struct fault *fault, struct node_uplink **ret_uplink)
{
    seen.link = *options;
    *ret_uplink = NULL;
    return 0;
}

int node_uplink_send(struct node_uplink *uplink, const struct node_report *report)
{
    seen.reported = report->n_crashes ? report->crashes[0] : (struct node_crash){0};
    seen.n_gpus = report->n_gpus;
    seen.processes_known = report->n_gpus > 0 && report->gpus[0].processes_known;
    seen.external_at_least = report->n_gpus > 0 ? report->gpus[0].external_at_least : 0;
    return 0;
}

void node_uplink_close(struct node_uplink *uplink)
{
}

void node_uplink_destroy(struct node_uplink *uplink)
{
}

bool node_uplink_is_accepted(const struct node_uplink *uplink)
{
    return true;
}

/* A helper process that never begins: the test ends it by its on_done. */
int user_helper_begin(struct user_helper *helper, uv_loop_t *loop,
    const struct user_helper_order *order, struct fault *fault)
{
    helper->handles = (struct user_helper_handles *)&seen;
    if (strstr(order->what, "failed job"))
        seen.verdict = helper;
    return 0;
}

int user_helper_become(const struct user_helper_order *order)
{
    return 0;
}

void user_helper_end(struct user_helper *helper, const struct user_helper_report *report)
{
    abort();
}

void user_helper_leave(struct user_helper *helper)
{
    helper->handles = NULL;
}

/* ---- pretend slurmstepd ---- */

struct stepd {
    pid_t pid;
    int orders, answers; /* pipes: a request to send; the answer */
};

static int connect_agent(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%s", seen.config.node_socket);
    return fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) == 0 ? fd : -1;
}

/* Each order is one connection; the answer is passed on with its NUL. */
static void serve_orders(int orders, int answers)
{
    char text[ANSWER_MAX];
    ssize_t n;
    while ((n = read(orders, text, sizeof text)) > 0) {
        int fd = connect_agent();
        if (fd < 0 || send(fd, text, (size_t)n, MSG_NOSIGNAL) != n)
            _exit(1);
        n = recv(fd, text, sizeof text - 1, 0);
        text[n > 0 ? n : 0] = '\0';
        if (write(answers, text, (size_t)(n > 0 ? n : 0) + 1) < 0)
            _exit(1);
        close(fd);
    }
    _exit(0);
}

static struct stepd start_stepd(void)
{
    int orders[2], answers[2];
    assert_int_equal(pipe2(orders, O_CLOEXEC), 0);
    assert_int_equal(pipe2(answers, O_CLOEXEC | O_NONBLOCK), 0);
    pid_t pid = fork();
    if (pid == 0) {
        close(orders[1]);
        serve_orders(orders[0], answers[1]);
    }
    close(orders[0]);
    close(answers[1]);
    return (struct stepd){pid, orders[1], answers[0]};
}

static void end_stepd(struct stepd *stepd)
{
    kill(stepd->pid, SIGKILL);
    assert_int_equal(waitpid(stepd->pid, NULL, 0), stepd->pid);
    close(stepd->orders);
    close(stepd->answers);
}

static void order(struct stepd *stepd, const char *request)
{
    assert_int_equal(write(stepd->orders, request, strlen(request)), strlen(request));
}

/* Runs the loop until the answer is there. */
static const char *answer_of(struct stepd *stepd)
{
    static char text[ANSWER_MAX];
    for (int i = 0; i < TURNS_MAX; i++) {
        if (read(stepd->answers, text, sizeof text) > 0)
            return text;
        uv_run(&seen.loop, UV_RUN_ONCE);
    }
    fail_msg("no answer");
    return NULL;
}

#define run_until(condition)                                                                       \
    do {                                                                                           \
        for (int turn = 0; !(condition) && turn < TURNS_MAX; turn++)                               \
            uv_run(&seen.loop, UV_RUN_ONCE);                                                       \
        assert_true(condition);                                                                    \
    } while (0)

/* ---- */

static int begin_with_library(const char *nvml_library)
{
    struct fault fault = {0};
    memset(&seen, 0, sizeof seen);
    strcpy(seen.folder, "/tmp/colloc-node-XXXXXX");
    assert_non_null(mkdtemp(seen.folder));
    snprintf(seen.config.state_dir, sizeof seen.config.state_dir, "%s", seen.folder);
    snprintf(seen.config.node_socket, sizeof seen.config.node_socket, "%s/node.sock", seen.folder);
    snprintf(seen.config.controller, sizeof seen.config.controller, "login1:7490");
    snprintf(seen.config.controller_user, sizeof seen.config.controller_user, "root");
    snprintf(seen.config.nvml_library, sizeof seen.config.nvml_library, "%s", nvml_library);
    snprintf(seen.config.dcgmi, sizeof seen.config.dcgmi, "none");
    seen.config.sample_period_us = 10 * 1000; /* so that the loop never blocks for long */
    uv_loop_init(&seen.loop);
    const struct node_options options = {.loop = &seen.loop, .config = &seen.config};
    seen.node = node_create(&options);
    assert_int_equal(node_open(seen.node, &fault), 0);
    return 0;
}

static int begin_node(void **state)
{
    return begin_with_library("no-library");
}

/* With one GPU, and a process on it. */
static int begin_gpu_node(void **state)
{
    const char *path = getenv("FAKE_NVML");
    void *library = dlopen(path, RTLD_NOW);
    assert_non_null(library);
    seen_nvml = dlsym(library, "fake_nvml");
    *seen_nvml = (struct fake_nvml){.cards = 1,
        .gpu = {{.uuid = "GPU-0",
            .name = "NVIDIA A100-SXM4-40GB",
            .mem_total = 40 * (uint64_t)GIB,
            .compute = {.count = 1, .item = {{.pid = (uint32_t)getpid()}}}}}};
    return begin_with_library(path);
}

static int end_node(void **state)
{
    node_close(seen.node);
    uv_run(&seen.loop, UV_RUN_DEFAULT);
    node_destroy(seen.node);
    assert_int_equal(uv_loop_close(&seen.loop), 0);
    char command[sizeof seen.folder + 16];
    snprintf(command, sizeof command, "rm -r %s", seen.folder); /* with records of steps */
    return system(command);
}

static void a_step_waits_for_its_control_daemon(void **state)
{
    struct stepd stepd = start_stepd();
    seen.mps_answer = MPS_WAIT;
    order(&stepd, "start job=12 step=0 uid=1000 gid=1000 gpus=0 sharing=mps");
    run_until(seen.n_prepared == 1);
    assert_int_equal(node_count_mps_steps(seen.node, ADA), 1);
    node_mps_ready(seen.node, ADA + 1); /* of another user */
    assert_int_equal(seen.n_prepared, 1);
    seen.mps_answer = 0;
    node_mps_ready(seen.node, ADA);
    assert_string_equal(answer_of(&stepd), "CUDA_MPS_PIPE_DIRECTORY=/run/mps\n");
    assert_int_equal(seen.n_ended, 0);
    end_stepd(&stepd);
    run_until(seen.n_ended == 1);
    assert_int_equal(seen.ended_uid, ADA);
    assert_int_equal(node_count_mps_steps(seen.node, ADA), 0);
}

static void a_step_starts_without_mps_when_there_is_none(void **state)
{
    struct stepd stepd = start_stepd();
    seen.mps_answer = -1;
    order(&stepd, "start job=12 step=0 uid=1000 gid=1000 gpus=0 sharing=mps");
    assert_string_equal(answer_of(&stepd), "");
    assert_int_equal(node_count_mps_steps(seen.node, ADA), 0);
    end_stepd(&stepd);
}

static void the_controllers_pin_decides_how_a_step_shares(void **state)
{
    struct stepd pinned = start_stepd(), other = start_stepd();
    const struct node_answer answer = {.pins = {{.job = 12, .is_mps = true}}, .n_pins = 1};
    seen.link.on_answer(seen.link.context, &answer);
    order(&other, "start job=13 step=0 uid=1000 gid=1000 gpus=0");
    assert_string_equal(answer_of(&other), "");
    order(&pinned, "start job=12 step=0 uid=1000 gid=1000 gpus=1");
    assert_string_equal(answer_of(&pinned), "CUDA_MPS_PIPE_DIRECTORY=/run/mps\n");
    end_stepd(&pinned);
    end_stepd(&other);
}

/* Slurm numbers a task of an array after its pin: the array and the index name it. */
static void a_pin_of_an_array_is_for_one_task(void **state)
{
    struct stepd pinned = start_stepd(), other = start_stepd();
    const struct node_answer answer = {
        .pins = {{.job = 12, .is_mps = true, .is_of_array = true, .array_task = 3}}, .n_pins = 1};
    seen.link.on_answer(seen.link.context, &answer);
    order(&other, "start job=12 step=0 uid=1000 gid=1000 gpus=0 array=12 task=4");
    assert_string_equal(answer_of(&other), "");
    order(&pinned, "start job=15 step=0 uid=1000 gid=1000 gpus=1 array=12 task=3");
    assert_string_equal(answer_of(&pinned), "CUDA_MPS_PIPE_DIRECTORY=/run/mps\n");
    end_stepd(&pinned);
    end_stepd(&other);
}

/* Of a job over several nodes, this one sees its own GPUs only. */
static void a_crash_of_a_job_over_nodes_is_judged(void **state)
{
    struct stepd stepd = start_stepd();
    struct fault evidence = {.text = "CUDA out of memory"};
    const struct node_answer answer = {
        .pins = {{.job = 12, .may_share_elsewhere = true}}, .n_pins = 1};
    seen.link.on_answer(seen.link.context, &answer);
    order(&stepd, "start job=12 step=-5 uid=1000 gid=1000 gpus=0 sharing=streams");
    assert_string_equal(answer_of(&stepd), "");
    order(&stepd, "end job=12 step=-5 uid=1000 gid=1000 gpus=0 status=256");
    run_until(seen.verdict);
    seen.verdict->on_done(seen.verdict, 1, &evidence);
    assert_string_equal(answer_of(&stepd), "requeued");
    end_stepd(&stepd);
}

static void no_answer_to_what_is_no_request(void **state)
{
    struct stepd stepd = start_stepd();
    order(&stepd, "stop everything");
    assert_string_equal(answer_of(&stepd), "");
    assert_int_equal(seen.n_prepared, 0);
    end_stepd(&stepd);
}

/* Only a batch script that was not alone on its GPUs is judged. */
static void a_crash_beside_others_is_judged_and_reported(void **state)
{
    struct stepd first = start_stepd(), second = start_stepd();
    struct fault evidence = {.text = "CUDA out of memory"};
    order(&first, "start job=12 step=-5 uid=1000 gid=1000 gpus=0 sharing=streams");
    assert_string_equal(answer_of(&first), "");
    order(&first, "end job=12 step=-5 uid=1000 gid=1000 gpus=0 status=256");
    assert_string_equal(answer_of(&first), "final");
    assert_null(seen.verdict);

    order(&second, "start job=13 step=-5 uid=1000 gid=1000 gpus=0 sharing=streams");
    assert_string_equal(answer_of(&second), "");
    order(&first, "end job=12 step=-5 uid=1000 gid=1000 gpus=0 status=256");
    run_until(seen.verdict);
    seen.verdict->on_done(seen.verdict, 1, &evidence);
    assert_string_equal(answer_of(&first), "requeued");
    run_until(seen.reported.job == 12);
    assert_string_equal(seen.reported.evidence, "CUDA out of memory");
    end_stepd(&first);
    end_stepd(&second);
}

/* A process whose job cannot be read may be any job's. */
static void processes_are_not_known_where_the_job_of_one_is_not(void **state)
{
    run_until(seen.n_gpus == 1 && seen.processes_known);
    seen_nvml->gpu[0].compute.item[0].pid = INT32_MAX; /* there is none */
    run_until(!seen.processes_known);
    assert_int_equal(seen.n_gpus, 1);
    assert_int_equal(seen.external_at_least, 0);
    seen_nvml->gpu[0].compute.item[1].pid = (uint32_t)getpid(); /* of no job */
    seen_nvml->gpu[0].compute.count = 2;
    run_until(seen.external_at_least == 1);
    assert_false(seen.processes_known);
}

/* As of `env -i sleep 1000`: nor is it another job's. */
static void a_process_without_an_environment_is_external(void **state)
{
    int exec_done[2];
    char nothing;
    assert_int_equal(pipe2(exec_done, O_CLOEXEC), 0);
    pid_t child = fork();
    if (child == 0) {
        char *const argv[] = {(char *)(uintptr_t) "sleep", (char *)(uintptr_t) "1000", NULL};
        execve("/bin/sleep", argv, (char *[]){NULL});
        _exit(1);
    }
    close(exec_done[1]);
    assert_int_equal(read(exec_done[0], &nothing, 1), 0);
    close(exec_done[0]);
    seen_nvml->gpu[0].compute.item[0].pid = INT32_MAX;
    run_until(seen.n_gpus == 1 && !seen.processes_known);
    seen_nvml->gpu[0].compute.item[0].pid = (uint32_t)child;
    run_until(seen.processes_known && seen.external_at_least == 1);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

static void test_places_among_the_gpus_of_a_node(void **state)
{
    assert_true(node_gres_numbers(0x5, 0) == 0x5); /* gres.conf is not known */
    assert_true(node_gres_numbers(0x1, 0xc) == 0x4);
    assert_true(node_gres_numbers(0x3, 0xc) == 0xc);
    assert_true(node_gres_numbers(0x4, 0xc) == 0); /* it has two only */
    assert_true(node_gres_numbers(UINT64_MAX, UINT64_MAX) == UINT64_MAX);
}

int main(void)
{
#define node_test(name) cmocka_unit_test_setup_teardown(name, begin_node, end_node)
    const struct CMUnitTest tests[] = {
        node_test(a_step_waits_for_its_control_daemon),
        node_test(a_step_starts_without_mps_when_there_is_none),
        node_test(the_controllers_pin_decides_how_a_step_shares),
        node_test(a_pin_of_an_array_is_for_one_task),
        node_test(no_answer_to_what_is_no_request),
        node_test(a_crash_beside_others_is_judged_and_reported),
        node_test(a_crash_of_a_job_over_nodes_is_judged),
        cmocka_unit_test(test_places_among_the_gpus_of_a_node),
        cmocka_unit_test_setup_teardown(
            processes_are_not_known_where_the_job_of_one_is_not, begin_gpu_node, end_node),
        cmocka_unit_test_setup_teardown(
            a_process_without_an_environment_is_external, begin_gpu_node, end_node),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
