/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events: everything that ever happens to the core. Inputs tell what the world did, decisions what
 * the core decided; both change the state through core_apply, and all but samples and ticks are
 * written to the log.
 */
#ifndef COLLOC_CORE_EVENT_H
#define COLLOC_CORE_EVENT_H

#include "core/view.h"

/* Bytes and microseconds beyond it cannot be: who reads events refuses them. Sums of a few below do
 * not overflow. */
#define EVENT_NUMBER_MAX (INT64_C(1) << 60)

enum event_kind {
    /* inputs */
    EVENT_GPUS,   /* these are the GPUs now: known ones keep their index, absent ones count as lost,
                   * but may still   be at work: only those that are listed as gone are not */
    EVENT_SUBMIT, /* a task, in the main queue or held */
    EVENT_ESTIMATE,  /* what a pending task needs is known now, or that it cannot be (NEED_UNKNOWN)
                      */
    EVENT_SAMPLE,    /* of one GPU */
    EVENT_STARTED,   /* the attempt has a process; may be said again, after a restart */
    EVENT_UNSTARTED, /* the attempt never had one and never will: back to its queue */
    EVENT_EXITED,    /* the attempt's process tree has gone */
    EVENT_CANCEL,    /* somebody who may wants the task to end */
    EVENT_HOLD,
    EVENT_RELEASE,
    EVENT_TICK, /* nothing but time went by */
    /* decisions */
    EVENT_PLACE,  /* these GPUs are the task's */
    EVENT_EXPIRE, /* its time limit is over: told to end */
    EVENT_EVICT,  /* its MIG instance is gone: told to end, and then to go back to its queue */
    EVENT_EXTERNAL_SEEN, /* a process that is not ours has been seen beside it: an OOM now need not be its
                      own fault */
    EVENT_RECOVER,       /* it ran out of GPU memory beside others or under its own limit: into the
                      recovery queue */
    EVENT_REQUEUE, /* its GPU or MPS server failed it, or perhaps a neighbour did: back to its queue
                    */
    EVENT_END,     /* it is done, in this state */
    EVENT_KINDS
};

/* One GPU at one instant. */
struct core_sample {
    int gpu;
    bool lost;
    bool faulty; /* it answers, but no task should be put there */
    struct reading mem_used_bytes;
    struct reading smact;              /* 0..1 */
    struct reading utilisation;        /* 0..1 */
    struct reading external_processes; /* how many compute processes there are not ours */
    struct task_memory {
        uint64_t task;
        struct reading mem_used_bytes;
    } * tasks; /* of ours, as far as the driver tells; need not be complete */
    int n_tasks;
};

struct event {
    enum event_kind kind;
    int64_t time_us;
    uint64_t task; /* 0: of no task */
    union {
        struct {
            const struct gpu_identity *list;
            int n;
        } gpus;
        struct {
            uint32_t uid;
            bool held;
            struct task_request request;
        } submit;
        struct need estimate;
        struct core_sample sample;
        struct {
            bool by_streams; /* there was no MPS to be had */
        } started;
        struct task_exit exited;
        struct {
            const int *gpus;
            int n;
            bool exclusive;
            struct sharing_mode share;
        } place;
        enum task_state end;
    };
};

/* "SUBMIT", "PLACE", ...: stable, they stand in logs. And back: -EINVAL for no such name. */
const char *event_name(enum event_kind kind);
int event_parse_name(const char *name, enum event_kind *ret_kind);

#endif
