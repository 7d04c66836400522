/* SPDX-License-Identifier: Apache-2.0 */
/* The settings of the core: which tasks come first, what limits them, what the driver can do. */
#ifndef COLLOC_CORE_SETTINGS_H
#define COLLOC_CORE_SETTINGS_H

#include "base/fault.h"
#include "core/policy.h"
#include "core/suspension.h"
#include "fairness/share_table.h"
#include "sharing/interference_constants.h"

/* Which of the users' tasks comes first (main_queue.c). */
enum queue_order {
    ORDER_FAIR, /* that of the user with the smaller usage per share */
    ORDER_FIFO, /* the oldest */
    QUEUE_ORDERS
};

/* What waits while a task that ran out of GPU memory waits for GPUs (pass/recovery.c). */
enum recovery_rule {
    RECOVERY_DRAIN,      /* its GPUs are drained; tasks start on the others */
    RECOVERY_STOP_QUEUE, /* no task of the queue starts, as in the dissertation's RAD-RM */
    RECOVERY_RULES
};

/* Limits of tasks that are limited, and in queues or running; 0: none. */
struct use_limits {
    int tasks, gpus;      /* a GPU that two tasks share counts twice */
    int64_t memory_bytes; /* of their requirements on all their GPUs together */
    int64_t usage_us;     /* GPU time charged (charges.c), within usage_window_us or decayed: beyond
                             it no task starts */
};

struct core_settings {
    const struct policy *policy; /* the default of tasks that name none */
    struct conditions conditions;
    int64_t window_us;               /* the monitoring window; the thesis: 90 s */
    enum window_statistic statistic; /* of activity over the window; the dissertation: the mean */
    int64_t settle_us;               /* memory that has not grown for this time has settled */
    int64_t settle_max_us;           /* the longest hold-off: GPUs closed to others for one task */
    int64_t decision_delay_us;       /* before a start on idle GPUs, and again before one on others
                                    (ask/queue_pause.c); 0: none */
    enum recovery_rule recovery;
    int64_t recovery_step_bytes; /* more free memory for each crash (thesis 7.2); 0: as in
                                        state/recovery_need.c */
    int recoveries_max;          /* starts after a GPU memory crash, per task */
    int requeues_max;            /* starts after ends that were not the task's fault, per task */
    double filler_smact;         /* a task with a higher expected SMACT nearly fills a GPU */
    int filler_percent;    /* such a task, beside other MPS clients, gets this share of the SMs, in
                            per cent; 0: all */
    bool mps_mem_limit;    /* limit an MPS client to its known requirement and the margin */
    bool can_suspend;      /* the driver of the core carries out EFFECT_SUSPEND, RESUME and MOVE */
    bool stays_on_gpus;    /* no task is moved, nor resumed on other GPUs than it had */
    bool carries_mps;      /* clients of MPS, too, by the library in their processes */
    bool neighbour_memory; /* with carries_mps: EFFECT_RELOCATE, and copies on other GPUs */
    bool can_pause;        /* EFFECT_PAUSE and CONTINUE */
    bool preload;          /* EFFECT_GRANT_MEMORY and DENY_MEMORY, and reports MEMORY_WAIT */
    bool preempt;          /* running tasks give way by priority and rank (core/pass/preempt.c) */
    bool make_room; /* a task is moved so that a waiting one can start (core/pass/make_room.c) */
    bool expires_elsewhere; /* another resource manager ends tasks at their time limit */
    bool look_ahead;        /* with preempt: the order of the queue is chosen by simulating several
                              (policy/lookahead.c) */
    bool backfill; /* tasks start before the head of the queue where that does not delay it */
    struct use_limits user_limits;    /* of each user */
    struct use_limits project_limits; /* of each project but "default" */
    struct host_resources host;       /* what tasks may have of the server together */
    int64_t suspend_unused_us; /* a task that has not used its GPUs for so long is suspended; 0: it
                                  is not */
    int64_t copies_max_bytes;  /* host memory of all suspended tasks (copy_share.h); 0: no limit */
    int64_t ranks_away_us;     /* ranks of NCCL come back so long after they were suspended */
    int64_t slot_us;           /* the time slot of tasks that take turns (core/pass/slots.c) */
    struct suspension_costs suspension_costs;
    int64_t service_hold_us; /* a service meets its target so long before a task joins it */
    bool is_calibrated;      /* sharing_constants are set; otherwise the built-in ones are used */
    struct interference_constants sharing_constants;
    double probe_share; /* of its time that a task is paused for probes (probe.h), at most; 0: there
                           are none */
    bool learns_delays; /* measured speeds correct the model (state/delays.c) */
    bool thins_out;     /* they show where too many share a GPU (state/crowding.c) */
    enum queue_order order;
    int64_t usage_half_life_us; /* of charges (charges.c); 0: nothing is charged */
    int64_t usage_window_us;    /* for limits of GPU time: charges within it; 0: decayed usage */
    const struct share_table *shares; /* copied with the settings; NULL: all users are equal */
};

/* The defaults of settings.def; no policy yet. */
struct core_settings core_settings_default(void);

/*
 * Checks settings that contradict each other, which no single value shows.
 *
 * Returns 0, or -EINVAL with the reason in the fault.
 */
int core_settings_check(const struct core_settings *settings, struct fault *fault);

/* "drain" and "stop-queue". */
extern const char *const recovery_rule_names[RECOVERY_RULES];

/* "fair" and "fifo". */
extern const char *const queue_order_names[QUEUE_ORDERS];
const char *queue_order_name(enum queue_order order);

#endif
