/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulated GPUs: which tasks compute on which place, how fast each task is, and how much
 * activity and energy each GPU has summed up. Rates change only when a task begins or stops to
 * compute, so nothing is calculated in between.
 */
#ifndef COLLOC_SIM_SIMULATED_GPUS_H
#define COLLOC_SIM_SIMULATED_GPUS_H

#include "sim/cluster.h"
#include "sim/mixes.h"

/* A task that computes. The caller fills the first part; simulated_gpus.c fills the second. */
struct running_task {
    uint64_t id;
    bool mps;
    double cap; /* the fraction of the SMs that an MPS client may use; 0: all */
    struct demand demand;
    const int *places; /* borrowed until the task is removed */
    int n_places;
    double reference_speed; /* of the kind of GPU that left_s holds for; 0: its slowest place's */
    double delay_factor;    /* of its delay by others, over that of the laws; 0: as 1 */
    const char *mix_name;   /* of the training in measured mixes; NULL: it is in none */

    double left_s;     /* work left at since_us, in seconds of running alone */
    double speed;      /* 1: as fast as alone on its slowest place */
    double kind_speed; /* of its slowest place, relative to the reference */
    double slowest;    /* the speed of that place */
    int64_t since_us;  /* when left_s was right */
    int update;        /* the update that last calculated the speed */
};

/* A GPU, or a MIG compute instance of one. */
struct place {
    struct gpu_memory own_memory;
    struct gpu_memory *memory; /* own_memory, or that of the place that it shares memory with */
    struct place_resident {
        struct running_task *task;
        double speed; /* the speed that this place alone would allow */
    } * residents;
    int n_residents;
    size_t capacity;
    double smact;          /* now, as a fraction of the whole GPU */
    double power_w;        /* now, above that of a GPU in use without load */
    bool outdated;         /* smact and power_w must be calculated again */
    const struct mix *mix; /* the measured mix of its residents; or NULL */
    int missing_mix;       /* in mix_use.missing; -1: measured, or it cannot be */
    int n_mixed;           /* residents, since */
    int64_t mixed_us;
};

struct simulated_gpus {
    const struct cluster *cluster;
    const struct gpu_constants *laws;
    const struct mixes *mixes; /* measured ones, instead of the laws; or NULL */
    struct mix_use *mix_use;   /* to be filled where there are mixes */
    struct place *places;      /* by index of cluster->places */
    struct gpu_rates {
        double smact, power_w;    /* now */
        double smact_s, energy_j; /* from the start to since_us */
        int n_residents;
        int64_t since_us;
    } * gpus;
    struct sharer *sharers; /* scratch, room for the residents of the fullest place */
    size_t sharers_capacity;
    int update; /* counts updates, so that each task's speed is calculated once in each */
    int error;  /* -ENOMEM: a list of missing mixes is incomplete */

    /* Called when the task's speed has changed; its left_s is up to date then. */
    void (*on_speed_changed)(void *context, struct running_task *task);
    void *context;
};

/*
 * Prepares idle GPUs. `cluster` and `laws` are borrowed.
 *
 * Returns 0 or -ENOMEM; simulated_gpus_fini must follow in both cases.
 */
int simulated_gpus_init(
    struct simulated_gpus *gpus, const struct cluster *cluster, const struct gpu_constants *laws);
void simulated_gpus_fini(struct simulated_gpus *gpus);

/*
 * The task begins to compute on its places. Speeds of the task and of its co-residents change.
 *
 * Returns 0, or -ENOMEM with nothing changed.
 */
int simulated_gpus_add_task(struct simulated_gpus *gpus, struct running_task *task, int64_t now_us);

/* The task stops computing and keeps its memory. Its left_s is up to date then. */
void simulated_gpus_stop_task(
    struct simulated_gpus *gpus, struct running_task *task, int64_t now_us);

/* The same if it computes, and its memory is freed. */
void simulated_gpus_remove_task(
    struct simulated_gpus *gpus, struct running_task *task, int64_t now_us);

/* Changes the demand of a task that computes. */
void simulated_gpus_set_demand(struct simulated_gpus *gpus, struct running_task *task,
    const struct demand *demand, int64_t now_us);

/* Returns the speed that the task, which computes, would have with another demand beside its
 * co-residents: 1 is that of the task alone on the kind of GPU of its reference. */
double simulated_gpus_speed_as(
    struct simulated_gpus *gpus, const struct running_task *task, const struct demand *demand);

/* Adds the GPU's activity and energy since the last call to its smact_s and energy_j. */
void simulated_gpus_account(struct simulated_gpus *gpus, int gpu, int64_t now_us);

#endif
