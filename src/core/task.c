/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life-cycle of a task, as a table: for each state its names and the states that may follow.
 *
 *     HELD <---> QUEUED -------.                     .--> ENDING --.
 *       ^                      v                     |             v
 *       |                   STARTING ---> RUNNING ---+--------> EXITED ---> COMPLETED, FAILED,
 *       v                      ^                                            CANCELLED, TIMEOUT,
 *     RECOVERING --------------'                                            OUT_OF_MEMORY, STOPPED
 *
 * A task that may not start yet is BLOCKED: before its queue, and again when it is released.
 *
 * Also: a task that waits can be CANCELLED at once. STARTING becomes EXITED when the start fails.
 * STARTING, RUNNING and ENDING go back to their queue when the attempt turns out to have never
 * started. EXITED goes back to QUEUED or RECOVERING when the task is to run again, a service to
 * BLOCKED, until it is time to start it again. A move that the
 * table does not allow is a defect of this program.
 */
#include "core/task.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/units.h"

#define BIT(state) (1u << (state))
#define DONE                                                                                       \
    (BIT(TASK_COMPLETED) | BIT(TASK_FAILED) | BIT(TASK_CANCELLED) | BIT(TASK_TIMEOUT) |            \
        BIT(TASK_OUT_OF_MEMORY) | BIT(TASK_STOPPED))

/* An attempt that has run nothing (EVENT_UNSTARTED) goes back to its queue. */
#define UNSTARTED (BIT(TASK_QUEUED) | BIT(TASK_RECOVERING))

static const struct {
    const char *name;
    const char *word;
    unsigned allowed; /* states it may move to */
} states[TASK_STATES] = {
    [TASK_HELD] = {"held", "PENDING",
        BIT(TASK_BLOCKED) | BIT(TASK_QUEUED) | BIT(TASK_RECOVERING) | BIT(TASK_CANCELLED)},
    [TASK_BLOCKED] = {"blocked", "PENDING",
        BIT(TASK_HELD) | BIT(TASK_QUEUED) | BIT(TASK_RECOVERING) | BIT(TASK_CANCELLED)},
    [TASK_QUEUED] = {"queued", "PENDING",
        BIT(TASK_HELD) | BIT(TASK_STARTING) | BIT(TASK_CANCELLED)},
    [TASK_RECOVERING] = {"recovering", "PENDING",
        BIT(TASK_HELD) | BIT(TASK_STARTING) | BIT(TASK_CANCELLED)},
    [TASK_STARTING] = {"starting", "RUNNING",
        BIT(TASK_RUNNING) | BIT(TASK_QUEUED) | BIT(TASK_RECOVERING) | BIT(TASK_EXITED)},
    [TASK_RUNNING] = {"running", "RUNNING",
        BIT(TASK_PAUSED) | BIT(TASK_SUSPENDING) | BIT(TASK_MOVING) | BIT(TASK_ENDING) | UNSTARTED |
            BIT(TASK_EXITED)},
    [TASK_PAUSED] = {"paused", "PAUSED",
        BIT(TASK_RUNNING) | BIT(TASK_ENDING) | UNSTARTED | BIT(TASK_EXITED)},
    [TASK_SUSPENDING] = {"suspending", "SUSPENDED",
        BIT(TASK_SUSPENDED) | BIT(TASK_RUNNING) | UNSTARTED | BIT(TASK_EXITED)},
    [TASK_SUSPENDED] = {"suspended", "SUSPENDED", BIT(TASK_RESUMING) | BIT(TASK_EXITED)},
    [TASK_RESUMING] = {"resuming", "SUSPENDED",
        BIT(TASK_RUNNING) | BIT(TASK_SUSPENDED) | BIT(TASK_EXITED)},
    [TASK_MOVING] = {"moving", "SUSPENDED",
        BIT(TASK_RUNNING) | BIT(TASK_SUSPENDED) | UNSTARTED | BIT(TASK_EXITED)},
    [TASK_ENDING] = {"ending", "COMPLETING", UNSTARTED | BIT(TASK_EXITED)},
    [TASK_EXITED] = {"exited", "COMPLETING",
        DONE | BIT(TASK_BLOCKED) | BIT(TASK_QUEUED) | BIT(TASK_RECOVERING)},
    [TASK_COMPLETED] = {"completed", "COMPLETED", 0},
    [TASK_FAILED] = {"failed", "FAILED", 0},
    [TASK_CANCELLED] = {"cancelled", "CANCELLED", 0},
    [TASK_TIMEOUT] = {"timeout", "TIMEOUT", 0},
    [TASK_OUT_OF_MEMORY] = {"out-of-memory", "OUT_OF_MEMORY", 0},
    [TASK_STOPPED] = {"stopped", "STOPPED", 0},
};

const char *const sharing_names[SHARINGS] = {
    [SHARING_STREAMS] = "streams", [SHARING_MPS] = "mps", [SHARING_AUTO] = "auto"};

static const char *const priorities[] = {"low", "normal", "high", "urgent"};

static const struct task_run no_run;

/* ---- the run ---- */

/* Without const, as for other tasks; a write to it ends the program. */
struct task_run *task_no_run(void)
{
    return (struct task_run *)(uintptr_t)&no_run;
}

bool task_has_run(const struct task *task)
{
    return task->run != &no_run;
}

int task_begin_run(struct task *task)
{
    if (task_has_run(task))
        return 0;
    struct task_run *run = calloc(1, sizeof *run);
    if (!run)
        return -ENOMEM;
    task->run = run;
    return 0;
}

void task_end_run(struct task *task)
{
    if (!task_has_run(task))
        return;
    free(task->run->yield.to_gpus);
    free(task->run->yield.context_gpus);
    free(task->run);
    task->run = task_no_run();
}

/* ---- names ---- */

const char *task_state_word(enum task_state state)
{
    return states[state].word;
}

const char *task_state_name(enum task_state state)
{
    return states[state].name;
}

const char *priority_name(int priority)
{
    return priorities[priority - PRIORITY_LOW];
}

enum need_kind need_kind_of_estimator(const char *name)
{
    if (strcmp(name, "none") == 0)
        return NEED_UNKNOWN;
    return strcmp(name, "declared") == 0 ? NEED_DECLARED : NEED_ESTIMATED;
}

int priority_parse(const char *name, int *ret_priority)
{
    for (size_t i = 0; i < ARRAY_SIZE(priorities); i++) {
        if (strcmp(priorities[i], name) == 0) {
            *ret_priority = (int)i + PRIORITY_LOW;
            return 0;
        }
    }
    return -EINVAL;
}

const char *sharing_name(enum sharing sharing)
{
    return sharing_names[sharing];
}

int sharing_parse(const char *name, enum sharing *ret_sharing)
{
    for (int i = 0; i < SHARINGS; i++) {
        if (strcmp(sharing_names[i], name) == 0) {
            *ret_sharing = (enum sharing)i;
            return 0;
        }
    }
    return -EINVAL;
}

bool task_may_move(enum task_state from, enum task_state to)
{
    return states[from].allowed & BIT(to);
}

bool task_stays_suspended(const struct task *task)
{
    return task->run->yield.by_user || task->run->yield.is_unused || task->ending;
}

static bool is_news(const struct need *known, const struct need *learned)
{
    if (known->kind == NEED_ESTIMATED)
        return learned->kind == NEED_ESTIMATED && learned->bytes > known->bytes;
    return known->kind < NEED_ESTIMATED && learned->kind != NEED_PENDING;
}

bool task_request_learn(struct task_request *request, const struct task_estimate *estimate)
{
    bool sets_need = is_news(&request->need, &estimate->need);
    bool sets_smact = !request->expect.smact.valid && estimate->smact.valid;
    if (sets_need)
        request->need = estimate->need;
    if (sets_smact)
        request->expect.smact = estimate->smact;
    return sets_need || sets_smact;
}

bool task_shares_gpu(const struct task *a, const struct task *b)
{
    for (int i = 0; i < a->n_gpus; i++)
        for (int k = 0; k < b->n_gpus; k++)
            if (a->gpus[i] == b->gpus[k])
                return true;
    return false;
}

struct task_label task_label_of_id(uint64_t id)
{
    struct task_label label;
    snprintf(label.text, sizeof label.text, "%" PRIu64, id);
    return label;
}

struct task_label task_label(const struct task *task)
{
    struct task_label label;
    if (!task->array.id)
        return task_label_of_id(task->id);
    snprintf(label.text, sizeof label.text, "%" PRIu64 "_%d", task->array.id, task->array.index);
    return label;
}

/* Chosen: NVML counts as free what the driver keeps of a full GPU, up to 0.6 GiB of an H200. Beyond
 * four times as much there is another reason. */
#define REFUSED_BYTES (256 * MIB)
enum { REFUSED_MAX = 4 };

double memory_wait_enough_bytes(const struct memory_wait *wait)
{
    int n = wait->n_refused < REFUSED_MAX ? wait->n_refused : REFUSED_MAX;
    return (double)(wait->bytes + n * REFUSED_BYTES);
}

bool task_is_sound(const struct task *task)
{
    bool is_resumed = task->state == TASK_SUSPENDED && !task_stays_suspended(task);
    bool waits = task->state == TASK_BLOCKED || task->state == TASK_QUEUED ||
                 task->state == TASK_RECOVERING || is_resumed;
    bool runs = task_state_has_attempt(task->state) && task->state != TASK_STARTING;
    bool may_be_frozen = task->state == TASK_PAUSED || task->state == TASK_ENDING;
    return (task->queue != NULL) == waits &&
           (task->n_gpus > 0) == (task->request.gpus > 0 && task_state_holds_gpus(task->state)) &&
           task->has_process == runs &&
           (task->run->yield.to_gpus != NULL) == (task->state == TASK_MOVING) &&
           (task->n_after == 0 || task->state == TASK_HELD || task->state == TASK_BLOCKED) &&
           (may_be_frozen || !task->run->yield.is_frozen);
}

void task_move(struct task *task, enum task_state to)
{
    if (!task_may_move(task->state, to)) {
        fprintf(stderr, "colloc: task %llu may not go from %s to %s\n",
            (unsigned long long)task->id, states[task->state].name, states[to].name);
        abort();
    }
    task->state = to;
}
