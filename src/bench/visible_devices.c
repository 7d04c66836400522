/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the devices of a group: whole GPUs by their indices; for each task on MIG an instance of
 * its profile on its card that no other task of the group has. Devices are
 * named by UUID, since CUDA's indices differ from nvidia-smi's. */
#include "bench/visible_devices.h"

#include <stdio.h>
#include <string.h>

#include "base/array.h"

/* A search for the devices of one group. */
struct search {
    const struct gpu_set *set;
    const struct bench_group *group;
    bool taken[BENCH_TASKS_MAX * 16]; /* MIG instances, by position in the set */
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

static bool fits_list(const char *devices, const char *uuid)
{
    return strlen(devices) + 1 + strlen(uuid) < DEVICES_SIZE;
}

/* Lists the UUIDs of whole GPUs. */
static int find_gpus(struct search *search, const char *indices, char *devices)
{
    *devices = '\0';
    for (const char *at = indices; *at;) {
        size_t n = strcspn(at, ",");
        const struct gpu_info *gpu = find_gpu(search->set, at, n);
        if (!gpu)
            snprintf(search->why, search->size, "this machine has no GPU %.*s", (int)n, at);
        else if (!gpu->is_place)
            snprintf(search->why, search->size, "GPU %s: %s", gpu->index, gpu->why_not);
        else if (!fits_list(devices, gpu->uuid))
            snprintf(search->why, search->size, "too many GPUs for one task: %s", indices);
        if (!gpu || !gpu->is_place || !fits_list(devices, gpu->uuid))
            return DEVICES_MISSING;
        if (*devices)
            strcat(devices, ",");
        strcat(devices, gpu->uuid);
        at += n + (at[n] == ',');
    }
    return 0;
}

static bool is_wanted_instance(
    const struct search *search, size_t i, size_t card, const char *profile)
{
    const struct gpu_info *gpu = &search->set->gpu[i];
    return gpu->is_mig && gpu->is_place && gpu->parent == card &&
           strcmp(gpu->profile, profile) == 0;
}

static int report_too_few(
    struct search *search, const char *index, size_t card, const char *profile)
{
    int present = 0, needed = 0;
    for (size_t i = 0; i < search->set->count; i++)
        present += is_wanted_instance(search, i, card, profile);
    for (int i = 0; i < search->group->n_tasks; i++)
        needed += strcmp(gpus_of(search->group, i), index) == 0 &&
                  strcmp(search->group->tasks[i].profile, profile) == 0;
    snprintf(search->why, search->size,
        "GPU %s has %d instance%s of %s, the group needs %d (`colloc mig` creates them)", index,
        present, present == 1 ? "" : "s", profile, needed);
    return DEVICES_MISSING;
}

/* Chooses an instance that no other task of the group has. */
static int find_instance(
    struct search *search, const char *index, const char *profile, char *devices)
{
    const struct gpu_info *gpu = find_gpu(search->set, index, strlen(index));
    if (!gpu) {
        snprintf(search->why, search->size, "this machine has no GPU %s", index);
        return DEVICES_MISSING;
    }
    size_t card = (size_t)(gpu - search->set->gpu);
    size_t most = ARRAY_SIZE(search->taken);
    for (size_t i = 0; i < search->set->count && i < most; i++)
        if (is_wanted_instance(search, i, card, profile) && !search->taken[i]) {
            search->taken[i] = true;
            snprintf(devices, DEVICES_SIZE, "%s", search->set->gpu[i].uuid);
            return 0;
        }
    return report_too_few(search, index, card, profile);
}

int visible_devices_find(const struct gpu_set *set, const struct bench_group *group,
    char (*ret_devices)[DEVICES_SIZE], char *why, size_t size)
{
    struct search search = {.set = set, .group = group, .why = why, .size = size};
    int r = 0;
    for (int i = 0; r == 0 && i < group->n_tasks; i++) {
        const struct bench_task *task = &group->tasks[i];
        r = task->sharing == BENCH_MIG
                ? find_instance(&search, gpus_of(group, i), task->profile, ret_devices[i])
                : find_gpus(&search, gpus_of(group, i), ret_devices[i]);
    }
    return r;
}
