/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scheduler: one step function. A driver (the daemon, the simulator, a test) feeds events with
 * their time inside and carries out the effects each step leaves. No I/O, no clock, no threads,
 * nothing global.
 *
 * The driver's part of the bargain: it writes an input to its log before it feeds it (samples and
 * ticks need not be written), and writes every EFFECT_APPEND before it carries out the effects
 * behind it.
 */
#ifndef COLLOC_CORE_CORE_H
#define COLLOC_CORE_CORE_H

#include <stddef.h>

#include "base/fault.h"
#include "core/event.h"
#include "core/policy.h"
#include "core/queue.h"

struct core_settings {
    const struct policy *policy; /* the default of tasks that name none */
    struct conditions conditions;
    int64_t window_us; /* the monitoring window; the thesis: 90 s */
    enum window_statistic
        statistic;               /* of the activity over the window; the dissertation: the mean */
    int64_t settle_us;           /* memory that has not grown for so long has settled */
    int64_t settle_max_us;       /* a task's GPUs are held off from others no longer than that */
    int64_t recovery_step_bytes; /* more free memory for every crash (thesis 7.2); 0: GPUs to itself
                                    at once */
    int recoveries_max;          /* starts after a GPU memory crash, per task */
    int requeues_max;            /* starts after ends through no fault of its own, per task */
    double filler_smact;         /* a task that is expected to be more active nearly fills a GPU */
    int filler_percent;          /* of the SMs are such a task's beside others by MPS; 0: all */
    bool
        mps_mem_limit; /* limit MPS clients to their requirement and the margin, where it is known */
};

/* The thesis's conditions (section 6.2.2), a hold-off of 10 s within 60 s, three recoveries; no
 * policy yet. */
struct core_settings core_settings_default(void);

enum effect_kind {
    EFFECT_APPEND, /* write `event`, a decision, to the log */
    EFFECT_START,  /* start `task` on its GPUs; answer with STARTED, or EXITED (FAILURE_LAUNCH) */
    EFFECT_KILL,   /* end `task`'s process tree, politely first; answer with EXITED when it has gone
                    */
    EFFECT_WAIT,   /* why `task`, first in its queue, waits has changed: core_explain tells */
};

struct effect {
    enum effect_kind kind;
    uint64_t task;
    struct event event; /* of EFFECT_APPEND; what it points to lives until the next step */
};

struct core;

/* The settings are copied. NULL when memory is out. */
struct core *core_create(const struct core_settings *settings);
void core_destroy(struct core *core);

/* New settings from now on; the state stays. */
void core_configure(struct core *core, const struct core_settings *settings);

/*
 * Applies the event and decides what follows from it. Time must not go back. An event that does not
 * suit the state (a cancel of a task that has ended, a sample of no GPU) is an answer, not a fault:
 * 0, CORE_NO_SUCH_TASK or CORE_NOT_NOW (and nothing has changed), or -ENOMEM.
 */
enum { CORE_NO_SUCH_TASK = 1, CORE_NOT_NOW = 2 };
int core_step(struct core *core, const struct event *event);

/*
 * Applies the event and decides nothing: how a log is replayed. Returns as core_step does. After
 * the log's end the driver feeds STARTED, UNSTARTED or EXITED for every task that core_next_task
 * shows to hold GPUs: STARTED of a task that was told to end leaves its EFFECT_KILL again. The
 * first step after a replay also decides what the log's last inputs left undecided (an EXITED or a
 * CANCEL whose END was never written).
 */
int core_apply(struct core *core, const struct event *event);

/* What the last step left to do, in order. Valid until the next step. */
const struct effect *core_effects(const struct core *core, int *ret_n);

/* When the core wants a TICK at the latest (a time limit): INT64_MAX when it does not. */
int64_t core_deadline_us(const struct core *core);

/* A request that can never be met here is a fault in words. 0 or -EINVAL. */
int core_check_request(
    const struct core *core, const struct task_request *request, struct fault *fault);

/* By id; NULL when there is none (any more). Done tasks stay until core_forget. */
const struct task *core_task(const struct core *core, uint64_t id);
void core_forget(struct core *core, uint64_t id);

/* The task with the smallest id above `id`, or NULL: for walking all. Start with 0. */
const struct task *core_next_task(const struct core *core, uint64_t id);

const struct task_queue *core_main_queue(const struct core *core);
const struct task_queue *core_recovery_queue(const struct core *core);
const struct cluster_view *core_view(const struct core *core);
const struct core_settings *core_get_settings(const struct core *core);

/*
 * What stands against starting a waiting task now, in one line: "GPU 2: SMACT 83 % over 80 %; GPU
 * 3: 1.2 GiB short", or "3 tasks are before it in the queue", or which task is the head of the queue
 * and what is against starting before it. Returns `buffer`.
 */
const char *core_explain(
    const struct core *core, uint64_t id, int64_t now_us, char *buffer, size_t size);

/* The same in one of Slurm's words: "Resources", "Priority", "JobHeldUser", "Recovering", "None".
 */
const char *core_reason_word(const struct core *core, uint64_t id);

#endif
