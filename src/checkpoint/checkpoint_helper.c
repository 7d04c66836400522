/* SPDX-License-Identifier: Apache-2.0 */
/*
 * colloc-checkpoint: calls the CUDA driver for the daemon, one call at a time (helper_line.h). A
 * call may take minutes, or never return: then the daemon kills this process and starts another.
 * An operation that the driver has begun in a suspended process continues meanwhile.
 *
 *     colloc-checkpoint           serves requests until its input ends
 *     colloc-checkpoint --probe   holds GPU memory, to be suspended itself (probe_process.h)
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "checkpoint/cuda_process.h"
#include "checkpoint/gpu_permutation.h"
#include "checkpoint/lent_memory.h"
#include "checkpoint/probe_process.h"
#include "checkpoint/reservations.h"

struct helper {
    struct cuda_driver driver;
    bool is_open;
    struct reservations reservations;
};

/* ---- what each call does; results are CUDA's, or negative ---- */

static int list_gpus(const struct helper *helper, struct helper_reply *reply)
{
    const struct cuda_driver *driver = &helper->driver;
    size_t used = (size_t)snprintf(reply->text, sizeof reply->text, "%d ", driver->version);
    for (int i = 0; i < driver->n_gpus; i++)
        used += (size_t)snprintf(
            reply->text + used, sizeof reply->text - used, "%s%s", i ? "," : "", driver->gpu[i]);
    return 0;
}

static int inspect_process(const struct helper_request *request, struct helper_reply *reply)
{
    struct cuda_process process;
    int r = cuda_process_read(request->pid, &process);
    if (r == 0)
        cuda_process_write(&process, reply->text, sizeof reply->text);
    return r;
}

static enum process_state state_of(int number)
{
    static const enum process_state states[] = {
        PROCESS_RUNNING, PROCESS_LOCKED, PROCESS_SUSPENDED, PROCESS_FAILED};
    return number >= 0 && number < 4 ? states[number] : PROCESS_UNKNOWN;
}

static int ask_state(
    const struct helper *helper, const struct helper_request *request, struct helper_reply *reply)
{
    int number = -1;
    int r = helper->driver.process_state(request->pid, &number);
    reply->state = r == 0 ? state_of(number) : PROCESS_UNKNOWN;
    return r;
}

static int lock_process(const struct helper *helper, const struct helper_request *request)
{
    struct cuda_lock_args args = {.timeout_ms = (unsigned)request->timeout_ms};
    return helper->driver.process_lock(request->pid, &args);
}

static int suspend_process(const struct helper *helper, const struct helper_request *request)
{
    struct cuda_plain_args args = {{0}};
    return helper->driver.process_checkpoint(request->pid, &args);
}

static int unlock_process(const struct helper *helper, const struct helper_request *request)
{
    struct cuda_plain_args args = {{0}};
    return helper->driver.process_unlock(request->pid, &args);
}

static struct process_id process_of(const struct helper_request *request)
{
    return (struct process_id){request->pid, request->born};
}

static int reserve_memory(struct helper *helper, const struct helper_request *request)
{
    int device = cuda_driver_find(&helper->driver, request->gpu);
    if (device < 0)
        return -EINVAL;
    return reservations_add(
        &helper->reservations, &helper->driver, process_of(request), device, request->bytes);
}

static int lend_memory(const struct helper *helper, const struct helper_request *request)
{
    int device = cuda_driver_find(&helper->driver, request->gpu);
    return device < 0 ? -EINVAL : lent_memory_send(&helper->driver, device, request->bytes);
}

static int read_moves(
    const struct cuda_driver *driver, const struct helper_request *request, int *ret_to)
{
    for (int i = 0; i < driver->n_gpus; i++)
        ret_to[i] = -1;
    for (size_t i = 0; i < request->n_moves; i++) {
        int from = cuda_driver_find(driver, request->moves[i].from);
        int to = cuda_driver_find(driver, request->moves[i].to);
        if (from < 0 || to < 0)
            return -EINVAL;
        ret_to[from] = to;
    }
    return gpu_permutation_complete(ret_to, (size_t)driver->n_gpus);
}

static int resume_process(struct helper *helper, const struct helper_request *request)
{
    const struct cuda_driver *driver = &helper->driver;
    struct cuda_gpu_pair pairs[HELPER_MOVES_MAX];
    struct cuda_restore_args args = {0};
    int to[HELPER_MOVES_MAX];
    if (request->n_moves) {
        int r = read_moves(driver, request, to);
        if (r < 0)
            return r;
        for (int i = 0; i < driver->n_gpus; i++)
            pairs[i] = (struct cuda_gpu_pair){driver->uuid[i], driver->uuid[to[i]]};
        args.pairs = pairs;
        args.n_pairs = (unsigned)driver->n_gpus;
    }
    reservations_drop(&helper->reservations, driver, process_of(request));
    int r = driver->process_restore(request->pid, &args);
    reservations_end_contexts(&helper->reservations, driver);
    return r;
}

static int release_memory(struct helper *helper, const struct helper_request *request)
{
    reservations_drop(&helper->reservations, &helper->driver, process_of(request));
    reservations_end_contexts(&helper->reservations, &helper->driver);
    return 0;
}

static int call_driver(
    struct helper *helper, const struct helper_request *request, struct helper_reply *reply)
{
    switch (request->call) {
    case HELPER_GPUS:
        return list_gpus(helper, reply);
    case HELPER_STATE:
        return ask_state(helper, request, reply);
    case HELPER_LOCK:
        return lock_process(helper, request);
    case HELPER_SUSPEND:
        return suspend_process(helper, request);
    case HELPER_RESERVE:
        return reserve_memory(helper, request);
    case HELPER_RESUME:
        return resume_process(helper, request);
    case HELPER_LEND:
        return lend_memory(helper, request);
    case HELPER_RELEASE:
        return release_memory(helper, request);
    default:
        return unlock_process(helper, request);
    }
}

/* ---- requests ---- */

static int open_driver(struct helper *helper, struct fault *fault)
{
    int r = helper->is_open ? 0 : cuda_driver_open(&helper->driver, fault);
    helper->is_open = r == 0;
    return r;
}

/* Has the process of the driver's memory ended? Also one that runs another program now, which the
 * driver does not know. */
static bool has_ended(const struct helper_request *request, int result)
{
    bool is_unknown = request->call == HELPER_STATE && result == CUDA_ERROR_OPERATING_SYSTEM;
    return !cuda_process_is(request->pid, request->born) ||
           (is_unknown && !cuda_process_may_have_driver(request->pid));
}

/* A process that ends during the call has ended, whatever the driver returned. */
static int call_for_process(
    struct helper *helper, const struct helper_request *request, struct helper_reply *reply)
{
    bool is_release = request->call == HELPER_RELEASE;
    if (!is_release && !cuda_process_is(request->pid, request->born))
        return -ESRCH;
    if (!cuda_driver_can_suspend(&helper->driver))
        return -ENOSYS;
    int r = call_driver(helper, request, reply);
    return r != 0 && !is_release && has_ended(request, r) ? -ESRCH : r;
}

static int open_and_call(struct helper *helper, const struct helper_request *request,
    struct helper_reply *reply, struct fault *fault)
{
    int r = open_driver(helper, fault);
    if (r < 0)
        return r;
    return request->call == HELPER_GPUS ? call_driver(helper, request, reply)
                                        : call_for_process(helper, request, reply);
}

static void serve_line(struct helper *helper, struct span line, struct helper_reply *reply)
{
    struct helper_request request;
    struct fault fault = {0};
    char name[64];
    *reply = (struct helper_reply){0};
    int64_t before_us = clock_monotonic_us();
    int r = helper_request_read(line, &request);
    if (r == 0 && request.call == HELPER_INSPECT)
        r = inspect_process(&request, reply);
    else if (r == 0)
        r = open_and_call(helper, &request, reply, &fault);
    reply->result = r;
    reply->took_us = clock_monotonic_us() - before_us;
    if (r > 0)
        snprintf(reply->text, sizeof reply->text, "%s",
            cuda_driver_error(&helper->driver, r, name, sizeof name));
    else if (r < 0)
        snprintf(reply->text, sizeof reply->text, "%s", *fault.text ? fault.text : strerror(-r));
}

static int serve_input(void)
{
    static struct helper helper;
    static struct helper_reply reply;
    char line[HELPER_LINE_MAX];
    while (fgets(line, sizeof line, stdin)) {
        size_t size = strlen(line);
        if (!size || line[size - 1] != '\n')
            return 2; /* cut off, or longer than any request */
        serve_line(&helper, (struct span){line, size - 1}, &reply);
        size = helper_reply_write(&reply, line, sizeof line);
        if (!size || file_write_fd(STDOUT_FILENO, line, size) < 0)
            return 2;
    }
    return 0;
}

int main(int argc, char **argv)
{
    bool is_probe = argc == 2 && strcmp(argv[1], "--probe") == 0;
    if (argc > 1 && !is_probe) {
        fprintf(stderr, "usage: colloc-checkpoint [--probe]\n"
                        "Calls the CUDA driver for collocd; people use `colloc suspend`.\n");
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* also out of a call that does not return */
    return is_probe ? probe_process_run() : serve_input();
}
