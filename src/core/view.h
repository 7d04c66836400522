/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The view of the GPUs: the core's data about each place for tasks (a whole GPU or a MIG instance).
 * Policies read it, only the core writes it.
 */
#ifndef COLLOC_CORE_VIEW_H
#define COLLOC_CORE_VIEW_H

#include <math.h>
#include <stddef.h>

#include "base/clock.h"
#include "base/reading.h"
#include "core/claim.h"
#include "core/residence.h"
#include "core/task.h"
#include "core/window.h"

/* GPUs of which the distances are known, and the distance of those of which it is not. */
enum { VIEW_DISTANCES_MAX = 64 };
#define VIEW_DISTANCE_UNKNOWN '~'

/* GPUs of one server; chosen: four times as many as the largest have. */
enum { NODE_INDEX_MAX = 64 };

/* What policies read of every GPU comes first, as in struct gpu_view. */
struct gpu_identity {
    int64_t mem_total_bytes; /* that tasks can have: without what NVIDIA's driver reserves */
    bool is_place;           /* false: a GPU of which the MIG instances are the places */
    bool is_mig_instance;    /* CUDA lets a process see one instance only */
    bool is_gone; /* NVIDIA's driver no longer has this MIG instance: no place until listed again */
    bool is_out_of_use; /* by the setting drain */
    bool one_process;   /* compute mode Exclusive_Process: admits several only as MPS clients */
    bool without_mps;   /* by the setting mps-gpus: its tasks are time-sliced */
    int power_limit_w;  /* that NVIDIA's driver keeps; 0: not known */
    int speed;          /* of training, in a unit that all GPUs share; 0: not known */
    int node; /* the server that it is in: the GPUs of a node follow one another in the view */
    int index_on_node; /* less than NODE_INDEX_MAX; only tasks over several nodes need it */
    int memory_domain; /* places of a node with the same number share their memory
                          (memory_domain.h); 0: its memory is its own */
    char name[64];
    char uuid[96];
    char label[16]; /* the index for people: "0", or "0:1" for a MIG instance */
    /* A character for each GPU before it in the list of the event: the larger, the farther that
     * is; "": not known. */
    char distances[VIEW_DISTANCES_MAX + 1];
    int device;         /* 1 + N of its /dev/nvidiaN; 0: not known */
    char near_cpus[96]; /* CPUs of its NUMA node: "0-15,64-79"; "": not known */
};

enum view_health {
    VIEW_UNSEEN, /* no valid sample yet */
    VIEW_OK,
    VIEW_LOST,       /* NVIDIA's driver reports it lost, or no longer lists it */
    VIEW_FAULTY,     /* it works, but gets no further task */
    VIEW_OUT_OF_USE, /* the same, as an administrator says */
};

/* Of a predicted start: later than every start that is known. */
#define START_UNKNOWN INT64_MAX

/* The tasks that a service on a GPU admits beside it (core/state/service.c). */
struct resident_service {
    bool is_service;
    bool is_open;     /* it has met its target for long enough; or has none */
    double headroom;  /* how many times as long its requests may take; INFINITY: without a target */
    int64_t until_us; /* how long the two are known */
};

/* The speed that a task on a GPU was promised (core/state/promise.c). */
struct resident_promise {
    double slowdown_max;     /* times as long as alone; 0: nothing is promised */
    int64_t opens_us;        /* no task may come beside it before */
    struct reading measured; /* how many times it takes now */
    int64_t until_us;        /* how long that is known */
};

/* A task on a GPU. What a test of admission reads of every resident comes first, as in struct
 * gpu_view. */
struct resident {
    enum residence residence;
    enum sharing sharing;
    int mps_clients;      /* its processes that are clients of MPS, as last listed */
    int samples_risen;    /* since it took more than a context; at most RISEN_SAMPLES_ENOUGH */
    uint64_t task, array; /* array: that the task is of; 0: none */
    int64_t since_us;
    uint64_t backfilled_before; /* the task that the GPU was reserved for then; 0: none */
    struct reading need_bytes;  /* the memory that it requires */
    struct reading mem_used_bytes;
    uint32_t uid;
    bool need_is_least;        /* it may require more: it ran out of memory with that */
    bool is_stopped;           /* it does not compute: paused, or about to leave */
    bool allocations_wait;     /* where memory is short, as far as is known
                                  (state/library_use.c) */
    bool is_inactive;          /* its processes have long not used the GPU, as last sampled */
    struct expectation expect; /* its SMACT: measured, once the task was alone there */
    int64_t empty_since_us;    /* since when readings show that it holds none; 0: they do not */
    int64_t ends_us;           /* by its time limit, at the latest; 0: it has none */
    struct core_user *user;    /* the core's, which charges it; NULL: none is charged */
    const int *places;         /* the GPUs that the task has; owned by the task */
    int gpus;                  /* how many, this one included */
    int thread_percent;        /* of the SMs; 0: no limit */
    double kind_speed;         /* as task->run->kind_speed */
    double level_bytes;        /* its memory when it last grew */
    int64_t grew_us;           /* when that was */
    int64_t held_us;      /* since when others are held off for it: its placement or appearance */
    double most_bytes;    /* the most that it was seen to hold; 0: none was seen */
    bool has_library;     /* the preloaded library was given to its processes, or is expected */
    int hooked, unhooked; /* its processes there with and without it, as last listed */
    int carried;          /* of the former: the carrier can take their memory away */
    struct resident_service service;
    struct resident_promise promise;
};

/* A suspended client of MPS. Its context has stayed on the GPU, and keeps a place among the clients
 * of the server; the task holds no GPU, and comes back only to this one. */
struct absent_client {
    uint64_t task;
    uint32_t uid;
    int mps_clients; /* its processes that are clients of MPS, as last listed */
};

/* The copy of a suspended task's memory, for which this GPU lends free memory (ask/neighbour.h). */
struct lent_copy {
    uint64_t task;
    double bytes;
    bool is_there; /* else it is on its way there */
};

/* Chosen: samples of a resident that has taken its memory which show how active it is. */
enum { RISEN_SAMPLES_ENOUGH = 3 };

/* What policies read of every GPU comes first: in a large cluster, a pass mostly waits for these
 * cache lines. */
struct gpu_view {
    enum view_health health;
    bool is_listed;         /* by the driver; not: it was taken out, or is set aside by a setting */
    bool is_choice_of_head; /* of reserved GPUs: one on which the head is predicted to start */
    int64_t sampled_us;     /* of the last valid sample */
    uint64_t claims[CLAIM_KINDS]; /* of tasks for which it is kept from others; 0: none */
    int next_in_domain; /* the distance to the next place that shares its memory, in a ring; 0: its
                           memory is its own (memory_domain.h) */
    int n_residents, n_absent, n_copies; /* of the lists below */
    struct reading mem_used_bytes;       /* of the memory domain */
    struct reading external_processes;   /* how many compute processes belong to no task */
    struct resident *residents;
    struct reading smact_level;       /* of the window: since mix_since_us, once seen long enough */
    struct reading utilisation_level; /* likewise; an upper bound of SMACT */
    struct gpu_identity id;
    int64_t granted_us; /* when an allocation that waited there last got its memory */
    struct absent_client *absent;
    struct lent_copy *copies; /* of tasks that are suspended on other GPUs */
    size_t residents_capacity, absent_capacity, copies_capacity;
    int64_t mix_since_us; /* since when the same tasks have been active there */
    struct window smact, utilisation;
    struct window power, pcie;                /* empty unless a setting limits them */
    struct reading power_level, pcie_level;   /* watts, bytes a second; as smact_level */
    struct reading unaccounted_when_reserved; /* gpu_view_unaccounted_bytes, then */
    int64_t accrued_us; /* until when its residents were charged (charges.c) */
    struct {            /* the last fault of an MPS client there, its own or a co-resident's */
        uint64_t task;  /* the first that ended; 0: none */
        uint32_t uid;
        int64_t at_us;
    } fault;
};

struct interference_constants;

struct cluster_view {
    struct gpu_view *gpus;
    double *open_bytes; /* of each: gpu_view_open_bytes; NULL: not noted */
    int n_gpus;
    struct reading mem_total_max_bytes; /* of the largest GPU of known size */
    char *distances;                    /* of each pair, n_gpus rows; NULL: not known */
    int last_placed;                    /* the GPU of the newest placement, or -1 */
    bool has_nodes;                     /* the GPUs are of more than one server */
    bool is_mps_on_some; /* the setting mps-gpus leaves out GPUs that a task of several may get */
    int speed_max;       /* of the fastest place; 0: speeds are not compared (kind_speed.c) */
    bool has_services;   /* a task has been a service, or has given way to one; without, residents
                          are not examined for it */
    bool has_promises;   /* a task has been promised a speed */
    int64_t reservation_start_us; /* predicted start of the head of the queue; or START_UNKNOWN */
    const struct interference_constants *constants; /* of this host; NULL: those built in */
};

/* The policies' settings. */
struct conditions {
    double smact_max;        /* the dissertation: 0.80 (section 6.2.2) */
    double smact_sum_max;    /* by MPS: of the level and a task's own; 0: smact_max alone counts */
    int64_t min_free_bytes;  /* for a task of unknown requirement; the dissertation: 5 GB */
    int64_t margin_bytes;    /* beyond the task's requirement; the dissertation: 2 GB */
    int64_t sample_valid_us; /* older samples count as none */
    int tasks_per_gpu_max;   /* 0: no limit */
    int starting_max; /* tasks on a GPU that have not shown their SM activity yet, and of which it
                         is not known, beside which the next may start (policy/starting.c); 0: no
                         task starts beside one whose memory has not settled */
    bool mps_users_together; /* MPS clients of several users may share a GPU: their servers take
                                turns */
    int server_power_max_w;  /* of all GPUs of a server together; 0: no limit (load_limits.c) */
    double power_max;        /* of a GPU that is shared: a part of its power limit; 0: no limit */
    int64_t pcie_max_bytes;  /* traffic of such a GPU, a second; 0: no limit */
    double slowdown_max;     /* of predictive: longest predicted time relative to alone */
};

/* The resident of a task. Returns NULL when the task is not on the GPU. */
struct resident *gpu_view_resident(const struct gpu_view *gpu, uint64_t task);

/* Writes why no further task starts on the GPU now. Returns `text`; NULL when nothing holds it. */
const char *gpu_view_explain_hold(const struct gpu_view *gpu, char *text, size_t size);

/* Returns how many clients of MPS its tasks are: at least one for each task that shares by MPS.
 * Suspended ones count, too. */
static inline int gpu_view_mps_clients(const struct gpu_view *gpu)
{
    int n = 0;
    for (int i = 0; i < gpu->n_residents; i++)
        if (gpu->residents[i].sharing == SHARING_MPS)
            n += gpu->residents[i].mps_clients > 1 ? gpu->residents[i].mps_clients : 1;
    for (int i = 0; i < gpu->n_absent; i++)
        n += gpu->absent[i].mps_clients;
    return n;
}

/* Returns the bytes of copies that lie on the GPU, or are on their way there. */
double gpu_view_copied_bytes(const struct gpu_view *gpu);
double gpu_view_coming_bytes(const struct gpu_view *gpu);

/* Has the task's context stayed on the GPU? */
static inline bool gpu_view_has_context(const struct gpu_view *gpu, uint64_t task)
{
    for (int i = 0; i < gpu->n_absent; i++)
        if (gpu->absent[i].task == task)
            return true;
    return false;
}

/* Has the GPU lent memory for the copy of the task's, or is about to? */
static inline bool gpu_view_has_copy(const struct gpu_view *gpu, uint64_t task)
{
    for (int i = 0; i < gpu->n_copies; i++)
        if (gpu->copies[i].task == task)
            return true;
    return false;
}

/* Would the GPU be idle but for the context of the suspended task? */
bool gpu_view_is_idle_but_for(const struct gpu_view *gpu, const struct task *task);

/* The newest resident of the GPU's memory domain that has not settled. Returns NULL when all have.
 */
const struct resident *gpu_view_unsettled(const struct gpu_view *gpu);

/* As gpu_view_is_idle, but for the residents of the GPU itself. */
bool gpu_view_is_idle_otherwise(const struct gpu_view *gpu);

/*
 * Is the GPU idle? No resident in its memory domain, no context of a suspended task, no external
 * process, and hardly any memory in use (memory that a crash left behind is not idle). Where
 * NVIDIA's driver lists no processes, utilisation has to be 0.
 *
 * Returns false for everything unknown.
 */
static inline bool gpu_view_is_idle(const struct gpu_view *gpu)
{
    return gpu->n_residents == 0 && gpu_view_is_idle_otherwise(gpu);
}

/* Chosen: imports and the first data of most trainings take less, and then they have a CUDA
 * context; a program that takes longer finds its memory later (docs/placement.md). */
#define UNUSED_US (120 * SECOND_US)

/* Has the resident held no memory for so long that it is hardly just starting? Then it computes
 * nothing either. Returns false for everything unknown. */
static inline bool resident_is_unused(const struct resident *resident, int64_t now_us)
{
    return resident->empty_since_us && now_us - resident->empty_since_us >= UNUSED_US;
}

/* Is the GPU as good as idle: all its residents are unused, and its activity is known to be none?
 * Returns false for everything unknown. */
bool gpu_view_is_unused(const struct gpu_view *gpu, int64_t now_us);

/* Does the GPU's memory domain hold external processes, or memory of unknown origin? It may never
 * become idle. */
bool gpu_view_is_used_externally(const struct gpu_view *gpu, int64_t settle_us);

/* Has the GPU tasks, or had some less than `settle_us` ago? Otherwise its power is not theirs. */
bool gpu_view_draws_for_tasks(const struct gpu_view *gpu, int64_t settle_us);

/* Returns the watts that a task is expected to draw there: all that the GPU may, if its activity is
 * not known. */
double gpu_view_expected_w(const struct gpu_view *gpu, const struct expectation *expect);

/* Does the task run on any kind of GPU? Most do: then no name is compared. */
static inline bool task_takes_any_kind(const struct task *task)
{
    return !task->request.gpu_kind && task->state != TASK_SUSPENDED;
}

/* Returns the GPU with this label or UUID, of `size` bytes; -1: there is none. */
int cluster_view_find(const struct cluster_view *view, const char *name, size_t size);

/* Is the GPU of one of the kinds that the task names? See cluster_view_is_of_kind. */
bool cluster_view_matches_kind(const struct cluster_view *view, int gpu, const struct task *task);

/*
 * Is the GPU of a kind on which the task may run? A task names kinds; a suspended task continues
 * only on the model that it was taken off: NVIDIA's driver restores no process on another. One
 * whose context has stayed on a GPU continues only there.
 */
static inline bool cluster_view_is_of_kind(
    const struct cluster_view *view, int gpu, const struct task *task)
{
    return task_takes_any_kind(task) || cluster_view_matches_kind(view, gpu, task);
}

/*
 * May the task ever run on the GPU? It has to be a place of the right kind, no MIG instance for a
 * task of several GPUs, and not smaller than what was declared. An estimate may be wrong: it rules
 * a GPU out only when enough larger ones exist.
 */
bool cluster_view_suits(const struct cluster_view *view, int gpu, const struct task *task);

/*
 * Is the GPU healthy, may the task ever run there, and does nothing keep it from the task?
 *
 * claims:    kinds of claims that would (claim.h)
 * set_aside: for each GPU, what keeps it from the task, 0: nothing; NULL: nothing on all
 */
static inline bool cluster_view_is_available(const struct cluster_view *view, int gpu,
    const struct task *task, unsigned claims, const uint64_t *set_aside)
{
    return view->gpus[gpu].health == VIEW_OK && !claims_any(view->gpus[gpu].claims, claims) &&
           !(set_aside && set_aside[gpu]) && cluster_view_suits(view, gpu, task);
}

/* Returns the UUID of the MIG instance that the task has, since it has one at most; "": it has
 * whole GPUs, or none. Borrowed from the view. */
const char *cluster_view_instance_of(const struct cluster_view *view, const struct task *task);

/* Returns how far two GPUs are from each other: the larger, the farther. */
static inline char cluster_view_distance(const struct cluster_view *view, int a, int b)
{
    return view->distances ? view->distances[a * view->n_gpus + b] : VIEW_DISTANCE_UNKNOWN;
}

/* Are there enough GPUs for the task that are as large as its requirement? */
bool cluster_view_has_enough_larger(const struct cluster_view *view, const struct task *task);

/* The last part of cluster_view_suits: is a GPU that is a place for the task large enough? */
static inline bool cluster_view_is_large_enough(
    const struct cluster_view *view, int gpu, const struct task *task)
{
    const struct need *need = &task->request.need;
    return need->kind < NEED_ESTIMATED || need->bytes <= view->gpus[gpu].id.mem_total_bytes ||
           (need->kind == NEED_ESTIMATED && !cluster_view_has_enough_larger(view, task));
}

/* Returns the index behind the last GPU of the node that begins with GPU `first`; all GPUs of one
 * server are one node. */
int cluster_view_node_end(const struct cluster_view *view, int first);

/* Returns the memory that the resident is known to need and has not taken yet. Without a reading of
 * its memory, it counts as having taken all once it has settled. */
double resident_outstanding_bytes(const struct resident *resident);

/* Returns the bytes in use that no resident of the memory domain is known to use, and no copy of a
 * suspended task. Not valid without a sample. */
struct reading gpu_view_unaccounted_bytes(const struct gpu_view *gpu);

/* Returns by how much the residents of the memory domain were last seen to use more than is in use
 * now: one of them has given memory back, and its own place has not been sampled since. Until then
 * it is not known how much of that it will take again. */
static inline double gpu_view_returned_bytes(const struct gpu_view *gpu)
{
    return fmax(0, -reading_assume(gpu_view_unaccounted_bytes(gpu), 0));
}

/* Chosen: over smact_max a level counts in such steps, so that not each sample that shows a little
 * less makes a scheduling pass; and above ACTIVITY_FULL a task would find no SM. Returns the step
 * that the level has reached; 1 on a full GPU. */
#define ACTIVITY_STEP 0.05
#define ACTIVITY_FULL 0.99
static inline double activity_step(double level)
{
    return level > ACTIVITY_FULL ? 1 : ACTIVITY_STEP * floor(level / ACTIVITY_STEP);
}

/* Returns the free bytes as sampled. Not valid without a sample. */
static inline struct reading gpu_view_free_bytes(const struct gpu_view *gpu)
{
    if (!gpu->mem_used_bytes.valid)
        return READING_NONE;
    return reading_of((double)gpu->id.mem_total_bytes - gpu->mem_used_bytes.value);
}

/*
 * Returns how many bytes a task can find free on the GPU, at most: INFINITY where it is idle, or
 * what is free is not known. A policy that compares a task with all GPUs of a large cluster reads
 * the view's list of these, which the core keeps, and of most GPUs nothing else.
 */
double gpu_view_open_bytes(const struct gpu_view *gpu);

/* False for a GPU that is not idle, as far as that is noted. */
static inline bool cluster_view_may_be_idle(const struct cluster_view *view, int gpu)
{
    return !view->open_bytes || isinf(view->open_bytes[gpu]);
}

#endif
