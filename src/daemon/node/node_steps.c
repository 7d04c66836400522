/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The steps that run on the node. slurmstepd says when one starts (node_socket.c); its end needs no
 * message: a pidfd of slurmstepd shows it, also when it was killed. An agent that is restarted
 * reads the steps of the one before it (step_records.c).
 *
 * A step's memory crash is worth a second run only if the step was not alone: from its start on the
 * agent notes whether another job, or a program of no job, was on one of its GPUs. The batch script
 * of a job over several nodes runs on the first one, whose agent has no data of the others: it
 * counts as not alone, unless the job has all its GPUs to itself.
 */
#include <stdlib.h>
#include <sys/pidfd.h>
#include <unistd.h>

#include "base/list.h"
#include "base/log.h"
#include "daemon/node/node.h"
#include "daemon/node/node_state.h"

static void on_closed(uv_handle_t *handle)
{
    struct node_step *step = handle->data;
    close(step->pidfd);
    free(step);
}

static void remove_step(struct node_step *step)
{
    LIST_UNLINK(step);
    uv_close((uv_handle_t *)&step->end, on_closed);
}

static void on_ended(uv_poll_t *poll, int status, int events)
{
    struct node_step *step = poll->data;
    log_debug("job %u: a step has ended", step->job);
    step_record_remove(step);
    remove_step(step);
    if (step->is_mps)
        mps_task_ended(step->node->parts.mps, step->uid, "");
}

struct node_step *node_step_add(struct node *node, const struct node_step *wanted)
{
    struct node_step *step = malloc(sizeof *step);
    int pidfd = pidfd_open(wanted->stepd, 0);
    if (!step || pidfd < 0) {
        free(step);
        if (pidfd >= 0)
            close(pidfd);
        return NULL;
    }
    *step = *wanted;
    step->node = node;
    step->pidfd = pidfd;
    for (struct node_step *other = node->steps; other; other = other->next)
        if (other->job != step->job && (other->gpus & step->gpus))
            step->was_shared = other->was_shared = true;
    LIST_PREPEND(&node->steps, step);
    uv_poll_init(node->parts.loop, &step->end, pidfd);
    step->end.data = step;
    uv_poll_start(&step->end, UV_READABLE, on_ended);
    step_record_save(step);
    return step;
}

void node_steps_load(struct node *node)
{
    step_records_read(node, node_step_add);
}

struct node_step *node_step_find(const struct node *node, pid_t stepd)
{
    struct node_step *step = node->steps;
    while (step && step->stepd != stepd)
        step = step->next;
    return step;
}

const struct node_step *node_step_of_job(const struct node *node, uint64_t job)
{
    const struct node_step *step = node->steps;
    while (step && step->job != job)
        step = step->next;
    return step;
}

static bool has_process_of_others(const struct node_gpu *gpu, const struct node_step *step)
{
    for (size_t i = 0; i < gpu->n_processes; i++)
        if (!node_process_is_of(&gpu->processes[i], step->job, step->uid))
            return true;
    return false;
}

void node_steps_note_sharing(struct node *node)
{
    for (struct node_step *step = node->steps; step; step = step->next)
        for (size_t i = 0; i < node->n_gpus && !step->was_shared; i++)
            step->was_shared = node->gpus[i].index < 64 &&
                               (step->gpus >> node->gpus[i].index & 1) &&
                               has_process_of_others(&node->gpus[i], step);
}

void node_steps_close(struct node *node)
{
    while (node->steps)
        remove_step(node->steps);
}

int node_count_mps_steps(const struct node *node, uid_t uid)
{
    int n = 0;
    for (const struct node_step *step = node->steps; step; step = step->next)
        n += step->is_mps && step->uid == uid;
    return n;
}
