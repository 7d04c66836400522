/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/farm.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

int farm_init(struct farm *farm, const struct cluster *cluster, const struct gpu_laws *laws)
{
    *farm = (struct farm){.cluster = cluster, .laws = laws};
    farm->places = calloc((size_t)cluster->n_places, sizeof *farm->places);
    farm->gpus = calloc((size_t)cluster->n_gpus, sizeof *farm->gpus);
    if (!farm->places || !farm->gpus)
        return -ENOMEM;
    for (int i = 0; i < cluster->n_places; i++)
        farm->places[i].memory = (struct gpu_memory){
            .capacity_bytes = cluster->places[i].capacity_bytes, .linear = laws->linear_memory > 0};
    for (int i = 0; i < cluster->n_gpus; i++)
        farm->gpus[i].power_w = cluster->gpus[i]->idle_w;
    return 0;
}

void farm_fini(struct farm *farm)
{
    for (int i = 0; farm->places && i < farm->cluster->n_places; i++) {
        gpu_memory_fini(&farm->places[i].memory);
        free(farm->places[i].seats);
    }
    free(farm->places);
    free(farm->gpus);
    free(farm->sharers);
}

void farm_account(struct farm *farm, int gpu, int64_t now_us)
{
    struct farm_gpu *g = &farm->gpus[gpu];
    double passed_s = (double)(now_us - g->since_us) / (double)SECOND_US;
    g->smact_s += g->smact * passed_s;
    g->energy_j += g->power_w * passed_s;
    g->since_us = now_us;
}

/* ---- speeds ---- */

static struct sharer sharer_of(const struct job *job)
{
    return (struct sharer){.demand = job->demand, .mps = job->mps, .cap = job->cap};
}

static void solve(struct farm *farm, int i)
{
    struct place *place = &farm->places[i];
    const struct place_shape *shape = &farm->cluster->places[i];
    for (int k = 0; k < place->n_seats; k++)
        farm->sharers[k] = sharer_of(place->seats[k].job);
    sharing_solve(
        &farm->laws->sharing, shape->sms, shape->bandwidth, farm->sharers, place->n_seats);
    for (int k = 0; k < place->n_seats; k++)
        place->seats[k].speed = farm->sharers[k].speed;
    place->stale = true;
}

static double speed_at(const struct place *place, const struct job *job)
{
    for (int k = 0; k < place->n_seats; k++)
        if (place->seats[k].job == job)
            return place->seats[k].speed;
    return 0;
}

/* A task on several GPUs is as fast as the slowest of them. */
static void refresh(struct farm *farm, struct job *job, int64_t now_us)
{
    double speed = 1;
    if (job->stamp == farm->stamp)
        return;
    job->stamp = farm->stamp;
    for (int i = 0; i < job->n_places; i++)
        speed = fmin(speed, speed_at(&farm->places[job->places[i]], job));
    if (fabs(speed - job->speed) < 1e-12)
        return;
    job->left_s -= job->speed * (double)(now_us - job->since_us) / (double)SECOND_US;
    job->since_us = now_us;
    job->speed = speed;
    for (int i = 0; i < job->n_places; i++)
        farm->places[job->places[i]].stale = true;
    farm->on_speed(farm->context, job);
}

/* What a place adds to its GPU, anew. */
static void rate(struct farm *farm, int i, int64_t now_us)
{
    struct place *place = &farm->places[i];
    const struct place_shape *shape = &farm->cluster->places[i];
    const struct gpu_kind *kind = farm->cluster->gpus[shape->gpu];
    struct farm_gpu *gpu = &farm->gpus[shape->gpu];
    place->stale = false;
    for (int k = 0; k < place->n_seats; k++) {
        const struct job *job = place->seats[k].job;
        farm->sharers[k] = sharer_of(job);
        farm->sharers[k].speed = job->speed;
    }
    struct demand now = sharing_activity(
        &farm->laws->sharing, shape->sms, shape->bandwidth, farm->sharers, place->n_seats);
    farm_account(farm, shape->gpu, now_us);
    gpu->smact += now.smact - place->smact;
    place->smact = now.smact;
    place->power_w = now.power_w;
    double sum_w = 0;
    if (shape->sms >= 1)
        sum_w = now.power_w;
    else
        for (int k = 0; k < farm->cluster->n_places; k++)
            sum_w += farm->cluster->places[k].gpu == shape->gpu ? farm->places[k].power_w : 0;
    gpu->power_w = gpu->n_seats ? fmin(kind->limit_w, kind->awake_w + sum_w) : kind->idle_w;
    if (gpu->n_seats == 0)
        gpu->smact = 0; /* what rounding left */
}

/* After who is where has changed on the job's places: everyone's speed there, and what the GPUs
 * then do. */
static void settle(struct farm *farm, const struct job *job, int64_t now_us)
{
    farm->stamp++;
    for (int i = 0; i < job->n_places; i++)
        solve(farm, job->places[i]);
    for (int i = 0; i < job->n_places; i++) {
        struct place *place = &farm->places[job->places[i]];
        for (int k = 0; k < place->n_seats; k++)
            refresh(farm, place->seats[k].job, now_us);
    }
    for (int i = 0; i < job->n_places; i++) {
        struct place *place = &farm->places[job->places[i]];
        for (int k = 0; k < place->n_seats; k++)
            for (int p = 0; p < place->seats[k].job->n_places; p++)
                if (farm->places[place->seats[k].job->places[p]].stale)
                    rate(farm, place->seats[k].job->places[p], now_us);
        if (place->stale)
            rate(farm, job->places[i], now_us);
    }
}

/* ---- coming and going ---- */

static int make_room(struct farm *farm, struct place *place)
{
    if (place->n_seats < place->room)
        return 0;
    int room = place->room ? place->room * 2 : 4;
    struct seat *seats = realloc(place->seats, (size_t)room * sizeof *seats);
    if (!seats)
        return -ENOMEM;
    place->seats = seats;
    place->room = room;
    if (room <= farm->sharers_room)
        return 0;
    struct sharer *sharers = realloc(farm->sharers, (size_t)room * sizeof *sharers);
    if (!sharers)
        return -ENOMEM;
    farm->sharers = sharers;
    farm->sharers_room = room;
    return 0;
}

int farm_join(struct farm *farm, struct job *job, int64_t now_us)
{
    job->speed = 0;
    job->since_us = now_us;
    for (int i = 0; i < job->n_places; i++)
        if (make_room(farm, &farm->places[job->places[i]]) < 0)
            return -ENOMEM;
    for (int i = 0; i < job->n_places; i++) {
        struct place *place = &farm->places[job->places[i]];
        place->seats[place->n_seats++] = (struct seat){.job = job};
        farm->gpus[farm->cluster->places[job->places[i]].gpu].n_seats++;
    }
    settle(farm, job, now_us);
    return 0;
}

static bool stand_up(struct place *place, const struct job *job)
{
    for (int k = 0; k < place->n_seats; k++) {
        if (place->seats[k].job != job)
            continue;
        place->n_seats--;
        memmove(&place->seats[k], &place->seats[k + 1],
            (size_t)(place->n_seats - k) * sizeof *place->seats);
        return true;
    }
    return false;
}

void farm_leave(struct farm *farm, struct job *job, int64_t now_us)
{
    for (int i = 0; i < job->n_places; i++) {
        struct place *place = &farm->places[job->places[i]];
        gpu_memory_release(&place->memory, job->id);
        if (stand_up(place, job))
            farm->gpus[farm->cluster->places[job->places[i]].gpu].n_seats--;
    }
    settle(farm, job, now_us);
}
