/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/places.h"

#include <stdio.h>
#include <string.h>

/* A search for the places of one group. */
struct search {
    const struct gpu_set *set;
    const struct bench_group *group;
    bool taken[BENCH_TASKS_MAX * 16]; /* instances, by their position in the set */
    char *why;
    size_t size;
};

static const char *gpus_of(const struct bench_group *group, int task)
{
    return *group->tasks[task].gpus ? group->tasks[task].gpus : group->gpu;
}

static const struct gpu_info *find_gpu(const struct gpu_set *set, const char *index, size_t size)
{
    for (size_t i = 0; i < set->count; i++)
        if (strlen(set->gpu[i].index) == size && memcmp(set->gpu[i].index, index, size) == 0)
            return &set->gpu[i];
    return NULL;
}

static bool has_room(const char *place, const char *uuid)
{
    return strlen(place) + 1 + strlen(uuid) < PLACE_SIZE;
}

/* The UUIDs of whole GPUs. */
static int find_gpus(struct search *search, const char *indices, char *place)
{
    *place = '\0';
    for (const char *at = indices; *at;) {
        size_t n = strcspn(at, ",");
        const struct gpu_info *gpu = find_gpu(search->set, at, n);
        if (!gpu)
            snprintf(search->why, search->size, "there is no GPU %.*s", (int)n, at);
        else if (!gpu->is_place)
            snprintf(search->why, search->size, "GPU %s: %s", gpu->index, gpu->why_not);
        else if (!has_room(place, gpu->uuid))
            snprintf(search->why, search->size, "too many GPUs for one task: %s", indices);
        if (!gpu || !gpu->is_place || !has_room(place, gpu->uuid))
            return PLACES_LACKING;
        if (*place)
            strcat(place, ",");
        strcat(place, gpu->uuid);
        at += n + (at[n] == ',');
    }
    return 0;
}

static bool suits(const struct search *search, size_t i, size_t card)
{
    const struct gpu_info *gpu = &search->set->gpu[i];
    return gpu->is_mig && gpu->is_place && gpu->parent == card &&
           strcmp(gpu->profile, search->group->profile) == 0;
}

static int say_too_few(struct search *search, const char *index, size_t card)
{
    int there = 0, needed = 0;
    for (size_t i = 0; i < search->set->count; i++)
        there += suits(search, i, card);
    for (int i = 0; i < search->group->n_tasks; i++)
        needed += strcmp(gpus_of(search->group, i), index) == 0;
    snprintf(search->why, search->size,
        "GPU %s has %d instance%s of %s, the group needs %d (`colloc mig` makes them)", index,
        there, there == 1 ? "" : "s", search->group->profile, needed);
    return PLACES_LACKING;
}

/* An instance that no task of the group has yet. */
static int find_instance(struct search *search, const char *index, char *place)
{
    const struct gpu_info *gpu = find_gpu(search->set, index, strlen(index));
    if (!gpu) {
        snprintf(search->why, search->size, "there is no GPU %s", index);
        return PLACES_LACKING;
    }
    size_t card = (size_t)(gpu - search->set->gpu);
    size_t most = sizeof search->taken / sizeof *search->taken;
    for (size_t i = 0; i < search->set->count && i < most; i++)
        if (suits(search, i, card) && !search->taken[i]) {
            search->taken[i] = true;
            snprintf(place, PLACE_SIZE, "%s", search->set->gpu[i].uuid);
            return 0;
        }
    return say_too_few(search, index, card);
}

int places_find(const struct gpu_set *set, const struct bench_group *group,
    char (*ret_places)[PLACE_SIZE], char *why, size_t size)
{
    struct search search = {.set = set, .group = group, .why = why, .size = size};
    int r = 0;
    for (int i = 0; r == 0 && i < group->n_tasks; i++)
        r = (group->sharing == BENCH_MIG ? find_instance : find_gpus)(
            &search, gpus_of(group, i), ret_places[i]);
    return r;
}
