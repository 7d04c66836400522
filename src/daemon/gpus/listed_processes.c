/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which process the driver means by a pid. NVML goes on listing a process that has ended, with all
 * its memory, while a process that was forked from it keeps the device open (seen with driver
 * 580.159.04). Meanwhile the pid may be given to another process, which has nothing of that memory.
 * So a process is noted with its start time when it is listed first, and compared once a second as
 * long as it stays in the list, and before it becomes a task's:
 *
 *     listed    /proc has                     the memory is
 *     100       100, started at 5             of process 100, of task 7
 *     100       no 100, or a zombie           left behind by process 100 of task 7
 *     100       100, started at 9             the same
 *     -         -                             (the next process 100 is a new one)
 *
 * Memory stays a task's while the attempt runs that the process was of: what holds it is a process
 * of the task. When a task has ended, memory may be left for a moment, until the driver has
 * released it: only what is left for longer is reported.
 *
 * A process that was never seen alive may have been a task's, which ended between the driver's list
 * and the look at /proc. What is listed for longer than an ended process is of another pid
 * namespace, so of no task.
 *
 * The holder of the memory is found in the thread of a poll, by the device file and the session
 * (exec/device_holders.c).
 */
#include <errno.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/process.h"
#include "base/units.h"
#include "daemon/gpus/gpus_state.h"
#include "exec/device_holders.h"

/* Chosen: how often /proc is read for a process, as in exec/ancestry_cache.c. */
#define CHECK_PERIOD_US SECOND_US

/* Chosen: more than the driver takes to release the memory of a process that was killed. */
#define LEFT_AFTER_US (5 * SECOND_US)

/* Chosen: a search reads the line `stat` of all processes, which is 10 ms for 1,000 of them. */
#define SEARCH_PERIOD_US (10 * SECOND_US)

static struct listed_process *find_listed(struct gpus *gpus, pid_t pid)
{
    for (size_t i = 0; i < gpus->n_listed; i++)
        if (gpus->listed[i].pid == pid)
            return &gpus->listed[i];
    return NULL;
}

/* The start time of the process that has the pid now, in clock ticks; 0: none has it. A process
 * that is hidden keeps what is known of it. */
static unsigned long long read_born(pid_t pid, unsigned long long otherwise, pid_t *ret_session)
{
    struct process_stat stat;
    int r = process_read_stat(pid, &stat);
    if (r < 0)
        return r == -ESRCH ? 0 : otherwise;
    *ret_session = stat.session;
    return process_has_ended(&stat) ? 0 : stat.start_ticks;
}

void listed_process_check(struct listed_process *process, int64_t now_us)
{
    pid_t session = 0;
    unsigned long long born = read_born(process->pid, process->born, &session);
    bool is_first = process->checked_us == 0;
    process->checked_us = now_us;
    if (is_first) {
        process->born = born;
        process->session = session;
    }
    if (born && born == process->born)
        process->gone_us = 0;
    else if (!process->gone_us && (process->born || born))
        process->gone_us = now_us;
}

struct listed_process *listed_process_note(struct gpus *gpus, pid_t pid, int64_t now_us)
{
    struct listed_process *process = find_listed(gpus, pid);
    if (!process) {
        struct listed_process new = {.pid = pid, .noted_us = now_us};
        if (ARRAY_APPEND(gpus->listed, gpus->n_listed, gpus->listed_capacity, new) < 0)
            return NULL;
        process = &gpus->listed[gpus->n_listed - 1];
    }
    process->poll = gpus->polls_begun;
    if (process->checked_us == 0 || now_us - process->checked_us >= CHECK_PERIOD_US)
        listed_process_check(process, now_us);
    return process;
}

bool listed_process_is_unknown(const struct listed_process *process, int64_t now_us)
{
    return !process->born && now_us - process->noted_us < LEFT_AFTER_US;
}

bool listed_process_is_left(const struct listed_process *process, int64_t now_us)
{
    return process->gone_us && now_us - process->gone_us >= LEFT_AFTER_US;
}

/* A GPU that was left out of the poll may still list them. */
static bool was_any_skipped(const struct gpus *gpus)
{
    for (size_t i = 0; i < gpus->set->count; i++)
        if (!gpus->states[i].is_fresh)
            return true;
    return false;
}

void listed_processes_forget(struct gpus *gpus)
{
    size_t kept = 0;
    if (was_any_skipped(gpus))
        return;
    for (size_t i = 0; i < gpus->n_listed; i++)
        if (gpus->listed[i].poll == gpus->polls_begun)
            gpus->listed[kept++] = gpus->listed[i];
    gpus->n_listed = kept;
}

/* ---- the holder of memory that is left behind ---- */

/* Beside the first processes of which memory is left behind; more are not searched for. */
void left_memory_prepare(struct gpus *gpus, int64_t now_us)
{
    gpus->n_searches = 0;
    if (now_us < gpus->next_search_us)
        return;
    for (size_t i = 0; i < gpus->set->count; i++) {
        const struct gpu_state *state = &gpus->states[i];
        const struct reading minor = gpus->set->gpu[i].minor;
        for (size_t k = 0; k < state->n_left && gpus->n_searches < LEFT_SEARCHES_MAX; k++) {
            const struct listed_process *process = find_listed(gpus, state->left[k].pid);
            if (process && process->session && minor.valid)
                gpus->searches[gpus->n_searches++] = (struct left_search){
                    .pid = process->pid, .session = process->session, .minor = (int)minor.value};
        }
    }
    if (gpus->n_searches > 0)
        gpus->next_search_us = now_us + SEARCH_PERIOD_US;
}

void left_memory_search(struct gpus *gpus)
{
    for (size_t i = 0; i < gpus->n_searches; i++) {
        struct left_search *search = &gpus->searches[i];
        const struct device_search wanted = {.minor = search->minor,
            .session = search->session,
            .others = &search->pid,
            .n_others = 1};
        search->holder = device_holder_find(&wanted);
    }
}

void left_memory_take(struct gpus *gpus)
{
    for (size_t i = 0; i < gpus->n_searches; i++) {
        struct listed_process *process = find_listed(gpus, gpus->searches[i].pid);
        if (process)
            process->holder = gpus->searches[i].holder;
    }
}

static void log_left(
    const struct gpus *gpus, const struct gpu_state *state, const struct left_memory *left)
{
    char size[32] = "memory", task[64] = "";
    if (left->used_bytes.valid)
        format_size((int64_t)left->used_bytes.value, size, sizeof size);
    if (left->task)
        snprintf(task, sizeof task, " of task %llu", (unsigned long long)left->task);
    log_warning(
        "GPU %s: %s left behind by process %d%s, which has ended: a process that was forked "
        "from it keeps the device open; `colloc doctor` names it",
        gpus->set->gpu[state - gpus->states].index, size, (int)left->pid, task);
}

void left_memory_add(struct gpus *gpus, struct gpu_state *state, struct listed_process *process,
    struct reading used_bytes)
{
    const struct left_memory left = {.pid = process->pid,
        .task = process->task,
        .holder = process->holder,
        .used_bytes = used_bytes};
    if (ARRAY_APPEND(state->left, state->n_left, state->left_capacity, left) == 0 &&
        !process->is_logged) {
        process->is_logged = true;
        log_left(gpus, state, &left);
    }
}
