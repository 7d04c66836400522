/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Suspension, tried: colloc-checkpoint holds a MiB of GPU memory in one process (--probe), and a
 * second one suspends it, resumes it or moves it to another GPU. Then the first reads its memory.
 *
 *     helper      probe
 *                 takes memory, writes a pattern, prints "ready"
 *     LOCK        stops at the next CUDA call
 *     SUSPEND     has no GPU memory any more
 *     RESUME      has it again, perhaps on another GPU
 *     UNLOCK      goes on
 *                 reads its memory, prints "same" or "differs"
 *
 * A driver of the right version may still fail here (containers, hypervisors, profilers), so what
 * is reported is what was tried. Nothing of the user's is touched.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/units.h"
#include "checkpoint/cuda_abi.h"
#include "checkpoint/cuda_process.h"
#include "checkpoint/helper_line.h"
#include "checkpoint/kernel_module.h"
#include "doctor/doctor.h"
#include "doctor/line_child.h"

/* cuInit takes seconds on a machine with many GPUs. Chosen. */
static const int64_t LIMIT_US = 60 * SECOND_US;
/* A probe with its context: 0.5 GiB on an H200. */
static const int64_t PROBE_BYTES = 640 * MIB;

struct trial {
    struct line_child helper, probe;
    uint64_t born;
    int version;
    char gpus[2][GPU_UUID_SIZE];
    size_t n_gpus;
    char why[200]; /* "": nothing has failed */
};

static int fail_trial(struct trial *trial, const char *what, const char *why)
{
    snprintf(trial->why, sizeof trial->why, "%.40s: %.150s", what, why);
    return -1;
}

static int request_helper(
    struct trial *trial, const struct helper_request *request, struct helper_reply *reply)
{
    static char line[HELPER_LINE_MAX];
    const char *name = helper_call_name(request->call);
    helper_request_write(request, line, sizeof line);
    int r = line_child_ask(&trial->helper, line, LIMIT_US, line, sizeof line);
    if (r < 0)
        return fail_trial(
            trial, name, r == -ETIMEDOUT ? "the driver does not answer" : strerror(-r));
    if (helper_reply_read(span_of(line), reply) < 0)
        return fail_trial(trial, name, "colloc-checkpoint answered with nonsense");
    return reply->result ? fail_trial(trial, name, reply->text) : 0;
}

static int call_helper(struct trial *trial, enum helper_call which)
{
    static struct helper_request request;
    static struct helper_reply reply;
    request = (struct helper_request){
        .call = which, .pid = trial->probe.pid, .born = trial->born, .timeout_ms = 10000};
    return request_helper(trial, &request, &reply);
}

/* "13000 GPU-...,GPU-...". */
static int list_gpus(struct trial *trial)
{
    static struct helper_reply reply;
    const struct helper_request request = {.call = HELPER_GPUS};
    if (request_helper(trial, &request, &reply) < 0)
        return -1;
    trial->version = atoi(reply.text);
    const char *at = strchr(reply.text, ' ');
    while (at && trial->n_gpus < 2) {
        snprintf(trial->gpus[trial->n_gpus++], GPU_UUID_SIZE, "%.40s", at + 1);
        at = strchr(at + 1, ',');
    }
    return 0;
}

static int start_probe(struct trial *trial, const char *helper, const char *preload)
{
    char line[256];
    struct cuda_process process;
    int r = line_child_start(&trial->probe, helper, "--probe", preload);
    if (r == 0)
        r = line_child_ask(&trial->probe, NULL, LIMIT_US, line, sizeof line);
    if (r < 0)
        return fail_trial(trial, "the test process", strerror(-r));
    if (strcmp(line, "ready") != 0)
        return fail_trial(trial, "the test process", line);
    if (cuda_process_read(trial->probe.pid, &process) < 0)
        return fail_trial(trial, "the test process", "it has ended");
    trial->born = process.born;
    return 0;
}

static int start_trial(struct trial *trial, const char *helper)
{
    int r = line_child_start(&trial->helper, helper, NULL, NULL);
    if (r < 0)
        return fail_trial(trial, "colloc-checkpoint", strerror(-r));
    if (list_gpus(trial) < 0)
        return -1;
    return start_probe(trial, helper, NULL);
}

static int suspend_probe(struct trial *trial)
{
    return call_helper(trial, HELPER_LOCK) < 0 ? -1 : call_helper(trial, HELPER_SUSPEND);
}

static int resume_on(struct trial *trial, size_t gpu)
{
    static struct helper_request request;
    static struct helper_reply reply;
    request = (struct helper_request){
        .call = HELPER_RESERVE, .pid = trial->probe.pid, .born = trial->born, .bytes = PROBE_BYTES};
    snprintf(request.gpu, sizeof request.gpu, "%s", trial->gpus[gpu]);
    if (request_helper(trial, &request, &reply) < 0)
        return -1;
    request.call = HELPER_RESUME;
    request.n_moves = gpu ? 1 : 0;
    snprintf(request.moves[0].from, GPU_UUID_SIZE, "%s", trial->gpus[0]);
    snprintf(request.moves[0].to, GPU_UUID_SIZE, "%s", trial->gpus[gpu]);
    return request_helper(trial, &request, &reply) < 0 ? -1 : call_helper(trial, HELPER_UNLOCK);
}

static int check_memory(struct trial *trial)
{
    char line[64];
    int r = line_child_ask(&trial->probe, "look\n", LIMIT_US, line, sizeof line);
    if (r < 0)
        return fail_trial(trial, "the test process does not go on", strerror(-r));
    return strcmp(line, "same") == 0 ? 0 : fail_trial(trial, "its memory", line);
}

/* Suspended again first: some drivers hang when a restored process is killed. */
static void end_trial(struct trial *trial)
{
    char why[sizeof trial->why];
    memcpy(why, trial->why, sizeof why);
    if (trial->probe.pid && trial->helper.pid && !*why)
        suspend_probe(trial);
    memcpy(trial->why, why, sizeof why);
    line_child_end(&trial->probe);
    line_child_end(&trial->helper);
}

/* What the driver is too old for, or what else failed. */
static void report_trial(const struct trial *trial, struct doctor_check *check, int version)
{
    if (trial->version && trial->version < version)
        doctor_fail(check,
            version == CUDA_MOVES ? "install NVIDIA driver 580 or newer"
                                  : "install NVIDIA driver 570 or newer",
            "this driver cannot do that");
    else
        doctor_fail(
            check, "run it as root; see `dmesg` for messages of the driver", "%s", trial->why);
}

static bool has_helper(const struct doctor *doctor, struct doctor_check *check)
{
    if (doctor->options.helper && doctor->gpus)
        return true;
    if (doctor->gpus)
        doctor_fail(check, "install colloc completely", "colloc-checkpoint is not installed");
    else
        doctor_fail(check, DOCTOR_INSTALL_DRIVER, "not checked: no GPU can be used");
    return false;
}

static void try_on(struct doctor *doctor, struct doctor_check *check, size_t gpu, int version)
{
    struct trial trial = {.n_gpus = 0};
    signal(SIGPIPE, SIG_IGN);
    int r = start_trial(&trial, doctor->options.helper);
    if (r == 0 && gpu >= trial.n_gpus) {
        doctor_pass(check, "there is one GPU: nothing to move to");
    } else {
        int64_t before_us = clock_monotonic_us();
        if (r == 0)
            r = suspend_probe(&trial);
        if (r == 0)
            r = resume_on(&trial, gpu);
        if (r == 0)
            r = check_memory(&trial);
        if (r == 0)
            doctor_pass(check, "a test process was %s in %.1f s",
                gpu ? "moved to another GPU" : "suspended and resumed",
                (double)(clock_monotonic_us() - before_us) / SECOND_US);
        else
            report_trial(&trial, check, version);
    }
    end_trial(&trial);
}

static bool may_hang_host(void)
{
    char *data;
    size_t size;
    if (file_read(KERNEL_MODULE_VERSION_FILE, MIB, NULL, &data, &size) < 0)
        return false;
    bool may_hang = kernel_module_may_hang((struct span){data, size});
    free(data);
    return may_hang;
}

void check_suspend(struct doctor *doctor, struct doctor_check *check)
{
    if (!has_helper(doctor, check))
        return;
    try_on(doctor, check, 0, CUDA_SUSPENDS);
    if (check->is_ok && may_hang_host())
        doctor_fail(check,
            "use the proprietary kernel module or a driver before 595; the setting "
            "suspend-any-driver: yes takes the risk",
            "tasks are not suspended: with this driver's open kernel module the host can hang when "
            "a resumed process ends");
}

void check_move(struct doctor *doctor, struct doctor_check *check)
{
    if (has_helper(doctor, check))
        try_on(doctor, check, 1, CUDA_MOVES);
}

void check_preload(struct doctor *doctor, struct doctor_check *check)
{
    struct trial trial = {.n_gpus = 0, .helper = {.pidfd = -1, .to = -1, .from = -1}};
    if (!doctor->options.preload) {
        doctor_fail(check, "install colloc completely",
            "libcolloc-preload.so is not installed: a failing allocation cannot wait");
        return;
    }
    if (!has_helper(doctor, check))
        return;
    signal(SIGPIPE, SIG_IGN);
    if (start_probe(&trial, doctor->options.helper, doctor->options.preload) == 0 &&
        check_memory(&trial) == 0)
        doctor_pass(check, "a test process runs with %.180s", doctor->options.preload);
    else
        doctor_fail(check, "submit tasks with --preload=no, and report this", "%s", trial.why);
    end_trial(&trial);
}
