/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A placement policy: a pure function from the view and one task to GPUs for it, or to the reasons
 * why not. The core knows policies only through this struct; src/policy holds them.
 */
#ifndef COLLOC_CORE_POLICY_H
#define COLLOC_CORE_POLICY_H

#include "core/view.h"

/* What one GPU says to one task. */
enum verdict_kind {
    VERDICT_FITS,
    VERDICT_NOT_A_PLACE,  /* its MIG instances are */
    VERDICT_LOST,         /* the driver lost it */
    VERDICT_FAULTY,       /* memory errors, an Xid, clocks held down */
    VERDICT_NO_SAMPLE,    /* nothing recent is known of it */
    VERDICT_MIG_ONE_ONLY, /* a task of several GPUs cannot use instances */
    VERDICT_TAKEN,        /* `task` has it to itself */
    VERDICT_DRAINED,      /* kept free for `task`, which recovers */
    VERDICT_KEPT,         /* kept for `task`, which is first in line */
    VERDICT_HOLD_OFF,     /* `task` is still taking its memory */
    VERDICT_NOT_IDLE,     /* the task wants it to itself: `have` tasks of ours, `limit` processes of
                             others */
    VERDICT_FULL,         /* `have` tasks already */
    VERDICT_MEMORY_UNKNOWN,   /* the driver does not say how much is free */
    VERDICT_MEMORY_SHORT,     /* `have` bytes free, `limit` wanted */
    VERDICT_SMACT_UNKNOWN,    /* neither SMACT nor utilisation is known */
    VERDICT_SMACT_HIGH,       /* `have` over `limit` */
    VERDICT_UTILISATION_HIGH, /* the same by utilisation, where SMACT is not known */
    VERDICT_OTHER_MPS_USER,   /* `task` there is a client of another user's MPS server */
    VERDICT_ONE_PROCESS,      /* its compute mode lets one process in, and `task` (0: a process of
                                 others) has it */
    VERDICT_SLOWDOWN, /* somebody would take `have` times as long as alone, `limit` at most may be
                       */
    VERDICT_NO_GAIN   /* so little progress (`have` GPUs) would be gained by sharing; `limit` is
                         wanted */
};

struct verdict {
    enum verdict_kind kind;
    uint64_t task;
    double have, limit;
};

struct core_settings;

struct placement_query {
    const struct cluster_view *view;
    const struct conditions *conditions;
    const struct core_settings
        *settings; /* what SHARING_AUTO is decided by (core/share.h); NULL: as if by MPS */
    const struct task *task;
    const struct task *first; /* in line, that GPUs are kept for (gpu_view.kept_for); or NULL */
    int64_t now_us;
    bool idle_only;             /* an exclusive task, or one that recovers on GPUs of its own */
    double recovery_free_bytes; /* of one that recovers beside others: wanted on each GPU; otherwise
                                   0 */
    bool before_all;            /* it recovers: nothing is kept from it for the first in line */
};

/* 0 when placed; the positive answers say why not. */
enum placement_answer {
    PLACE_NOW = 0,
    PLACE_WAIT, /* not now: see the verdicts */
};

/* A mean of many equal readings may differ from them in its last digits: a limit of activity is
 * exceeded by more. */
#define POLICY_ROUNDING 1e-9

struct policy {
    const char *name;
    const char *help; /* one line for people */
    bool whole_gpus;  /* every task gets its GPUs to itself for life */

    /*
     * Picks query->task->request.gpus different GPUs into ret_gpus (best first) or, if the task has
     * to wait, says of each GPU what stands against it in ret_verdicts[view->n_gpus]. Reads nothing
     * but the query. Who has to wait still has to when residents take memory that they need, or a
     * level of activity changes but does not become 0 or pass conditions->smact_max: such a level
     * only orders those that fit. Nor does time alone let anybody in, but for whom GPUs are kept
     * from. PLACE_NOW or PLACE_WAIT.
     */
    enum placement_answer (*choose)(
        const struct placement_query *query, int *ret_gpus, struct verdict *ret_verdicts);

    /*
     * For a policy that lets tasks overtake, NULL for others. The query's task is first in line and
     * has to wait: picks into ret_gpus as many GPUs as it wants, those where by what is known it
     * can start first, and says when that is, as predicted (INT64_MAX: no telling). False when too
     * few can ever serve it.
     */
    bool (*keep)(const struct placement_query *query, int *ret_gpus, int64_t *ret_start_us);
};

#endif
