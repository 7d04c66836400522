/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Making and destroying MIG instances. The handle of a GPU instance, and of the one compute
 * instance in it, is a pointer into the table of seats below. Profiles of compute instances are
 * numbered by their slices; only the one that takes the whole GPU instance is available.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/units.h"
#include "emulator/gpu_list.h"
#include "emulator/nvml_view.h"

static struct seat handles[GPUS_MAX][UNITS_MAX];

static struct seat *handle_of(struct seat seat)
{
    handles[seat.gpu][seat.unit] = seat;
    return &handles[seat.gpu][seat.unit];
}

/* A view of a MIG-enabled GPU, for root only when something is to change. */
static nvmlReturn_t open_mig(
    nvmlDevice_t device, const void *out, bool changes, struct view *ret_view)
{
    nvmlReturn_t r = view_open_gpu(device, out, 0, ret_view);

    if (r != NVML_SUCCESS)
        return r;
    if (changes && geteuid() != 0)
        r = NVML_ERROR_NO_PERMISSION;
    else if (!ret_view->gpu->mig)
        r = NVML_ERROR_NOT_SUPPORTED;
    if (r != NVML_SUCCESS)
        view_close(ret_view);
    return r;
}

/* Any pointer may come: only one into the table is an instance, and only while it exists. */
static nvmlReturn_t open_handle(const void *handle, bool changes, struct view *ret_view)
{
    const struct seat *seat = handle;
    const struct seat *first = &handles[0][0];

    if (!seat || seat < first || seat >= first + GPUS_MAX * UNITS_MAX || seat->unit == 0)
        return NVML_ERROR_INVALID_ARGUMENT;
    nvmlReturn_t r = open_mig(
        device_handle((struct seat){seat->gpu, 0}), handle, changes, ret_view);
    if (r != NVML_SUCCESS)
        return r;
    ret_view->seat = *seat;
    ret_view->unit = world_unit(ret_view->world, *seat);
    if (ret_view->unit->state == UNIT_GONE) {
        view_close(ret_view);
        return NVML_ERROR_NOT_FOUND;
    }
    return NVML_SUCCESS;
}

static const struct mig_profile *profile_of(const struct view *v, unsigned id)
{
    return id < (unsigned)v->kind->n_profiles ? &v->kind->profiles[id] : NULL;
}

nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfoV(
    nvmlDevice_t device, unsigned id, nvmlGpuInstanceProfileInfo_v2_t *info)
{
    struct view v;
    int starts[MIG_MEMORY_SLICES];

    nvmlReturn_t r = open_mig(device, info, false, &v);
    if (r != NVML_SUCCESS)
        return r;
    const struct mig_profile *profile = profile_of(&v, id);
    if (info->version != (sizeof(*info) | 2u << 24))
        r = NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    else if (!profile)
        r = NVML_ERROR_NOT_SUPPORTED;
    if (r == NVML_SUCCESS) {
        info->id = id;
        info->sliceCount = (unsigned)profile->compute_slices;
        info->instanceCount = (unsigned)mig_profile_starts(profile, starts);
        info->multiprocessorCount = (unsigned)profile->sms;
        info->memorySizeMB = (unsigned long long)(profile->total_bytes / MIB);
        snprintf(info->name, sizeof(info->name), "MIG %s", profile->name);
    }
    view_close(&v);
    return r;
}

nvmlReturn_t nvmlDeviceGetGpuInstancePossiblePlacements_v2(
    nvmlDevice_t device, unsigned id, nvmlGpuInstancePlacement_t *placements, unsigned *count)
{
    struct view v;
    int starts[MIG_MEMORY_SLICES];

    nvmlReturn_t r = open_mig(device, count, false, &v);
    if (r != NVML_SUCCESS)
        return r;
    const struct mig_profile *profile = profile_of(&v, id);
    unsigned n = profile ? (unsigned)mig_profile_starts(profile, starts) : 0;
    if (!profile)
        r = NVML_ERROR_INVALID_ARGUMENT;
    else if (placements && *count < n)
        r = NVML_ERROR_INSUFFICIENT_SIZE;
    for (unsigned i = 0; r == NVML_SUCCESS && placements && i < n; i++)
        placements[i] = (nvmlGpuInstancePlacement_t){
            (unsigned)starts[i], (unsigned)profile->memory_slices};
    *count = n;
    view_close(&v);
    return r;
}

nvmlReturn_t nvmlDeviceGetGpuInstances(
    nvmlDevice_t device, unsigned id, nvmlGpuInstance_t *instances, unsigned *count)
{
    struct view v;
    unsigned n = 0;

    nvmlReturn_t r = open_mig(device, instances ? (const void *)count : NULL, false, &v);
    if (r != NVML_SUCCESS)
        return r;
    for (int u = 1; u < v.gpu->unit_count; u++)
        if (v.gpu->units[u].state != UNIT_GONE && v.gpu->units[u].profile == (int)id)
            instances[n++] = (nvmlGpuInstance_t)handle_of((struct seat){v.seat.gpu, u});
    *count = n;
    view_close(&v);
    return r;
}

nvmlReturn_t nvmlDeviceCreateGpuInstanceWithPlacement(nvmlDevice_t device, unsigned id,
    const nvmlGpuInstancePlacement_t *placement, nvmlGpuInstance_t *instance)
{
    struct view v;

    nvmlReturn_t r = open_mig(device, placement ? (const void *)instance : NULL, true, &v);
    if (r != NVML_SUCCESS)
        return r;
    struct unit *unit = NULL;
    if (!profile_of(&v, id))
        r = NVML_ERROR_INVALID_ARGUMENT;
    else if (!(unit = gpu_add_instance(v.gpu, v.seat.gpu, (int)id, (int)placement->start)))
        r = NVML_ERROR_INSUFFICIENT_RESOURCES;
    if (unit) {
        int number = (int)(unit - v.gpu->units);
        unit->state = UNIT_EMPTY;
        snprintf(unit->uuid, sizeof(unit->uuid), "MIG-c0110cc0-e4a7-4a1e-9b0%x-%05x%07x",
            (unsigned)number, ++v.gpu->instances_made & 0xfffff, (unsigned)v.seat.gpu);
        *instance = (nvmlGpuInstance_t)handle_of((struct seat){v.seat.gpu, number});
    }
    view_close(&v);
    return r;
}

nvmlReturn_t nvmlGpuInstanceGetInfo(nvmlGpuInstance_t instance, nvmlGpuInstanceInfo_t *info)
{
    struct view v;

    nvmlReturn_t r = info ? open_handle(instance, false, &v) : NVML_ERROR_INVALID_ARGUMENT;
    if (r != NVML_SUCCESS)
        return r;
    *info = (nvmlGpuInstanceInfo_t){
        .device = device_handle((struct seat){v.seat.gpu, 0}),
        .id = (unsigned)v.seat.unit,
        .profileId = (unsigned)v.unit->profile,
        .placement = {(unsigned)v.unit->start,
            (unsigned)v.kind->profiles[v.unit->profile].memory_slices},
    };
    view_close(&v);
    return r;
}

static bool in_use(const struct view *v)
{
    for (int i = 0; i < v->world->process_end; i++)
        if (v->world->processes[i].present && process_sits_on(&v->world->processes[i], v->seat))
            return true;
    return false;
}

/* An instance in use can be neither made nor destroyed. */
static nvmlReturn_t change_state(const void *handle, enum unit_state from, enum unit_state to)
{
    struct view v;

    nvmlReturn_t r = open_handle(handle, true, &v);
    if (r != NVML_SUCCESS)
        return r;
    if (v.unit->state != from || in_use(&v))
        r = NVML_ERROR_IN_USE;
    else
        v.unit->state = to;
    view_close(&v);
    return r;
}

nvmlReturn_t nvmlGpuInstanceDestroy(nvmlGpuInstance_t instance)
{
    return change_state(instance, UNIT_EMPTY, UNIT_GONE);
}

nvmlReturn_t nvmlComputeInstanceDestroy(nvmlComputeInstance_t compute)
{
    return change_state(compute, UNIT_READY, UNIT_EMPTY);
}

nvmlReturn_t nvmlGpuInstanceGetComputeInstanceProfileInfo(nvmlGpuInstance_t instance, unsigned id,
    unsigned engine, nvmlComputeInstanceProfileInfo_t *info)
{
    struct view v;

    nvmlReturn_t r = info ? open_handle(instance, false, &v) : NVML_ERROR_INVALID_ARGUMENT;
    if (r != NVML_SUCCESS)
        return r;
    const struct mig_profile *profile = &v.kind->profiles[v.unit->profile];
    if (engine != 0 || id + 1 != (unsigned)profile->compute_slices)
        r = NVML_ERROR_NOT_SUPPORTED;
    else
        *info = (nvmlComputeInstanceProfileInfo_t){.id = id,
            .sliceCount = (unsigned)profile->compute_slices,
            .instanceCount = 1,
            .multiprocessorCount = (unsigned)profile->sms};
    view_close(&v);
    return r;
}

nvmlReturn_t nvmlGpuInstanceGetComputeInstances(
    nvmlGpuInstance_t instance, unsigned id, nvmlComputeInstance_t *instances, unsigned *count)
{
    struct view v;

    nvmlReturn_t r = instances && count ? open_handle(instance, false, &v)
                                        : NVML_ERROR_INVALID_ARGUMENT;
    if (r != NVML_SUCCESS)
        return r;
    bool whole = id + 1 == (unsigned)v.kind->profiles[v.unit->profile].compute_slices;
    *count = whole && v.unit->state == UNIT_READY;
    if (*count)
        instances[0] = (nvmlComputeInstance_t)handle_of(v.seat);
    view_close(&v);
    return r;
}

nvmlReturn_t nvmlGpuInstanceCreateComputeInstance(
    nvmlGpuInstance_t instance, unsigned id, nvmlComputeInstance_t *compute)
{
    if (!compute)
        return NVML_ERROR_INVALID_ARGUMENT;
    nvmlReturn_t r = change_state(instance, UNIT_EMPTY, UNIT_READY);
    if (r == NVML_SUCCESS)
        *compute = (nvmlComputeInstance_t)instance;
    return r == NVML_ERROR_IN_USE ? NVML_ERROR_INSUFFICIENT_RESOURCES : r;
}
