/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver lists its GPUs when it starts, and again when some have come or gone (EVENT_GPUS). A
 * GPU is known by its UUID and keeps its index in the view for ever, so that the log can name GPUs
 * by index: a new one is appended, one that is no longer listed is lost and stays in the view.
 *
 *     GPUs a b          indices 0 1
 *     GPUs b c          index 0: a, lost; 1: b; 2: c
 */
#include "core/state/listed_gpus.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "core/kind_speed.h"
#include "core/memory_domain.h"
#include "core/state/residents.h"
#include "core/state/state.h"

/* Indices in the view by UUID: each in the slot of its hash, or in the next that was free. A
 * cluster lists thousands of GPUs. */
struct gpu_index {
    const struct cluster_view *view;
    int *slots; /* EMPTY: no GPU; at least one is */
    size_t n_slots;
};

enum { EMPTY = -1 };

/* The slot of the GPU, or the one for it. */
static int *find_slot(const struct gpu_index *index, const char *uuid)
{
    const struct gpu_view *gpus = index->view->gpus;
    int *slots = index->slots;
    size_t at = hash_text(HASH_START, uuid) % index->n_slots;
    while (slots[at] != EMPTY && strcmp(gpus[slots[at]].id.uuid, uuid) != 0)
        at = (at + 1) % index->n_slots;
    return &slots[at];
}

/* `most`: how many GPUs it will have. Returns 0 or -ENOMEM. */
static int index_gpus(struct gpu_index *index, const struct cluster_view *view, int most)
{
    *index = (struct gpu_index){.view = view, .n_slots = 2 * (size_t)most + 1};
    index->slots = malloc(index->n_slots * sizeof *index->slots);
    if (!index->slots)
        return -ENOMEM;
    for (size_t i = 0; i < index->n_slots; i++)
        index->slots[i] = EMPTY;
    for (int i = 0; i < view->n_gpus; i++)
        *find_slot(index, view->gpus[i].id.uuid) = i;
    return 0;
}

static void gpu_index_fini(struct gpu_index *index)
{
    free(index->slots);
}

static void set_distance(struct cluster_view *view, int a, int b, char distance)
{
    view->distances[a * view->n_gpus + b] = view->distances[b * view->n_gpus + a] = distance;
}

/* The distances of the list, which names GPUs in its own order. When memory is out they stay
 * unknown: they only order sets that are otherwise equal. */
static void set_distances(
    struct cluster_view *view, const struct gpu_index *index, const struct event *event)
{
    const struct gpu_identity *list = event->gpus.list;
    size_t size = (size_t)view->n_gpus * (size_t)view->n_gpus;
    bool any = false;
    for (int i = 0; i < event->gpus.n; i++)
        any |= *list[i].distances;
    free(view->distances);
    view->distances = any && view->n_gpus <= VIEW_DISTANCES_MAX ? malloc(size) : NULL;
    if (!view->distances)
        return;
    memset(view->distances, VIEW_DISTANCE_UNKNOWN, size);
    for (int i = 0; i < event->gpus.n; i++)
        for (int k = 0; k < i && list[i].distances[k]; k++)
            set_distance(view, *find_slot(index, list[i].uuid), *find_slot(index, list[k].uuid),
                list[i].distances[k]);
}

/* The health of a GPU that was listed again. */
static enum view_health health_as_listed(const struct gpu_view *gpu, bool keeps_samples)
{
    bool is_sound = gpu->health == VIEW_OK || gpu->health == VIEW_OUT_OF_USE;
    if (gpu->id.is_gone)
        return VIEW_LOST;
    if (!keeps_samples || !(is_sound || gpu->health == VIEW_FAULTY))
        return VIEW_UNSEEN;
    if (!is_sound)
        return gpu->health;
    return gpu->id.is_out_of_use ? VIEW_OUT_OF_USE : VIEW_OK;
}

/* Makes room for `most` GPUs. Returns 0 or -ENOMEM. */
static int reserve_gpus(struct core *core, int most)
{
    struct cluster_view *view = &core->view;
    struct gpu_view *gpus = realloc(view->gpus, (size_t)most * sizeof *gpus + 1);
    if (gpus)
        view->gpus = gpus;
    uint64_t *closed = realloc(core->closed, (size_t)most * sizeof *closed + 1);
    if (closed)
        core->closed = closed;
    struct head_outlook *outlooks = realloc(core->outlooks, (size_t)most * sizeof *outlooks + 1);
    if (outlooks)
        core->outlooks = outlooks;
    struct drain_outlook *drains = realloc(core->drain_outlooks, (size_t)most * sizeof *drains + 1);
    if (drains)
        core->drain_outlooks = drains;
    struct gpu_wanter *wanters = realloc(core->wanters, (size_t)most * sizeof *wanters + 1);
    if (wanters)
        core->wanters = wanters;
    double *open_bytes = realloc(view->open_bytes, (size_t)most * sizeof *open_bytes + 1);
    if (open_bytes)
        view->open_bytes = open_bytes;
    core->has_wanters = false;
    bool has_all = gpus && closed && outlooks && drains && wanters && open_bytes;
    return has_all && placement_reserve(&core->placement, most) == 0 ? 0 : -ENOMEM;
}

/* Takes over the list: known GPUs keep their indices, new ones are appended. */
static void list_gpus(
    struct cluster_view *view, const struct gpu_index *index, const struct event *event)
{
    for (int i = 0; i < view->n_gpus; i++)
        view->gpus[i].is_listed = false;
    for (int i = 0; i < event->gpus.n; i++) {
        int *slot = find_slot(index, event->gpus.list[i].uuid);
        if (*slot == EMPTY) {
            view->gpus[view->n_gpus] = (struct gpu_view){0};
            *slot = view->n_gpus++;
        }
        struct gpu_view *gpu = &view->gpus[*slot];
        gpu->id = event->gpus.list[i];
        gpu->is_listed = true;
        gpu->health = health_as_listed(gpu, event->gpus.keeps_samples);
    }
    for (int i = 0; i < view->n_gpus; i++)
        if (!view->gpus[i].is_listed)
            view->gpus[i].health = VIEW_LOST;
}

int core_apply_gpus(struct core *core, const struct event *event)
{
    struct cluster_view *view = &core->view;
    int most = view->n_gpus + event->gpus.n;
    CLEANUP(gpu_index_fini) struct gpu_index index = {0};
    if (reserve_gpus(core, most) < 0 || index_gpus(&index, view, most) < 0)
        return -ENOMEM;
    list_gpus(view, &index, event);
    set_distances(view, &index, event);
    if (memory_domain_link(view) < 0)
        return -ENOMEM;
    core->any_gone = false;
    view->is_mps_on_some = false;
    double largest = 0;
    for (int i = 0; i < view->n_gpus; i++) {
        const struct gpu_identity *id = &view->gpus[i].id;
        core_note_open(core, i);
        core->any_gone |= id->is_gone;
        view->has_nodes |= id->node != view->gpus[0].id.node;
        view->is_mps_on_some |= id->without_mps && id->is_place && !id->is_mig_instance;
        if ((double)id->mem_total_bytes > largest)
            largest = (double)id->mem_total_bytes;
    }
    view->mem_total_max_bytes = largest > 0 ? reading_of(largest) : READING_NONE;
    kind_speed_compare(view);
    return 0;
}
