/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The data of the view: what the core knows of each place for tasks (a whole GPU or a MIG
 * instance), and of the tasks there. view.h has the questions about it.
 */
#ifndef COLLOC_CORE_VIEW_DATA_H
#define COLLOC_CORE_VIEW_DATA_H

#include <stddef.h>

#include "base/reading.h"
#include "core/claim.h"
#include "core/residence.h"
#include "core/suspension.h"
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

/* The speed that a task on a GPU was promised (core/state/promise.c), or that others have given way
 * for (core/state/crowding.c). */
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
    struct measured_smact { /* what expect.smact was last computed from (state/apply_sample.c) */
        double seen;        /* 0: it is to be computed */
        double launch_cost;
    } measured;
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
    struct resident *residents;          /* the newest last */
    int64_t mix_since_us;                /* since when the same tasks have been active there */
    struct reading smact_level;       /* of the window: since mix_since_us, once seen long enough */
    struct reading utilisation_level; /* likewise; an upper bound of SMACT */
    struct gpu_identity id;
    int64_t granted_us; /* when an allocation that waited there last got its memory */
    struct absent_client *absent;
    struct lent_copy *copies; /* of tasks that are suspended on other GPUs */
    size_t residents_capacity, absent_capacity, copies_capacity;
    struct window smact, utilisation;
    struct window power, pcie;                /* empty unless a setting limits them */
    struct reading power_level, pcie_level;   /* watts, bytes a second; as smact_level */
    struct reading unaccounted_when_reserved; /* gpu_view_unaccounted_bytes, then */
    int64_t accrued_us;                 /* until when its residents were charged (charges.c) */
    struct suspension_costs stop_costs; /* learned; not known: the machine's (core_stop_cost) */
    struct {           /* the last fault of an MPS client there, its own or a co-resident's */
        uint64_t task; /* the first that ended; 0: none */
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
    bool has_promises;   /* a task has been promised a speed, or was one too many by the speeds
                          measured */
    bool has_several_clients;     /* a resident has had several clients of MPS: each counts */
    int64_t reservation_start_us; /* predicted start of the head of the queue; or START_UNKNOWN */
    const struct interference_constants *constants; /* of this host; NULL: those built in */
};

#endif
