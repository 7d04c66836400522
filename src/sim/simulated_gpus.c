/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulated GPUs and the speeds of the tasks on them. When a task begins or stops to compute on
 * some places, the rates change in three steps:
 *
 *   1. the measured mix, or else the interference model, gives each task the speed that each
 *      changed place allows it;
 *   2. a task's speed is that of its slowest place, which may also concern tasks that have other
 *      places elsewhere; on_speed_changed reports each task whose speed changed;
 *   3. activity and power are calculated again for the changed places and for each place of a task
 *      whose speed changed.
 *
 * Example: task A runs on places 0 and 1, and B joins on 1. Step 1 slows A on place 1; step 2 makes
 * A as slow on place 0; step 3 lowers the activity of place 0, where nothing else happened.
 */
#include "sim/simulated_gpus.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"

/* Speeds that differ by less are rounding errors (chosen: far below 1 us in a task of a day). */
#define SPEED_DIFFERENCE_MIN 1e-12

int simulated_gpus_init(
    struct simulated_gpus *gpus, const struct cluster *cluster, const struct gpu_constants *laws)
{
    *gpus = (struct simulated_gpus){.cluster = cluster, .laws = laws};
    gpus->places = calloc((size_t)cluster->n_places, sizeof *gpus->places);
    gpus->gpus = calloc((size_t)cluster->n_gpus, sizeof *gpus->gpus);
    if (!gpus->places || !gpus->gpus)
        return -ENOMEM;
    for (int i = 0; i < cluster->n_places; i++) {
        gpus->places[i].own_memory = (struct gpu_memory){
            .capacity_bytes = cluster->identities[i].mem_total_bytes,
            .linear = laws->linear_memory > 0};
        gpus->places[i].memory = &gpus->places[cluster->places[i].memory_place].own_memory;
    }
    for (int i = 0; i < cluster->n_gpus; i++)
        gpus->gpus[i].power_w = cluster->gpus[i]->idle_w;
    return 0;
}

void simulated_gpus_fini(struct simulated_gpus *gpus)
{
    for (int i = 0; gpus->places && i < gpus->cluster->n_places; i++) {
        gpu_memory_fini(&gpus->places[i].own_memory);
        free(gpus->places[i].residents);
    }
    free(gpus->places);
    free(gpus->gpus);
    free(gpus->sharers);
}

void simulated_gpus_account(struct simulated_gpus *gpus, int gpu, int64_t now_us)
{
    struct gpu_rates *rates = &gpus->gpus[gpu];
    double passed_s = (double)(now_us - rates->since_us) / (double)SECOND_US;
    rates->smact_s += rates->smact * passed_s;
    rates->energy_j += rates->power_w * passed_s;
    rates->since_us = now_us;
}

/* ---- rates ---- */

static struct sharer sharer_of(const struct running_task *task)
{
    return (struct sharer){.demand = task->demand, .mps = task->mps, .cap = task->cap};
}

static void list_sharers(struct simulated_gpus *gpus, const struct place *place)
{
    for (int k = 0; k < place->n_residents; k++)
        gpus->sharers[k] = sharer_of(place->residents[k].task);
}

static void solve_place(struct simulated_gpus *gpus, int i)
{
    const struct place_shape *shape = &gpus->cluster->places[i];
    interference_solve(&gpus->laws->interference, shape->sms, shape->bandwidth, gpus->sharers,
        gpus->places[i].n_residents);
}

/* ---- measured mixes ---- */

/* Adds the time of the mix that was there until now. */
static void count_mix(struct simulated_gpus *gpus, struct place *place, int64_t now_us)
{
    double passed_s = (double)(now_us - place->mixed_us) / (double)SECOND_US;
    place->mixed_us = now_us;
    if (place->n_mixed < 2)
        return;
    if (place->mix)
        gpus->mix_use->measured_s += passed_s;
    else
        gpus->mix_use->modelled_s += passed_s;
    if (place->missing_mix >= 0)
        gpus->mix_use->missing[place->missing_mix].simulated_s += passed_s;
}

static int by_mix_name(const void *one, const void *other)
{
    return strcmp((*(const struct place_resident *const *)one)->task->mix_name,
        (*(const struct place_resident *const *)other)->task->mix_name);
}

/* The residents by name, as a mix has them. Returns false if they can be in no measured mix: those
 * of instances, limited shares, services, and of both ways of sharing. */
static bool sort_residents(
    const struct simulated_gpus *gpus, int i, struct place_resident **ret_sorted)
{
    struct place *place = &gpus->places[i];
    if (gpus->cluster->places[i].sms < 1 || place->n_residents == 0 ||
        place->n_residents > MIX_TRAININGS_MAX)
        return false;
    for (int k = 0; k < place->n_residents; k++) {
        const struct running_task *task = place->residents[k].task;
        if (!task->mix_name || task->cap > 0 || task->mps != place->residents[0].task->mps)
            return false;
        ret_sorted[k] = &place->residents[k];
    }
    qsort(ret_sorted, (size_t)place->n_residents, sizeof *ret_sorted, by_mix_name);
    return true;
}

static void note_missing(
    struct simulated_gpus *gpus, struct place *place, const char *trainings, bool mps, bool crashed)
{
    double now_s = (double)place->mixed_us / (double)SECOND_US;
    place->missing_mix = mix_use_note_missing(gpus->mix_use, trainings, mps, crashed, now_s);
    if (place->missing_mix < 0)
        gpus->error = -ENOMEM;
}

/* Takes the speeds of the place's mix, if it was measured. */
static bool take_measured_speeds(struct simulated_gpus *gpus, int i, int64_t now_us)
{
    struct place *place = &gpus->places[i];
    struct place_resident *sorted[MIX_TRAININGS_MAX];
    const char *names[MIX_TRAININGS_MAX];
    char trainings[MIX_NAMES_SIZE];
    count_mix(gpus, place, now_us);
    place->mix = NULL;
    place->missing_mix = -1;
    place->n_mixed = place->n_residents;
    if (!sort_residents(gpus, i, sorted))
        return false;
    for (int k = 0; k < place->n_residents; k++)
        names[k] = sorted[k]->task->mix_name;
    if (!mix_join(names, place->n_residents, trainings))
        return false;
    const struct mix *mix = mixes_find(gpus->mixes, trainings, sorted[0]->task->mps);
    place->mix = mix && mix->speeds ? mix : NULL;
    if (!place->mix && place->n_residents > 1)
        note_missing(gpus, place, trainings, sorted[0]->task->mps, mix != NULL);
    for (int k = 0; place->mix && k < place->n_residents; k++)
        sorted[k]->speed = mix->speeds[k];
    return place->mix != NULL;
}

/* ---- the three steps ---- */

/* The speed of a sharer that the model has solved, as it is in truth. */
static double true_speed(
    const struct simulated_gpus *gpus, int i, const struct sharer *sharer, double factor)
{
    const struct place_shape *shape = &gpus->cluster->places[i];
    if (factor == 0 || factor == 1)
        return sharer->speed;
    double alone = interference_alone(
        &gpus->laws->interference, shape->sms, shape->bandwidth, sharer);
    return 1 / (alone + factor * (1 / sharer->speed - alone));
}

/* Step 1, for one place. */
static void update_place_speeds(struct simulated_gpus *gpus, int i, int64_t now_us)
{
    struct place *place = &gpus->places[i];
    place->outdated = true;
    if (gpus->mixes && take_measured_speeds(gpus, i, now_us))
        return;
    list_sharers(gpus, place);
    solve_place(gpus, i);
    for (int k = 0; k < place->n_residents; k++)
        place->residents[k].speed = true_speed(
            gpus, i, &gpus->sharers[k], place->residents[k].task->delay_factor);
}

static double speed_at(const struct place *place, const struct running_task *task)
{
    for (int k = 0; k < place->n_residents; k++)
        if (place->residents[k].task == task)
            return place->residents[k].speed;
    return 0;
}

static double kind_speed_at_place(const struct simulated_gpus *gpus, int place)
{
    return gpus->cluster->places[place].speed;
}

static void set_kind_speed(const struct simulated_gpus *gpus, struct running_task *task)
{
    task->slowest = INFINITY;
    for (int i = 0; i < task->n_places; i++)
        task->slowest = fmin(task->slowest, kind_speed_at_place(gpus, task->places[i]));
    task->kind_speed = task->reference_speed > 0 ? task->slowest / task->reference_speed : 1;
}

static double done_s(const struct running_task *task, int64_t now_us)
{
    double passed_s = (double)(now_us - task->since_us) / (double)SECOND_US;
    return task->kind_speed * task->speed * passed_s;
}

/* Step 2, for one task: it is as fast as on its slowest place. */
static void update_task_speed(
    struct simulated_gpus *gpus, struct running_task *task, int64_t now_us)
{
    double speed = 1;
    if (task->update == gpus->update)
        return;
    task->update = gpus->update;
    for (int i = 0; i < task->n_places; i++)
        speed = fmin(speed, speed_at(&gpus->places[task->places[i]], task) *
                                (kind_speed_at_place(gpus, task->places[i]) / task->slowest));
    if (fabs(speed - task->speed) < SPEED_DIFFERENCE_MIN)
        return;
    task->left_s -= done_s(task, now_us);
    task->since_us = now_us;
    task->speed = speed;
    for (int i = 0; i < task->n_places; i++)
        gpus->places[task->places[i]].outdated = true;
    gpus->on_speed_changed(gpus->context, task);
}

static double power_of_places(const struct simulated_gpus *gpus, int gpu)
{
    double sum_w = 0;
    for (int k = 0; k < gpus->cluster->n_places; k++)
        sum_w += gpus->cluster->places[k].gpu == gpu ? gpus->places[k].power_w : 0;
    return sum_w;
}

/* Step 3, for one place and its share of its GPU. */
static void update_activity(struct simulated_gpus *gpus, int i, int64_t now_us)
{
    struct place *place = &gpus->places[i];
    const struct place_shape *shape = &gpus->cluster->places[i];
    const struct gpu_kind *kind = gpus->cluster->gpus[shape->gpu];
    struct gpu_rates *rates = &gpus->gpus[shape->gpu];
    place->outdated = false;
    for (int k = 0; k < place->n_residents; k++) {
        const struct running_task *task = place->residents[k].task;
        gpus->sharers[k] = sharer_of(task);
        gpus->sharers[k].speed = task->speed * (task->slowest / shape->speed);
    }
    struct demand now = interference_activity(
        &gpus->laws->interference, shape->sms, shape->bandwidth, gpus->sharers, place->n_residents);
    if (place->mix && !isnan(place->mix->smact))
        now.smact = place->mix->smact;
    simulated_gpus_account(gpus, shape->gpu, now_us);
    rates->smact += now.smact - place->smact;
    place->smact = now.smact;
    place->power_w = now.power_w;
    double sum_w = shape->sms >= 1 ? now.power_w : power_of_places(gpus, shape->gpu);
    if (rates->n_residents == 0)
        rates->smact = 0; /* the sum of differences may leave a rounding error */
    rates->power_w = rates->n_residents ? gpu_kind_power_w(kind, fmax(rates->smact, 0), sum_w)
                                        : kind->idle_w;
    if (place->mix && !isnan(place->mix->power_w))
        rates->power_w = place->mix->power_w;
}

static void update_activity_if_outdated(struct simulated_gpus *gpus, int i, int64_t now_us)
{
    if (gpus->places[i].outdated)
        update_activity(gpus, i, now_us);
}

/* All three steps, after the residents of the task's places have changed. */
static void update_rates(
    struct simulated_gpus *gpus, const struct running_task *changed, int64_t now_us)
{
    gpus->update++;
    for (int i = 0; i < changed->n_places; i++)
        update_place_speeds(gpus, changed->places[i], now_us);
    for (int i = 0; i < changed->n_places; i++) {
        struct place *place = &gpus->places[changed->places[i]];
        for (int k = 0; k < place->n_residents; k++)
            update_task_speed(gpus, place->residents[k].task, now_us);
    }
    for (int i = 0; i < changed->n_places; i++) {
        struct place *place = &gpus->places[changed->places[i]];
        for (int k = 0; k < place->n_residents; k++) {
            const struct running_task *task = place->residents[k].task;
            for (int p = 0; p < task->n_places; p++)
                update_activity_if_outdated(gpus, task->places[p], now_us);
        }
        update_activity_if_outdated(gpus, changed->places[i], now_us);
    }
}

double simulated_gpus_speed_as(
    struct simulated_gpus *gpus, const struct running_task *task, const struct demand *demand)
{
    double speed = INFINITY;
    for (int i = 0; i < task->n_places; i++) {
        const struct place *place = &gpus->places[task->places[i]];
        list_sharers(gpus, place);
        for (int k = 0; k < place->n_residents; k++)
            if (place->residents[k].task == task)
                gpus->sharers[k].demand = *demand;
        solve_place(gpus, task->places[i]);
        for (int k = 0; k < place->n_residents; k++)
            if (place->residents[k].task == task)
                speed = fmin(
                    speed, gpus->sharers[k].speed * kind_speed_at_place(gpus, task->places[i]));
    }
    return speed / (task->reference_speed > 0 ? task->reference_speed : task->slowest);
}

void simulated_gpus_set_demand(struct simulated_gpus *gpus, struct running_task *task,
    const struct demand *demand, int64_t now_us)
{
    task->demand = *demand;
    update_rates(gpus, task, now_us);
}

/* ---- adding and removing tasks ---- */

static int reserve_resident(struct simulated_gpus *gpus, struct place *place)
{
    size_t wanted = (size_t)place->n_residents + 1;
    if (ARRAY_RESERVE(gpus->sharers, gpus->sharers_capacity, wanted) < 0)
        return -ENOMEM;
    return ARRAY_RESERVE(place->residents, place->capacity, wanted);
}

int simulated_gpus_add_task(struct simulated_gpus *gpus, struct running_task *task, int64_t now_us)
{
    task->speed = task->kind_speed = task->n_places == 0;
    task->since_us = now_us;
    if (task->n_places == 0) { /* it needs no GPU: nothing slows it */
        gpus->on_speed_changed(gpus->context, task);
        return 0;
    }
    set_kind_speed(gpus, task);
    for (int i = 0; i < task->n_places; i++)
        if (reserve_resident(gpus, &gpus->places[task->places[i]]) < 0)
            return -ENOMEM;
    for (int i = 0; i < task->n_places; i++) {
        struct place *place = &gpus->places[task->places[i]];
        place->residents[place->n_residents++] = (struct place_resident){.task = task};
        gpus->gpus[gpus->cluster->places[task->places[i]].gpu].n_residents++;
    }
    update_rates(gpus, task, now_us);
    return 0;
}

static bool remove_resident(struct place *place, const struct running_task *task)
{
    for (int k = 0; k < place->n_residents; k++) {
        if (place->residents[k].task != task)
            continue;
        place->n_residents--;
        memmove(&place->residents[k], &place->residents[k + 1],
            (size_t)(place->n_residents - k) * sizeof *place->residents);
        return true;
    }
    return false;
}

void simulated_gpus_stop_task(
    struct simulated_gpus *gpus, struct running_task *task, int64_t now_us)
{
    bool has_computed = false;
    for (int i = 0; i < task->n_places; i++) {
        if (!remove_resident(&gpus->places[task->places[i]], task))
            continue;
        gpus->gpus[gpus->cluster->places[task->places[i]].gpu].n_residents--;
        has_computed = true;
    }
    if (has_computed)
        task->left_s -= done_s(task, now_us);
    update_rates(gpus, task, now_us);
}

void simulated_gpus_remove_task(
    struct simulated_gpus *gpus, struct running_task *task, int64_t now_us)
{
    for (int i = 0; i < task->n_places; i++)
        gpu_memory_release(gpus->places[task->places[i]].memory, task->id);
    simulated_gpus_stop_task(gpus, task, now_us);
}
