/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The view of the GPUs: what the core knows of each place a task can go (a whole GPU or a MIG
 * instance). Policies read it, only the core writes it.
 */
#ifndef COLLOC_CORE_VIEW_H
#define COLLOC_CORE_VIEW_H

#include "base/reading.h"
#include "core/task.h"
#include "core/window.h"

struct gpu_identity {
    int64_t mem_total_bytes;
    bool is_place;        /* false: a GPU whose MIG instances are the places */
    bool is_mig_instance; /* CUDA lets a process see one instance only */
    bool
        is_gone; /* a MIG instance that the driver has no more: no place until it is listed again */
    bool one_process; /* its compute mode is Exclusive_Process: several are let in only as clients
                         of one MPS server */
    char uuid[96];
    char label[16]; /* the index as people know it: "0", or "0:1" for a MIG instance */
    char name[64];
};

enum view_health {
    VIEW_UNSEEN, /* no valid sample yet */
    VIEW_OK,
    VIEW_LOST,   /* the driver says so, or it is no longer listed */
    VIEW_FAULTY, /* it works, but is not to be trusted with more */
};

/* A task on a GPU, and whether it has taken its memory there. */
struct resident {
    uint64_t task;
    uint32_t uid;
    int gpus;          /* that the task has, this one included */
    const int *places; /* which ones; the task's */
    enum sharing sharing;
    int thread_percent; /* 0: no limit */
    int64_t since_us;
    uint64_t backfilled_before; /* the task that the GPU was kept for when it came; 0: none */
    int64_t need_bytes;         /* 0: not known */
    struct expectation expect;  /* its SMACT: as seen while it was alone there, once it was */
    bool absent;                /* it was seen to have no memory there */
    bool shown;                 /* it has memory there, or had */
    bool risen;                 /* its memory went beyond what a bare CUDA context takes */
    bool settled;               /* and has stopped growing; or it was waited for long enough */
    double level_bytes;         /* memory when it last grew */
    int64_t grew_us;            /* when that was */
    int64_t held_us; /* since when others are held off for it: since it came, or showed up */
    struct reading mem_used_bytes;
};

/* What policies read of every GPU comes first: in a large cluster most of a pass is waiting for it.
 */
struct gpu_view {
    enum view_health health;
    int64_t sampled_us;     /* of the last valid sample */
    uint64_t exclusive_for; /* the task that has it to itself, or 0 */
    uint64_t drained_for;   /* the recovered task that it is kept free for, or 0 */
    uint64_t reserved_for;  /* the first task in line, which nobody may delay here, or 0 */
    struct reading mem_used_bytes;
    struct reading external_processes; /* compute processes that are not ours: how many */
    struct resident *residents;
    int n_residents, residents_room;
    struct reading smact_level; /* of the window, of this mix when it has been seen long enough */
    struct reading
        utilisation_level; /* likewise; an upper bound of SMACT where there is no SMACT */
    struct gpu_identity id;
    int64_t mix_since_us; /* since when the same tasks have been at work there */
    struct window smact, utilisation;
    struct {           /* the last fault of an MPS client there, its own or a neighbour's */
        uint64_t task; /* who fell first; 0: none */
        uint32_t uid;
        int64_t at_us;
    } fault;
};

struct cluster_view {
    struct gpu_view *gpus;
    int n_gpus;
    int64_t mem_total_max_bytes; /* of the largest GPU; 0: not known */
    int last_placed;             /* the GPU of the newest placement, or -1 */
    int64_t
        reservation_start_us; /* the predicted start of the task that GPUs are kept for; INT64_MAX: no
                              telling */
};

/* What policies ask for, as settings of the daemon or the simulator. */
struct conditions {
    double smact_max;        /* the thesis: 0.80 (section 6.2.2) */
    int64_t min_free_bytes;  /* when nothing is known of the task; the thesis: 5 GB */
    int64_t margin_bytes;    /* beyond what is known of it; the thesis: 2 GB */
    int64_t sample_valid_us; /* a sample older than that says nothing */
    int tasks_per_gpu_max;   /* 0: no limit */
    bool mps_users_together; /* clients of several users' MPS servers may share a GPU: their servers
                                take turns */
    double slowdown_max;     /* nobody is to take more times as long as alone, as predicted (policy
                                predictive) */
};

/* The resident of that task, or NULL. */
struct resident *gpu_view_resident(const struct gpu_view *gpu, uint64_t task);

/* The resident that is still taking its memory (the newest such), or NULL. */
const struct resident *gpu_view_unsettled(const struct gpu_view *gpu);

/*
 * Nobody at work there: no task of ours, no process of others and hardly any memory in use (what a
 * crash left behind is not idle). Where the driver does not list processes, no activity must stand
 * for it. What is not known is not idle.
 */
bool gpu_view_is_idle(const struct gpu_view *gpu);

/*
 * May the task ever run there, for what it is and how large: a place, no MIG instance for a task of
 * several GPUs, not smaller than what is declared. An estimate may be wrong: it rules a GPU out
 * only when there are enough larger ones.
 */
bool cluster_view_suits(const struct cluster_view *view, int gpu, const struct task *task);

/* What those residents are known to need who have no memory there yet: data may be loaded for long
 * before. */
double gpu_view_pending_bytes(const struct gpu_view *gpu);

/* Free memory as sampled. Not valid without a sample. */
static inline struct reading gpu_view_free_bytes(const struct gpu_view *gpu)
{
    if (!gpu->mem_used_bytes.valid)
        return READING_NONE;
    return reading_of((double)gpu->id.mem_total_bytes - gpu->mem_used_bytes.value);
}

#endif
