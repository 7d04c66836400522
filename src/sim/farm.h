/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GPUs at work: who is on which place, how fast everyone is now, what every GPU has done and drawn
 * so far. Between two changes all rates are constant, so that nothing runs in between.
 */
#ifndef COLLOC_SIM_FARM_H
#define COLLOC_SIM_FARM_H

#include "sim/cluster.h"

/* A task at work. `places` and the fields before it are its owner's to fill; the others are the
 * farm's. */
struct job {
    uint64_t id;
    bool mps;
    double cap; /* of the SMs, of a client of MPS; 0: all */
    struct demand demand;
    const int *places; /* borrowed as long as it is there */
    int n_places;

    double left_s, speed; /* of the time it takes alone */
    int64_t since_us;     /* when left_s was right */
    int stamp;            /* scratch of the farm */
};

struct place {
    struct gpu_memory memory;
    struct seat {
        struct job *job;
        double speed; /* as far as this place allows */
    } * seats;
    int n_seats, room;
    double smact, power_w; /* now; of the place alone, and above an awake GPU */
    bool stale;            /* the rates above are to be computed anew */
};

struct farm {
    const struct cluster *cluster;
    const struct gpu_laws *laws;
    struct place *places;
    struct farm_gpu {
        double smact, power_w;    /* now */
        double smact_s, energy_j; /* so far */
        int n_seats;
        int64_t since_us;
    } * gpus;
    struct sharer *sharers; /* scratch */
    int sharers_room, stamp;

    /* The job's speed has changed; its left_s is of now. */
    void (*on_speed)(void *context, struct job *job);
    void *context;
};

/* 0 or -ENOMEM. Cluster and laws are borrowed. Ended by farm_fini either way. */
int farm_init(struct farm *farm, const struct cluster *cluster, const struct gpu_laws *laws);
void farm_fini(struct farm *farm);

/* The job begins to compute on its places, or stops and gives back its memory. 0 or -ENOMEM. */
int farm_join(struct farm *farm, struct job *job, int64_t now_us);
void farm_leave(struct farm *farm, struct job *job, int64_t now_us);

/* Counts what the GPU has done until now. */
void farm_account(struct farm *farm, int gpu, int64_t now_us);

#endif
