/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Follows MIG changes: reads the roster of each card again, and builds a new set when one differs.
 * Unchanged cards move to the new set with their state; of changed ones the devices that both sets
 * have, by UUID, keep their energy totals, health and activity. NVML stays open: the session moves,
 * too.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "gpu/query_cost.h"
#include "gpu/source.h"

/* Between two queries. Chosen: a new MIG instance is noticed within five seconds. */
#define ROSTER_LEAST_US SECOND_US
#define ROSTER_MOST_US  (5 * SECOND_US) /* chosen: a new MIG instance is seen within that */

/* Returns the position of the next card after `at`: a card's instances follow it. */
static size_t next_card(const struct gpu_set *set, size_t at)
{
    do {
        at++;
    } while (at < set->count && set->gpu[at].is_mig);
    return at;
}

static bool is_same(const struct gpu_set *set, size_t card, const struct roster *roster)
{
    const struct gpu_info *info = &set->gpu[card];
    size_t n = next_card(set, card) - card - 1;
    bool same = info->mig_mode == roster->mig_mode && info->compute_mode == roster->compute_mode &&
                n == roster->count;
    for (size_t i = 0; same && i < n; i++)
        same = strcmp(info[1 + i].uuid, roster->instance[i].uuid) == 0;
    return same;
}

/* A value that the driver does not report counts as unchanged. */
static bool has_changed(const struct gpu_source *source, size_t card, struct roster *ret_roster)
{
    nvml_device handle = source->device[card].handle;
    if (!handle)
        return false;
    roster_read(&source->nvml, handle, ret_roster);
    if (ret_roster->compute_mode == GPU_COMPUTE_UNKNOWN)
        ret_roster->compute_mode = source->info[card].compute_mode;
    return ret_roster->instances_known && !is_same(&source->set, card, ret_roster);
}

static size_t count_cards(const struct gpu_set *set)
{
    size_t n = 0;
    for (size_t i = 0; i < set->count; i = next_card(set, i))
        n++;
    return n;
}

/* An instance with another number has other counters. */
static void keep_gpm(struct gpu_source *to, size_t at, struct gpu_source *from, size_t was)
{
    struct gpm *mine = &to->device[at].gpm, *its = &from->device[was].gpm;
    if (!mine->device || !its->device || mine->gpu_instance != its->gpu_instance)
        return;
    struct gpm fresh = *mine;
    *mine = *its;
    *its = fresh;
}

static void keep_device(struct gpu_source *to, size_t at, struct gpu_source *from, size_t was)
{
    struct gpu_device *device = &to->device[at], *old = &from->device[was];
    device->energy = old->energy;
    device->trouble = old->trouble;
    device->process_time = old->process_time;
    keep_gpm(to, at, from, was);
}

static void keep_card(struct gpu_source *to, size_t at, struct gpu_source *from, size_t card)
{
    size_t end = next_card(&from->set, card);
    for (size_t i = at; i < to->set.count; i++) {
        if (to->gpm_interval_us)
            to->device[i].gpm.interval_min_us = to->gpm_interval_us;
        for (size_t was = card; was < end; was++)
            if (*to->info[i].uuid && strcmp(to->info[i].uuid, from->info[was].uuid) == 0)
                keep_device(to, i, from, was);
    }
}

/* An unchanged card, with all its instances. */
static void move_card(struct gpu_source *to, struct gpu_source *from, size_t card)
{
    size_t end = next_card(&from->set, card), parent = to->set.count;
    for (size_t i = card; i < end; i++) {
        size_t at = to->set.count++;
        to->info[at] = from->info[i];
        to->info[at].parent = from->info[i].is_mig ? parent : 0;
        to->device[at] = from->device[i];
        from->device[i].gpm = (struct gpm){0};
        from->device[i].processes = (struct process_cache){0};
        from->device[i].process_buffer = (struct process_buffer){0};
        from->device[i].time_buffer = (struct process_time_buffer){0};
    }
}

/* The NVML session and everything that lives as long as it. */
static void move_session(struct gpu_source *to, struct gpu_source *from)
{
    struct gpu_set set = to->set;
    struct gpu_info *info = to->info;
    struct gpu_device *device = to->device;
    struct gpu_source husk = {.set = from->set, .info = from->info, .device = from->device};
    *to = *from;
    to->set = set;
    to->set.source = to;
    to->info = info;
    to->device = device;
    memcpy(to->set.driver_version, husk.set.driver_version, sizeof husk.set.driver_version);
    *from = husk;
}

static struct gpu_source *make_source(const struct gpu_set *set)
{
    struct gpu_source *source = calloc(1, sizeof *source);
    if (source && gpu_source_allocate(source, count_cards(set)) == 0)
        return source;
    if (source) {
        free(source->info);
        free(source->device);
    }
    free(source);
    return NULL;
}

static int renew_set(struct gpu_set *set, struct gpu_set **ret_set)
{
    struct gpu_source *from = set->source, *to = make_source(set);
    struct roster roster;
    unsigned index = 0;
    if (!to)
        return -ENOMEM;
    struct nvml nvml = from->nvml;
    move_session(to, from);
    from->nvml = nvml; /* lent: has_changed still queries the cards through it */
    for (size_t card = 0; card < set->count; card = next_card(set, card), index++) {
        size_t at = to->set.count;
        if (has_changed(from, card, &roster)) {
            gpu_source_add_card(to, index, from->device[card].handle, &roster);
            keep_card(to, at, from, card);
        } else {
            move_card(to, from, card);
        }
    }
    for (size_t i = 0; i < set->count; i++)
        gpm_fini(&from->device[i].gpm, &nvml);
    from->nvml = (struct nvml){0};
    gpu_source_divide_gpm_share(to);
    gpu_source_watch_by_dcgm(to); /* without memory their activity is not known */
    *ret_set = &to->set;
    return GPU_SET_CHANGED;
}

bool gpu_set_is_outdated(struct gpu_set *set, bool at_once)
{
    struct gpu_source *source = set->source;
    struct roster roster;
    int64_t now_us = clock_monotonic_us(), began_us = clock_thread_us();
    bool changed = false;
    if (!at_once && now_us < source->roster_next_query_us)
        return false;
    for (size_t card = 0; card < set->count && !changed; card = next_card(set, card))
        changed = has_changed(source, card, &roster);
    int64_t rest_us = query_cost_pause_us(clock_thread_us() - began_us, ROSTER_LEAST_US);
    source->roster_next_query_us = now_us + (rest_us < ROSTER_MOST_US ? rest_us : ROSTER_MOST_US);
    return changed;
}

int gpu_set_renew(struct gpu_set *set, bool at_once, struct gpu_set **ret_set)
{
    return gpu_set_is_outdated(set, at_once) ? renew_set(set, ret_set) : 0;
}
