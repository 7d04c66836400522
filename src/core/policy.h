/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A placement policy: a pure function that gets the view of the GPUs and one task, and returns GPUs
 * for the task, or the reasons why it has to wait. The core knows policies only through this
 * struct; src/policy holds them.
 */
#ifndef COLLOC_CORE_POLICY_H
#define COLLOC_CORE_POLICY_H

#include "core/queue_plan.h"
#include "core/view.h"

struct core;

/* Whether a task may be placed on one GPU, or the first thing that is against it. */
enum verdict_kind {
    VERDICT_FITS,
    VERDICT_NOT_A_PLACE,  /* its MIG instances are places, it is not */
    VERDICT_OTHER_KIND,   /* the task runs on other kinds of GPUs */
    VERDICT_LOST,         /* NVIDIA's driver lost it */
    VERDICT_FAULTY,       /* memory errors, an Xid, or reduced clocks */
    VERDICT_OUT_OF_USE,   /* by the setting drain */
    VERDICT_NO_SAMPLE,    /* it has no recent sample */
    VERDICT_MIG_ONE_ONLY, /* a task of several GPUs cannot use MIG instances */
    VERDICT_EXCLUSIVE,    /* `task` has it to itself */
    VERDICT_DRAINED,      /* it is drained for `task`, which recovers */
    VERDICT_RESERVED,     /* it is reserved for `task`, the head of the queue */
    VERDICT_RETURN,       /* it is kept for `task`, which is suspended and comes back only there */
    VERDICT_SET_ASIDE,    /* it is kept free for the reservation in advance `task` */
    VERDICT_HOLD_OFF,     /* the memory of `task` is still rising */
    VERDICT_STARTING,     /* `have` tasks of unknown activity are starting; `limit` at most */
    VERDICT_START_LATE,   /* the same, where the task or the head has waited for long */
    VERDICT_LEAVING,      /* `task` is being taken off it */
    VERDICT_NOT_IDLE,     /* must be idle: `have` tasks use its memory, and it runs `limit`
                                 external processes */
    VERDICT_FULL,         /* `have` tasks already */
    VERDICT_MPS_FULL,     /* `have` clients of MPS; it has `limit` at most */
    VERDICT_MEMORY_UNKNOWN,   /* free memory is not known */
    VERDICT_MEMORY_SHORT,     /* `have` bytes are free, `limit` are needed */
    VERDICT_MEMORY_KEPT,      /* the same of what is not kept for starting tasks */
    VERDICT_SMACT_UNKNOWN,    /* neither SMACT nor utilisation is known */
    VERDICT_SMACT_HIGH,       /* SMACT `have` exceeds `limit` */
    VERDICT_SMACT_EXPECTED,   /* so does the SMACT that its tasks are known to have, some of which
                                 are starting */
    VERDICT_UTILISATION_HIGH, /* SMACT is unknown, utilisation `have` exceeds `limit` */
    VERDICT_OTHER_MPS_USER,   /* its resident `task` is a client of another user's MPS server */
    VERDICT_ONE_PROCESS,      /* its compute mode admits one process: `task`'s (0: external) */
    VERDICT_MPS_ON_SOME,      /* its compute mode admits the task only by MPS, as `task`; but the
                                 task may be time-sliced for the sake of another of its GPUs */
    VERDICT_SLOWDOWN,         /* a task would take `have` times as long as alone; at most `limit` */
    VERDICT_NO_GAIN,          /* sharing would gain `have` GPUs; at least `limit` is required */
    VERDICT_SERVICE,          /* its service `task` has not met its target for long enough */
    VERDICT_SERVICE_SLOWED,   /* requests of `task` would take `have` times as long; `limit` */
    VERDICT_PROMISE,          /* `task` does not have its promised speed, or has not for long */
    VERDICT_CROWDED,          /* too many shared it: it takes none beside `task` for now */
    VERDICT_PROMISE_SLOWED,   /* `task` would take `have` times as long as alone; `limit` is
                                 promised */
    VERDICT_PROMISE_OWN,      /* the task itself would take `have` times as long; `limit` */
    VERDICT_SERVER_POWER,     /* the server's GPUs would draw `have` watts; at most `limit` */
    VERDICT_POWER_NEVER,      /* they would draw `have` watts even if no other task ran; `limit` */
    VERDICT_POWER_UNKNOWN, /* the power of the GPU, or of another one of its server, is not known */
    VERDICT_POWER_HIGH,    /* it draws `have` watts, over `limit` */
    VERDICT_PCIE_UNKNOWN,  /* its PCIe traffic is not known */
    VERDICT_PCIE_HIGH,     /* its PCIe traffic is `have` bytes a second, over `limit` */
    /* of the core, for all GPUs (core/ask/host_check.c): */
    VERDICT_HOST_CPUS,   /* `have` CPUs of the server are free, `limit` are needed */
    VERDICT_HOST_MEMORY, /* `have` bytes of its memory are free, `limit` are needed */
    VERDICT_NODE,        /* in a cluster: its server does not admit the task (node_check) */
    VERDICT_KINDS
};

struct verdict {
    enum verdict_kind kind;
    uint64_t task;
    double have, limit;
};

struct core_settings;

/* Does the server of a GPU meet a task's other requirements? */
enum node_admission {
    NODE_ADMITS,
    NODE_NOT_NOW, /* it would once other tasks have ended */
    NODE_NEVER,   /* the task does not run there */
};

/*
 * How a driver of many servers restricts placements, by CPUs, host memory or a list of nodes. The
 * answer changes only between two steps of the core, or by placements that the core makes.
 */
struct node_check {
    enum node_admission (*ask)(void *context, const struct task *task, int gpu);
    void *context;
};

/*
 * The prediction for the head of the queue on one GPU, if no further task is placed there. It is
 * the same for all tasks that are tried behind the head: the first of them that needs it stores it
 * here (policy/opening.c). The core forgets it when the view or the time changes.
 */
struct head_outlook {
    bool is_noted;
    int n_left; /* residents that have to leave before the GPU admits the head */
};

struct placement_query {
    const struct cluster_view *view;
    const struct conditions *conditions;
    const struct core_settings *settings; /* for core/sharing_choice.h; NULL: SHARING_AUTO is MPS */
    const struct task *task;
    const struct policy *policy;      /* that is asked */
    const struct task *head;          /* of the queue, that GPUs are reserved for; NULL: none are */
    const struct policy *head_policy; /* that will place the head */
    struct head_outlook *outlooks;    /* of the head, one for each GPU; NULL: none are noted */
    int array_left; /* tasks of the task's array in the queue from it on; 0: none, or too many to
                       be few */
    int64_t now_us;
    bool on_one_gpu;     /* judged as if it were to have the GPU in question only (stage.c) */
    bool idle_only;      /* only idle GPUs: the task is exclusive, or recovers alone */
    bool unused_is_idle; /* with it: GPUs count as idle whose residents are unused (view.h) */
    double recovery_free_bytes; /* free on each GPU for a task that recovers; 0: no requirement */
    bool passes_reservation;    /* the task recovers: reservations do not concern it */
    bool is_unexplained;        /* with PLACE_WAIT no verdict is read: cheap tests come first */
    int first_gpu, end_gpu;     /* only these are considered: a node's; 0, 0: all */
    const struct node_check *node_check; /* NULL: the server meets all requirements */
    const uint64_t *set_aside; /* for each GPU, the reservation in advance, or the task tried before
                                  it, that keeps it from the task, 0: none; NULL: none on all */
};

/* Returns the index behind the last GPU that the query considers. */
static inline int placement_end_gpu(const struct placement_query *query)
{
    return query->end_gpu ? query->end_gpu : query->view->n_gpus;
}

/* Returns what keeps the GPU from the query's task; 0: nothing. */
static inline uint64_t placement_set_aside(const struct placement_query *query, int gpu)
{
    return query->set_aside ? query->set_aside[gpu] : 0;
}

/* Returns how many GPUs the query is about. */
static inline int placement_wanted(const struct placement_query *query)
{
    return query->on_one_gpu ? 1 : query->task->request.gpus;
}

/* Asks the driver whether the server of the GPU admits the query's task. */
static inline enum node_admission placement_ask_node(const struct placement_query *query, int gpu)
{
    const struct node_check *check = query->node_check;
    return check ? check->ask(check->context, query->task, gpu) : NODE_ADMITS;
}

/* 0: the task is placed. Positive: a named answer. */
enum placement_answer {
    PLACE_NOW = 0,
    PLACE_WAIT, /* not now: the verdicts say why */
};

/* An activity (0 to 1) exceeds its limit only by more than this. Chosen: the mean of equal readings
 * may differ from them by rounding, which is far less. */
#define POLICY_ROUNDING 1e-9

struct policy {
    const char *name;
    const char *former_name; /* still accepted wherever users name a policy; NULL: none */
    const char *help;        /* one line for people */
    bool exclusive_gpus;     /* each task has its GPUs to itself as long as it runs */
    bool limits_slowdown;    /* it lets no task on a shared GPU take more than slowdown_max times as
                                long as alone, as far as it can predict that */
    bool longest_first;      /* the head of the queue is the task that takes longest, and the
                                shortest is backfilled first; else both go by the queue's order */

    /*
     * Chooses GPUs for the query's task.
     *
     * `ret_gpus`: room for task->request.gpus; with PLACE_NOW they are set, all different, the best
     *             first.
     * `ret_verdicts`: room for view->n_gpus; with PLACE_WAIT all considered ones are set; where the
     *                 query is unexplained, the reason may be another one, but never VERDICT_FITS
     *                 for one that does not fit.
     *
     * Contract:
     *   1. It reads nothing but the query: the same query has the same answer, whatever is noted in
     *      its outlooks.
     *   2. Time alone does not turn PLACE_WAIT into PLACE_NOW, but for tasks behind a reservation
     *      (the core asks again for them every 30 s) and for samples that become too old.
     *   3. A resident that allocates its known requirement does not turn PLACE_WAIT into PLACE_NOW.
     *   4. A change of an activity level does not turn PLACE_WAIT into PLACE_NOW, unless the level
     *      becomes known, unknown or 0, crosses conditions->smact_max, or falls above that by an
     *      ACTIVITY_STEP, with smact_sum_max. (It may change the order among GPUs that fit.) A rise
     *      of power or PCIe traffic does not either. Where tasks are starting, a fall of the level
     *      may turn it (starting.c).
     *   5. GPUs that are reserved for another task do not turn PLACE_WAIT into PLACE_NOW for a task
     *      of one GPU. For the head of the queue, or a task that was it, memory may count as taken
     *      that residents will still take if they were backfilled before it. Without such residents
     *      a task like the head waits with it, without being tried.
     *
     * By 2 to 4 the core skips the scheduling pass after most samples: apply_sample.c lists what a
     * sample must change to cause one. A policy that breaks them leaves tasks waiting beside free
     * GPUs.
     *
     * Returns PLACE_NOW or PLACE_WAIT.
     */
    enum placement_answer (*choose)(
        const struct placement_query *query, int *ret_gpus, struct verdict *ret_verdicts);

    /*
     * The place of a task in the order of preemption, in microseconds: the smaller comes first
     * (core/pass/preempt.c). NULL: its tasks neither preempt others nor are preempted.
     */
    int64_t (*rank)(const struct task *task, int64_t now_us);
    const char *rank_text; /* why the head is first, for `colloc show`; with `rank` only */

    /*
     * Chooses the order of the main queue where tasks preempt others (core/pass/preempt.c), and
     * the core looks ahead. NULL: the order is that of the ranks.
     *
     * Returns 0, also if no order was chosen (PLAN_NONE), or -ENOMEM.
     */
    int (*plan)(const struct core *core, int64_t now_us, struct queue_plan *ret_plan);

    /*
     * Reserves GPUs for the query's task, which is the head of the queue and has to wait:
     * backfill_reserve (policy/backfill.h). May be NULL: the policy knows no backfill, and the
     * tasks behind the head wait.
     *
     * `ret_gpus`: room for task->request.gpus: the GPUs on which it is predicted to start first.
     * `ret_start_us`: when that is, as predicted; START_UNKNOWN: it cannot be predicted.
     *
     * Returns false when too few GPUs can ever serve the task.
     */
    bool (*reserve)(const struct placement_query *query, int *ret_gpus, int64_t *ret_start_us);
};

#endif
