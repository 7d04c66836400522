#include "core/task.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BIT(state) (1u << (state))
#define DONE                                                                                                           \
    (BIT(TASK_COMPLETED) | BIT(TASK_FAILED) | BIT(TASK_CANCELLED) | BIT(TASK_TIMEOUT) | BIT(TASK_OUT_OF_MEMORY))

static const struct {
    const char *name;
    const char *word;
    unsigned allowed; /* states it may move to */
} states[TASK_STATES] = {
    [TASK_HELD] = {"held", "PENDING", BIT(TASK_QUEUED) | BIT(TASK_RECOVERING) | BIT(TASK_CANCELLED)},
    [TASK_QUEUED] = {"queued", "PENDING", BIT(TASK_HELD) | BIT(TASK_STARTING) | BIT(TASK_CANCELLED)},
    [TASK_RECOVERING] = {"recovering", "PENDING", BIT(TASK_HELD) | BIT(TASK_STARTING) | BIT(TASK_CANCELLED)},
    [TASK_STARTING] = {"starting", "RUNNING",
                       BIT(TASK_RUNNING) | BIT(TASK_QUEUED) | BIT(TASK_RECOVERING) | BIT(TASK_EXITED)},
    [TASK_RUNNING] = {"running", "RUNNING", BIT(TASK_ENDING) | BIT(TASK_EXITED)},
    [TASK_ENDING] = {"ending", "COMPLETING", BIT(TASK_EXITED)},
    [TASK_EXITED] = {"exited", "COMPLETING", DONE | BIT(TASK_RECOVERING)},
    [TASK_COMPLETED] = {"completed", "COMPLETED", 0},
    [TASK_FAILED] = {"failed", "FAILED", 0},
    [TASK_CANCELLED] = {"cancelled", "CANCELLED", 0},
    [TASK_TIMEOUT] = {"timeout", "TIMEOUT", 0},
    [TASK_OUT_OF_MEMORY] = {"out-of-memory", "OUT_OF_MEMORY", 0},
};

static const char *const failures[TASK_FAILURES] = {
    [FAILURE_NONE] = "none",           [FAILURE_GPU_OOM] = "gpu-oom", [FAILURE_HOST_OOM] = "host-oom",
    [FAILURE_PROGRAM] = "program",     [FAILURE_SIGNAL] = "signal",   [FAILURE_TIME_LIMIT] = "time-limit",
    [FAILURE_CANCELLED] = "cancelled", [FAILURE_LAUNCH] = "launch",   [FAILURE_LOST] = "lost",
};

static const char *const sharings[] = {[SHARING_STREAMS] = "streams", [SHARING_MPS] = "mps"};

const char *task_state_word(enum task_state state)
{
    return states[state].word;
}

const char *task_state_name(enum task_state state)
{
    return states[state].name;
}

const char *task_failure_name(enum task_failure failure)
{
    return failures[failure];
}

static int find_name(const char *const names[], size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(names[i], name) == 0)
            return (int)i;
    return -EINVAL;
}

int task_failure_parse(const char *name, enum task_failure *ret_failure)
{
    int i = find_name(failures, TASK_FAILURES, name);
    if (i >= 0)
        *ret_failure = (enum task_failure)i;
    return i < 0 ? i : 0;
}

const char *sharing_name(enum sharing sharing)
{
    return sharings[sharing];
}

int sharing_parse(const char *name, enum sharing *ret_sharing)
{
    int i = find_name(sharings, sizeof sharings / sizeof *sharings, name);
    if (i >= 0)
        *ret_sharing = (enum sharing)i;
    return i < 0 ? i : 0;
}

bool task_may_move(enum task_state from, enum task_state to)
{
    return states[from].allowed & BIT(to);
}

bool task_is_sound(const struct task *task)
{
    bool waits = task->state == TASK_QUEUED || task->state == TASK_RECOVERING;
    bool runs = task->state == TASK_RUNNING || task->state == TASK_ENDING;
    return (task->queue != NULL) == waits && (task->n_gpus > 0) == task_state_holds_gpus(task->state) &&
           task->has_process == runs;
}

void task_move(struct task *task, enum task_state to)
{
    if (!task_may_move(task->state, to)) {
        fprintf(stderr, "colloc: task %llu may not go from %s to %s\n", (unsigned long long)task->id,
                states[task->state].name, states[to].name);
        abort();
    }
    task->state = to;
}
