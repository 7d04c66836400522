/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processes are examined in two passes:
 *
 *     by cgroup        the kernel answers at once: the processes of jobs are ended, and those that
 *                      are in no job's folder are listed
 *     by environment   the listed ones, which may hang: each with a limit
 *
 * So a process that hangs delays the end of the others by no more than the limit, and none of those
 * in a cgroup of Slurm. Meanwhile slurmd may run again: then the second pass stops.
 */
#include "daemon/node/node_fence.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/process.h"
#include "daemon/node/job_of_process.h"
#include "daemon/node/slurmd_search.h"
#include "exec/limited_visit.h"
#include "exec/tree.h"

enum { ENTRY_MAX = 4 << 20 };

struct fence {
    const struct slurm_identity *identity;
    int n_ended;
    pid_t *unknown; /* in no cgroup of a job, */
    uint64_t *born; /* and their starts: they may end while others are examined */
    size_t n_unknown, capacity, born_capacity;
    enum visit_answer *answers; /* of these: do they belong to a job of the node? */
};

/* The slurmstepd above it. Returns whether there is one. */
static bool find_stepd(pid_t pid, struct process_id *ret_stepd)
{
    for (int depth = 0; depth < 64 && pid > 1; depth++) {
        struct process_stat stat;
        if (process_read_stat(pid, &stat) < 0)
            return false;
        *ret_stepd = (struct process_id){pid, stat.start_ticks};
        if (strncmp(stat.name, "slurmstepd", strlen("slurmstepd")) == 0)
            return true;
        pid = stat.parent;
    }
    return false;
}

/* slurmstepd first: so that it does not report an end that slurmd's absence has caused. */
static void end_process(struct process_id id)
{
    struct process_id stepd;
    if (process_signal(id, 0) < 0)
        return;
    if (find_stepd(id.pid, &stepd) && process_signal(stepd, SIGSTOP) == 0) {
        tree_signal(stepd.pid, SIGKILL); /* it is stopped, so its pid stays its own */
        process_signal(stepd, SIGKILL);
    }
    process_signal(id, SIGKILL);
}

/* Returns 0 or -ENOMEM. */
static int note_unknown(struct fence *fence, struct process_id id)
{
    if (ARRAY_RESERVE(fence->born, fence->born_capacity, fence->n_unknown + 1) < 0)
        return -ENOMEM;
    fence->born[fence->n_unknown] = id.born;
    return ARRAY_APPEND(fence->unknown, fence->n_unknown, fence->capacity, id.pid);
}

static int examine_cgroup(pid_t pid, void *context)
{
    struct fence *fence = context;
    struct process_stat stat;
    uint32_t job;
    if (pid == 1 || pid == getpid() || pid == getppid()) /* the agent may be started in a job */
        return 0;
    if (process_read_stat(pid, &stat) < 0)
        return 0;
    const struct process_id id = {pid, stat.start_ticks};
    if (!job_by_cgroup(pid, fence->identity->node, &job))
        return note_unknown(fence, id);
    if (job == 0)
        return 0;
    end_process(id);
    fence->n_ended++;
    return 0;
}

static bool examine_environment(pid_t pid, void *context)
{
    const struct fence *fence = context;
    char *text;
    size_t size;
    bool is_ours = process_read_environ(pid, ENTRY_MAX, &text, &size) == 0 &&
                   environment_is_of_node(text, size, fence->identity);
    free(text);
    return is_ours;
}

/* Ends the processes that are known by now. Returns false, and ends none, when slurmd is back. */
static bool end_answered(void *context, size_t n_skipped)
{
    struct fence *fence = context;
    if (slurmd_search(fence->identity, NULL) != 0)
        return false;
    for (size_t i = 0; i < fence->n_unknown; i++) {
        if (fence->answers[i] != VISIT_YES)
            continue;
        end_process((struct process_id){fence->unknown[i], fence->born[i]});
        fence->answers[i] = VISIT_NO;
        fence->n_ended++;
    }
    return true;
}

/* Returns 0 or -errno. */
static int end_jobs(struct fence *fence)
{
    int r = process_walk(examine_cgroup, fence);
    if (r < 0)
        return r;
    fence->answers = calloc(fence->n_unknown, sizeof *fence->answers);
    if (!fence->answers && fence->n_unknown > 0)
        return -ENOMEM;
    const struct limited_visit rest = {.pids = fence->unknown,
        .n = fence->n_unknown,
        .limit_ms = VISIT_READ_MS,
        .visit = examine_environment,
        .goes_on = end_answered,
        .context = fence};
    r = limited_visit_run(&rest, fence->answers);
    end_answered(fence, 0);
    return r < 0 ? r : 0;
}

int node_fence(const struct slurm_identity *identity, struct fault *fault)
{
    struct fence fence = {.identity = identity};
    pid_t slurmd = slurmd_search(identity, fault);
    if (slurmd != 0)
        return slurmd > 0 ? -EEXIST : slurmd;
    int r = end_jobs(&fence);
    free(fence.unknown);
    free(fence.born);
    free(fence.answers);
    return r < 0 ? fault_set(fault, -r, "could not end the node's jobs: %s", strerror(-r))
                 : fence.n_ended;
}
