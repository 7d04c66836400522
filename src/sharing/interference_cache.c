/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table of solved mixes and their speeds. A mix has one slot, by its hash; a new mix replaces the
 * old one. The predictive policy solves 63,000 mixes while it schedules 90 tasks, most of them
 * again and again: with the table a simulation takes half the time.
 *
 * Each thread has a separate table of 336 KB, so that no lock is needed: `colloc sweep` simulates
 * in several threads. A result depends on its input only, so the callers stay pure: they cannot
 * observe what the table holds.
 */
#include "sharing/interference_cache.h"

#include <stdint.h>
#include <string.h>

/* Larger mixes are solved each time; there are few. */
enum { SHARERS_MAX = 8, SLOTS = 1024 };

/* All of a sharer that its speed depends on, without padding. */
struct input {
    double gract, smact, dram;
    double cap; /* below 0: not a client of MPS */
};

struct slot {
    int n; /* 0: empty */
    struct input inputs[SHARERS_MAX];
    double speeds[SHARERS_MAX];
};

static _Thread_local struct slot slots[SLOTS];
static _Thread_local struct interference_constants slots_constants; /* of all results in it */

static struct input input_of(const struct sharer *sharer)
{
    const struct demand *demand = &sharer->demand;
    return (struct input){
        demand->gract, demand->smact, demand->dram, sharer->mps ? sharer->cap : -1};
}

static uint64_t hash_of(const struct input *inputs, int n)
{
    const uint64_t golden = 0x9e3779b97f4a7c15u;
    const double *values = (const double *)inputs;
    uint64_t bits, hash = 0, factor = golden;
    for (int left = n * (int)(sizeof *inputs / sizeof *values); left > 0; left--, factor += 2) {
        memcpy(&bits, values++, sizeof bits);
        hash += (bits ^ bits >> 32) * factor;
    }
    return (hash ^ hash >> 32) * golden >> 32;
}

static void copy_speeds(const struct sharer *sharers, int n, double *ret_speeds)
{
    for (int i = 0; i < n; i++)
        ret_speeds[i] = sharers[i].speed;
}

static void fill_slot(struct slot *slot, const struct input *inputs, struct sharer *sharers, int n)
{
    interference_solve(&slots_constants, 1, 1, sharers, n);
    slot->n = n;
    memcpy(slot->inputs, inputs, (size_t)n * sizeof *inputs);
    copy_speeds(sharers, n, slot->speeds);
}

static bool are_same(const struct interference_constants *a, const struct interference_constants *b)
{
    return a->switch_cost == b->switch_cost && a->cold_cost == b->cold_cost &&
           a->launch_cost == b->launch_cost && a->weight_power == b->weight_power &&
           a->cache_cost == b->cache_cost && a->traffic_cost == b->traffic_cost &&
           a->streams_delay_log == b->streams_delay_log && a->mps_delay_log == b->mps_delay_log;
}

/* A scheduler keeps its constants until it is configured anew, so this is rare. */
static void use_constants(const struct interference_constants *constants)
{
    if (are_same(&slots_constants, constants))
        return;
    memset(slots, 0, sizeof slots);
    slots_constants = *constants;
}

void interference_speeds_cached(const struct interference_constants *constants,
    struct sharer *sharers, int n, double *ret_speeds)
{
    struct input inputs[SHARERS_MAX];
    if (n < 1)
        return;
    if (n > SHARERS_MAX) {
        interference_solve(constants, 1, 1, sharers, n);
        copy_speeds(sharers, n, ret_speeds);
        return;
    }
    use_constants(constants);
    for (int i = 0; i < n; i++)
        inputs[i] = input_of(&sharers[i]);
    struct slot *slot = &slots[hash_of(inputs, n) % SLOTS];
    if (slot->n != n || memcmp(slot->inputs, inputs, (size_t)n * sizeof *inputs) != 0)
        fill_slot(slot, inputs, sharers, n);
    for (int i = 0; i < n; i++)
        ret_speeds[i] = slot->speeds[i];
}
