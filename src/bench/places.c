#include "bench/places.h"

#include <stdio.h>
#include <string.h>

static const struct gpu_info *find_gpu(const struct gpu_set *set, const char *index)
{
    for (size_t i = 0; i < set->count; i++)
        if (strcmp(set->gpu[i].index, index) == 0)
            return &set->gpu[i];
    return NULL;
}

static int find_instances(const struct gpu_set *set, const struct bench_group *group, size_t card,
    const char **ret_uuids, char *why, size_t size)
{
    int n = 0;
    for (size_t i = 0; i < set->count && n < group->n_tasks; i++) {
        const struct gpu_info *gpu = &set->gpu[i];
        if (gpu->is_mig && gpu->is_place && gpu->parent == card &&
            strcmp(gpu->profile, group->profile) == 0)
            ret_uuids[n++] = gpu->uuid;
    }
    if (n == group->n_tasks)
        return 0;
    snprintf(why, size,
        "GPU %s has %d instance%s of %s, the group needs %d (`colloc mig` makes them)", group->gpu,
        n, n == 1 ? "" : "s", group->profile, group->n_tasks);
    return PLACES_LACKING;
}

int places_find(const struct gpu_set *set, const struct bench_group *group, const char **ret_uuids,
    char *why, size_t size)
{
    const struct gpu_info *gpu = find_gpu(set, group->gpu);
    if (!gpu) {
        snprintf(why, size, "there is no GPU %s", group->gpu);
        return PLACES_LACKING;
    }
    if (group->sharing == BENCH_MIG)
        return find_instances(set, group, (size_t)(gpu - set->gpu), ret_uuids, why, size);
    if (!gpu->is_place) {
        snprintf(why, size, "GPU %s: %s", group->gpu, gpu->why_not);
        return PLACES_LACKING;
    }
    for (int i = 0; i < group->n_tasks; i++)
        ret_uuids[i] = gpu->uuid;
    return 0;
}
