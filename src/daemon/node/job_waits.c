/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads of Slurm's jobs that wait for GPU memory (docs/preload.md): the steps of jobs that the
 * controller has pinned get the preloaded library, which connects to this socket. Each poll of the
 * GPUs answers the threads by job_wait_rule.h:
 *
 *     library  WAIT 14 GiB of GPU 0  ->  BOUND .. poll: too little free .. poll: RETRY
 *
 * The agent may end at any time: a thread that waits then tries once a second by itself, and comes
 * back to the next agent. That one may know neither steps nor pins of before. So it admits a
 * process that names a job which it does not know; what a user can reach by naming another job is
 * an answer to that user's own thread. Which jobs wait is decided by the pids that the kernel
 * reports.
 */
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/units.h"
#include "daemon/node/away_jobs.h"
#include "daemon/node/job_wait_rule.h"
#include "daemon/node/node_state.h"
#include "preload/page_orders.h"
#include "preload/preload_listener.h"

enum { GPU_NUMBERS = 64, LINES_PER_POLL = 20 }; /* chosen: users cause these lines */

/* Chosen: less is no report's worth; and a step of a training calls CUDA more often. */
static const int64_t IDLE_LEAST_US = 2 * SECOND_US;

struct job_waits {
    struct node *node;
    struct preload_listener *listener;
    char socket[sizeof(((struct config *)NULL)->node_socket) + 16];
    int lines; /* logged since the last poll */
    struct {
        uint32_t job; /* the only one there; 0: none, or there is more */
        int64_t since_us;
    } alone[GPU_NUMBERS];
};

#define LOG_FEW(WAITS, ...)                                                                        \
    do {                                                                                           \
        if ((WAITS)->lines++ < LINES_PER_POLL)                                                     \
            log_info(__VA_ARGS__);                                                                 \
    } while (0)

/* ---- processes ---- */

/* Of a process, beside its page. */
struct job_process {
    int64_t called_us; /* when it was last seen to call CUDA */
};

/* Is the job of the process's user, or not known yet? Any process may name a job before it exists,
 * and stay. */
static bool may_be_of_job(const struct node *node, const struct preload_peer *peer)
{
    bool is_known = false, is_users = false;
    for (const struct node_step *step = node->steps; step && !is_users; step = step->next) {
        is_known |= step->job == peer->task;
        is_users = step->job == peer->task && step->uid == peer->uid;
    }
    return is_users || !is_known;
}

struct preload_process *job_waits_next_process(
    const struct node *node, uint32_t job, struct preload_process *process)
{
    do
        process = preload_next_of_task(job_waits_listener(node), job, process);
    while (process && !may_be_of_job(node, &process->peer));
    return process;
}

struct preload_page *job_waits_page(const struct node *node, uint32_t job, struct process_id id)
{
    struct preload_process *process = NULL;
    while ((process = job_waits_next_process(node, job, process)))
        if (process_id_is(preload_peer_id(&process->peer), id))
            return process->page;
    return NULL;
}

size_t job_waits_pages(
    const struct node *node, uint32_t job, struct preload_page **ret_pages, size_t max)
{
    struct preload_process *process = NULL;
    size_t n = 0;
    while (n < max && (process = job_waits_next_process(node, job, process)))
        ret_pages[n++] = process->page;
    return n;
}

/* A process that waits in a call uses its GPU. */
static void note_calls(struct job_waits *waits, struct preload_process *process)
{
    struct job_process *known = process->data;
    struct preload_page *page = process->page;
    bool calls = atomic_exchange(&page->called, 0) || atomic_load(&page->in_flight) ||
                 atomic_load(&page->waiting) || !(atomic_load(&page->flags) & PRELOAD_COUNTS_CALLS);
    if (known && calls)
        known->called_us = clock_monotonic_us();
    if (!away_jobs_hold(
            waits->node, (uint32_t)process->peer.task, preload_peer_id(&process->peer)) &&
        !away_jobs_has(waits->node, (uint32_t)process->peer.task))
        page_heal(page);
}

/* ---- jobs on a GPU ---- */

static const struct node_gpu *gpu_of(const struct node *node, const struct preload_waiter *waiter)
{
    for (size_t i = 0; i < node->n_gpus; i++)
        if (preload_uuid_is(node->gpus[i].uuid, waiter->gpu_uuid))
            return &node->gpus[i];
    return NULL;
}

static bool has_waiter(struct job_waits *waits, struct process_id id)
{
    struct preload_waiter *waiter = NULL;
    while ((waiter = preload_next_waiter(waits->listener, waiter)))
        if (process_id_is(preload_peer_id(&waiter->peer), id))
            return true;
    return false;
}

static bool job_waits_on(struct job_waits *waits, const struct node_gpu *gpu, uint32_t job)
{
    for (size_t i = 0; i < gpu->n_processes; i++)
        if (gpu->processes[i].job == job && has_waiter(waits, node_process_id(&gpu->processes[i])))
            return true;
    return false;
}

/* Nothing but jobs is there, and each has a thread that waits. */
static bool all_wait(struct job_waits *waits, const struct node_gpu *gpu)
{
    bool all = gpu->processes_known && gpu->external_at_least == 0;
    for (size_t i = 0; all && i < gpu->n_processes; i++)
        all = gpu->processes[i].job && job_waits_on(waits, gpu, gpu->processes[i].job);
    return all;
}

static bool is_youngest(const struct node_gpu *gpu, uint64_t job)
{
    for (size_t i = 0; i < gpu->n_processes; i++)
        if (gpu->processes[i].job > job)
            return false;
    return true;
}

/* Returns the only job on the GPU, by its processes and by the steps that may use it; 0: there is
 * none, or anything else. */
static uint32_t only_job(const struct node *node, const struct node_gpu *gpu)
{
    uint32_t only = 0;
    if (!gpu->processes_known || gpu->external_at_least > 0)
        return 0;
    for (size_t i = 0; i < gpu->n_processes; i++) {
        uint32_t job = gpu->processes[i].job;
        if (job == 0 || (only && job != only))
            return 0;
        only = job;
    }
    for (const struct node_step *step = node->steps; step; step = step->next) {
        if (gpu->index >= GPU_NUMBERS || !(step->gpus >> gpu->index & 1) ||
            away_jobs_has(node, step->job))
            continue;
        if (only && step->job != only)
            return 0;
        only = step->job;
    }
    return only;
}

static void note_alone(struct job_waits *waits)
{
    const struct node *node = waits->node;
    for (size_t i = 0; i < node->n_gpus; i++) {
        const struct node_gpu *gpu = &node->gpus[i];
        uint32_t job = only_job(node, gpu);
        if (gpu->index >= GPU_NUMBERS || waits->alone[gpu->index].job == job)
            continue;
        waits->alone[gpu->index].job = job;
        waits->alone[gpu->index].since_us = clock_monotonic_us();
    }
}

static int64_t alone_us(const struct job_waits *waits, const struct node_gpu *gpu, uint64_t job)
{
    bool is_alone = gpu->index < GPU_NUMBERS && job && waits->alone[gpu->index].job == job;
    return is_alone ? clock_monotonic_us() - waits->alone[gpu->index].since_us : 0;
}

/* ---- answers ---- */

/* Of the time only. */
static struct wait_case bounds_of(
    const struct job_waits *waits, const struct preload_waiter *waiter)
{
    const struct config *config = waits->node->parts.config;
    const struct preload_process *process = preload_process_of(waits->listener, waiter);
    bool is_rank = process && page_is_rank(process->page);
    return (struct wait_case){.bound_ms = (uint64_t)(config->memory_wait_us / MS_US),
        .ranks_ms = is_rank ? (uint64_t)(config->core.ranks_away_us / MS_US) : 0};
}

static struct reading free_bytes(const struct node_gpu *gpu)
{
    if (!gpu || *gpu->trouble || !gpu->memory_total_bytes.valid || !gpu->memory_used_bytes.valid)
        return READING_NONE;
    return reading_of(gpu->memory_total_bytes.value - gpu->memory_used_bytes.value);
}

static struct job_wait_case case_of(
    struct job_waits *waits, const struct preload_waiter *waiter, const struct node_gpu *gpu)
{
    struct job_wait_case c = {
        .general = bounds_of(waits, waiter),
        .free_bytes = free_bytes(gpu),
        .total_bytes = gpu ? gpu->memory_total_bytes : READING_NONE,
    };
    c.general.bytes = waiter->bytes;
    c.general.held_bytes = waiter->held_bytes;
    c.general.waited_ms = uv_now(waits->node->parts.loop) - waiter->since_ms;
    c.general.retries = waiter->retries;
    if (gpu) {
        c.alone_us = alone_us(waits, gpu, waiter->peer.task);
        c.may_get_help = away_jobs_are_taken(waits->node);
        c.all_wait = all_wait(waits, gpu);
        c.is_youngest = is_youngest(gpu, waiter->peer.task);
    }
    return c;
}

static void log_wait(struct job_waits *waits, struct preload_waiter *waiter)
{
    char size[32];
    const struct node_gpu *gpu = gpu_of(waits->node, waiter);
    if (waiter->is_logged)
        return;
    waiter->is_logged = true;
    LOG_FEW(waits, "job %llu: process %d waits for %s of memory of GPU %d",
        (unsigned long long)waiter->peer.task, (int)waiter->peer.pid,
        format_size((int64_t)waiter->bytes, size, sizeof size), gpu ? gpu->index : -1);
}

/* `taken`: the GPUs on which a thread was let try by this poll. */
static void answer_waiter(struct job_waits *waits, struct preload_waiter *waiter, uint64_t *taken)
{
    const struct node_gpu *gpu = gpu_of(waits->node, waiter);
    const char *why = NULL;
    struct job_wait_case c = case_of(waits, waiter, gpu);
    uint64_t bit = gpu && gpu->index < GPU_NUMBERS ? UINT64_C(1) << gpu->index : 0;
    c.is_taken = *taken & bit;
    enum job_wait_answer decided = job_wait_decide(&c, &why);
    if (decided == JOB_WAIT_ON)
        return;
    if (decided == JOB_WAIT_TRY) {
        *taken |= bit;
        preload_answer(waiter, PRELOAD_RETRY, 0);
        return;
    }
    LOG_FEW(waits, "job %llu: process %d gets the true error: %s",
        (unsigned long long)waiter->peer.task, (int)waiter->peer.pid, why);
    preload_answer(waiter, PRELOAD_FAIL, 0);
}

void job_waits_poll(struct node *node)
{
    struct job_waits *waits = node->waits;
    struct preload_waiter *waiter = NULL;
    uint64_t taken = 0;
    if (!waits || !waits->listener)
        return;
    struct preload_process *process = NULL;
    while ((process = preload_next_process(waits->listener, process)))
        note_calls(waits, process);
    waits->lines = 0;
    note_alone(waits);
    while ((waiter = preload_next_waiter(waits->listener, waiter))) {
        log_wait(waits, waiter);
        if (waiter->is_asking)
            answer_waiter(waits, waiter, &taken);
    }
}

/* ---- reports ---- */

/* What is reported has other jobs give way. */
bool job_waits_is_certain(const struct node *node, const struct preload_peer *peer)
{
    const struct node_step *step = node_step_of_job(node, peer->task);
    if (step)
        return step->uid == peer->uid;
    for (size_t i = 0; i < node->n_gpus; i++)
        for (size_t k = 0; k < node->gpus[i].n_processes; k++) {
            const struct node_process *process = &node->gpus[i].processes[k];
            if (process_id_is(node_process_id(process), preload_peer_id(peer)))
                return process->job == peer->task && !process->is_claimed;
        }
    return false;
}

/* Since when none of the job's processes has called CUDA; 0: one does, or it has none here. */
static int64_t idle_us(const struct node *node, uint32_t job)
{
    struct preload_process *process = NULL;
    int64_t last_us = 0;
    while ((process = job_waits_next_process(node, job, process))) {
        const struct job_process *known = process->data;
        if (!known)
            return 0;
        last_us = known->called_us > last_us ? known->called_us : last_us;
    }
    int64_t idle = last_us ? clock_monotonic_us() - last_us : 0;
    return idle < IDLE_LEAST_US ? 0 : idle / SECOND_US * SECOND_US;
}

static bool are_carried(const struct node *node, uint32_t job)
{
    struct preload_process *process = NULL;
    bool all = true;
    while ((process = job_waits_next_process(node, job, process)))
        all &= page_can_carry(process->page);
    return all;
}

size_t job_waits_report(const struct node *node, struct node_job *ret_jobs, size_t max)
{
    struct preload_waiter *waiter = NULL;
    struct preload_process *process = NULL;
    size_t n = 0;
    if (!node->waits || !node->waits->listener)
        return 0;
    while ((waiter = preload_next_waiter(node->waits->listener, waiter))) {
        struct node_job *job = job_waits_is_certain(node, &waiter->peer)
                                   ? node_job_entry(ret_jobs, &n, max, waiter->peer.task)
                                   : NULL;
        if (job && (int64_t)waiter->bytes > job->waits_bytes)
            job->waits_bytes = (int64_t)waiter->bytes;
    }
    while ((process = preload_next_process(node->waits->listener, process))) {
        if (!job_waits_is_certain(node, &process->peer) &&
            !away_jobs_hold(node, (uint32_t)process->peer.task, preload_peer_id(&process->peer)))
            continue;
        bool is_out = away_jobs_has(node, (uint32_t)process->peer.task);
        bool is_called = is_out && atomic_load(&process->page->at_gate) > 0;
        bool is_carried = !is_out && node->parts.config->carrier &&
                          are_carried(node, (uint32_t)process->peer.task);
        int64_t idle = is_out ? 0 : idle_us(node, (uint32_t)process->peer.task);
        struct node_job *job = is_called || idle
                                   ? node_job_entry(ret_jobs, &n, max, process->peer.task)
                                   : NULL;
        if (job) {
            job->is_called |= is_called;
            job->is_carried = is_carried;
            job->idle_us = idle;
        }
    }
    return n;
}

/* ---- what the listener calls ---- */

static bool on_admits(void *context, const struct preload_peer *peer)
{
    const struct job_waits *waits = context;
    return may_be_of_job(waits->node, peer);
}

/* A process may come to a new agent while it is off its GPU. */
static void on_begins(void *context, struct preload_process *process)
{
    const struct job_waits *waits = context;
    struct job_process *known = calloc(1, sizeof *known);
    if (known)
        known->called_us = clock_monotonic_us();
    process->data = known;
    if (waits->node->rooms)
        room_pool_connected(waits->node->rooms, process);
    if (away_jobs_hold(waits->node, (uint32_t)process->peer.task, preload_peer_id(&process->peer)))
        page_set_gate(process->page, true);
}

static void on_ends(void *context, struct preload_process *process)
{
    free(process->data);
    process->data = NULL;
}

/* The next poll answers it: the driver has just refused what the last one showed as free. Its
 * time runs from the first WAIT on. */
static void on_waits(void *context, struct preload_waiter *waiter)
{
    const struct job_waits *waits = context;
    if (waiter->bound_at_ms)
        return;
    waiter->bound_at_ms = uv_now(waits->node->parts.loop);
    const struct wait_case bounds = bounds_of(waits, waiter);
    preload_answer(waiter, PRELOAD_BOUND, wait_rule_bound_ms(&bounds));
}

static void on_stops_waiting(void *context, struct preload_waiter *waiter)
{
    struct job_waits *waits = context;
    if (waiter->is_logged)
        LOG_FEW(waits, "job %llu: process %d waits no longer, after %.1f s",
            (unsigned long long)waiter->peer.task, (int)waiter->peer.pid,
            (double)(uv_now(waits->node->parts.loop) - waiter->since_ms) / 1000);
}

static void on_refuses(void *context, uid_t uid, int count)
{
    struct job_waits *waits = context;
    LOG_FEW(waits, "user %u has %d connections of the preloaded library and gets no more",
        (unsigned)uid, count);
}

/* ---- life ---- */

const char *job_waits_socket(const struct node *node)
{
    return node->waits && node->waits->listener ? node->waits->socket : NULL;
}

struct preload_listener *job_waits_listener(const struct node *node)
{
    return node->waits ? node->waits->listener : NULL;
}

void job_waits_open(struct node *node)
{
    const struct config *config = node->parts.config;
    struct fault fault = {0};
    if (!config->preload || !config->memory_wait_us)
        return;
    if (access(config->preload_library, R_OK) < 0) {
        log_warning(
            "jobs run without the preloaded library: %s cannot be read", config->preload_library);
        return;
    }
    node->waits = calloc(1, sizeof *node->waits);
    if (!node->waits)
        return;
    node->waits->node = node;
    snprintf(node->waits->socket, sizeof node->waits->socket, "%s.preload", config->node_socket);
    const struct preload_hooks hooks = {
        node->waits, on_admits, on_begins, on_ends, on_waits, on_stops_waiting, on_refuses};
    if (preload_listener_create(node->parts.loop, node->waits->socket,
            preload_connections_for_limit(), &hooks, &fault, &node->waits->listener) < 0)
        log_warning("jobs run without the preloaded library: %s", fault.text);
}

/* The listener calls no hook when it is closed. */
static void free_processes(struct job_waits *waits)
{
    struct preload_process *process = NULL;
    while ((process = preload_next_process(waits->listener, process)))
        on_ends(waits, process);
}

void job_waits_close(struct node *node)
{
    if (node->waits && node->waits->listener)
        free_processes(node->waits);
    if (node->waits && node->waits->listener)
        preload_listener_close(node->waits->listener);
}

void job_waits_destroy(struct node *node)
{
    if (node->waits)
        preload_listener_destroy(node->waits->listener);
    free(node->waits);
}
