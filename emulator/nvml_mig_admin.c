/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Making and destroying MIG instances. The handle of a GPU instance, and that of a compute
 * instance, is a pointer into a table below. A GPU instance that has no compute instance is no MIG
 * device.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/units.h"
#include "emulator/gpu_list.h"
#include "emulator/nvml_view.h"
#include "sharing/mig_division.h"

/* Of a GPU instance, or of a unit: a compute instance. */
struct handle {
    int gpu, number;
};

static struct handle instances[GPUS_MAX][INSTANCES_MAX];
static struct handle computes[GPUS_MAX][UNITS_MAX];

static struct handle *handle_in(struct handle (*table)[UNITS_MAX], int gpu, int number)
{
    table[gpu][number] = (struct handle){gpu, number};
    return &table[gpu][number];
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

/* Opens a view of the handle's GPU. Any pointer may come: only one into the table is a handle. */
static nvmlReturn_t open_handle(
    struct handle (*table)[UNITS_MAX], const void *pointer, bool changes, struct view *ret_view)
{
    const struct handle *handle = pointer, *first = &table[0][0];

    if (!handle || handle < first || handle >= first + GPUS_MAX * UNITS_MAX || !handle->number)
        return NVML_ERROR_INVALID_ARGUMENT;
    return open_mig(device_handle((struct seat){handle->gpu, 0}), handle, changes, ret_view);
}

/* A GPU instance, while it exists. */
static nvmlReturn_t open_instance(
    const void *pointer, bool changes, struct view *ret_view, int *ret_number)
{
    nvmlReturn_t r = open_handle(instances, pointer, changes, ret_view);

    if (r != NVML_SUCCESS)
        return r;
    *ret_number = ((const struct handle *)pointer)->number;
    if (ret_view->gpu->instances[*ret_number].is_made)
        return NVML_SUCCESS;
    view_close(ret_view);
    return NVML_ERROR_NOT_FOUND;
}

static const struct mig_profile *profile_of_instance(const struct view *v, int number)
{
    return &v->kind->profiles[v->gpu->instances[number].profile];
}

static const struct mig_profile *profile_of(const struct view *v, unsigned id)
{
    return id < (unsigned)v->kind->n_profiles ? &v->kind->profiles[id] : NULL;
}

/* Writes the profile's members but for the version and the name. */
static void fill_profile(const struct view *v, unsigned id, nvmlGpuInstanceProfileInfo_t *ret_info)
{
    const struct mig_profile *profile = profile_of(v, id);
    int starts[MIG_MEMORY_SLICES_MAX];

    *ret_info = (nvmlGpuInstanceProfileInfo_t){.id = id,
        .sliceCount = (unsigned)profile->compute_slices,
        .instanceCount = (unsigned)mig_profile_starts(v->kind, profile, starts),
        .multiprocessorCount = (unsigned)profile->sms,
        .memorySizeMB = (unsigned long long)(profile->total_bytes / MIB)};
}

/* Opens a view of the GPU for a profile that it has. */
static nvmlReturn_t open_profile(
    nvmlDevice_t device, unsigned id, const void *out, struct view *ret_view)
{
    nvmlReturn_t r = open_mig(device, out, false, ret_view);

    if (r != NVML_SUCCESS)
        return r;
    if (profile_of(ret_view, id))
        return NVML_SUCCESS;
    view_close(ret_view);
    return id < NVML_GPU_INSTANCE_PROFILE_COUNT ? NVML_ERROR_NOT_SUPPORTED
                                                : NVML_ERROR_INVALID_ARGUMENT;
}

nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfo(
    nvmlDevice_t device, unsigned id, nvmlGpuInstanceProfileInfo_t *info)
{
    struct view v;

    nvmlReturn_t r = open_profile(device, id, info, &v);
    if (r != NVML_SUCCESS)
        return r;
    fill_profile(&v, id, info);
    view_close(&v);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfoV(
    nvmlDevice_t device, unsigned id, nvmlGpuInstanceProfileInfo_v2_t *info)
{
    struct view v;
    nvmlGpuInstanceProfileInfo_t seen;

    if (info && info->version != (sizeof(*info) | 2u << 24))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    nvmlReturn_t r = open_profile(device, id, info, &v);
    if (r != NVML_SUCCESS)
        return r;
    fill_profile(&v, id, &seen);
    info->id = seen.id;
    info->sliceCount = seen.sliceCount;
    info->instanceCount = seen.instanceCount;
    info->multiprocessorCount = seen.multiprocessorCount;
    info->memorySizeMB = seen.memorySizeMB;
    snprintf(info->name, sizeof(info->name), "MIG %s", profile_of(&v, id)->name);
    view_close(&v);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetGpuInstancePossiblePlacements_v2(
    nvmlDevice_t device, unsigned id, nvmlGpuInstancePlacement_t *placements, unsigned *count)
{
    struct view v;
    int starts[MIG_MEMORY_SLICES_MAX];

    nvmlReturn_t r = open_mig(device, count, false, &v);
    if (r != NVML_SUCCESS)
        return r;
    const struct mig_profile *profile = profile_of(&v, id);
    unsigned n = profile ? (unsigned)mig_profile_starts(v.kind, profile, starts) : 0;
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
    nvmlDevice_t device, unsigned id, nvmlGpuInstance_t *found, unsigned *count)
{
    struct view v;
    unsigned n = 0;

    nvmlReturn_t r = open_mig(device, found ? (const void *)count : NULL, false, &v);
    if (r != NVML_SUCCESS)
        return r;
    for (int i = 1; i < INSTANCES_MAX; i++)
        if (v.gpu->instances[i].is_made && v.gpu->instances[i].profile == (int)id)
            found[n++] = (nvmlGpuInstance_t)handle_in(instances, v.seat.gpu, i);
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
    if (!profile_of(&v, id)) {
        r = NVML_ERROR_INVALID_ARGUMENT;
    } else {
        int number = gpu_add_instance(v.gpu, (int)id, (int)placement->start);
        if (number < 0)
            r = NVML_ERROR_INSUFFICIENT_RESOURCES;
        else
            *instance = (nvmlGpuInstance_t)handle_in(instances, v.seat.gpu, number);
    }
    view_close(&v);
    return r;
}

nvmlReturn_t nvmlGpuInstanceGetInfo(nvmlGpuInstance_t instance, nvmlGpuInstanceInfo_t *info)
{
    struct view v;
    int number;

    nvmlReturn_t r = info ? open_instance(instance, false, &v, &number)
                          : NVML_ERROR_INVALID_ARGUMENT;
    if (r != NVML_SUCCESS)
        return r;
    const struct gpu_instance *seen = &v.gpu->instances[number];
    *info = (nvmlGpuInstanceInfo_t){
        .device = device_handle((struct seat){v.seat.gpu, 0}),
        .id = (unsigned)number,
        .profileId = (unsigned)seen->profile,
        .placement = {(unsigned)seen->start,
            (unsigned)profile_of_instance(&v, number)->memory_slices},
    };
    view_close(&v);
    return r;
}

/* One with compute instances cannot be destroyed. A unit that was taken away for a while goes with
 * it. */
nvmlReturn_t nvmlGpuInstanceDestroy(nvmlGpuInstance_t instance)
{
    struct view v;
    int number;

    nvmlReturn_t r = open_instance(instance, true, &v, &number);
    if (r != NVML_SUCCESS)
        return r;
    for (int u = 1; u < v.gpu->unit_count; u++)
        if (v.gpu->units[u].instance == number && v.gpu->units[u].state == UNIT_READY)
            r = NVML_ERROR_IN_USE;
    for (int u = 1; r == NVML_SUCCESS && u < v.gpu->unit_count; u++)
        if (v.gpu->units[u].instance == number)
            v.gpu->units[u].state = UNIT_GONE;
    if (r == NVML_SUCCESS)
        v.gpu->instances[number].is_made = false;
    view_close(&v);
    return r;
}

static bool in_use(const struct view *v, struct seat seat)
{
    for (int i = 0; i < v->world->process_end; i++)
        if (v->world->processes[i].present && process_sits_on(&v->world->processes[i], seat))
            return true;
    return false;
}

nvmlReturn_t nvmlComputeInstanceDestroy(nvmlComputeInstance_t compute)
{
    struct view v;

    nvmlReturn_t r = open_handle(computes, compute, true, &v);
    if (r != NVML_SUCCESS)
        return r;
    const struct seat seat = {v.seat.gpu, ((const struct handle *)(const void *)compute)->number};
    struct unit *unit = world_unit(v.world, seat);
    if (unit->state != UNIT_READY)
        r = NVML_ERROR_NOT_FOUND;
    else if (in_use(&v, seat))
        r = NVML_ERROR_IN_USE;
    else
        unit->state = UNIT_GONE;
    view_close(&v);
    return r;
}

/* ---- compute instances ---- */

/* Slices of NVML_COMPUTE_INSTANCE_PROFILE_1_SLICE and the others, by number. */
static const int compute_slices[] = {1, 2, 3, 4, 7, 8, 6};

/* Returns the slices of a profile that the GPU instance has, or 0. As `nvidia-smi mig -lcip` lists
 * them, an instance of four slices has no profile of three. */
static int slices_of(const struct mig_profile *profile, unsigned id)
{
    int slices = id < ARRAY_SIZE(compute_slices) ? compute_slices[id] : 0;
    bool is_odd = slices == 3 && profile->compute_slices == 4;
    return slices <= profile->compute_slices && !is_odd ? slices : 0;
}

nvmlReturn_t nvmlGpuInstanceGetComputeInstanceProfileInfo(nvmlGpuInstance_t instance, unsigned id,
    unsigned engine, nvmlComputeInstanceProfileInfo_t *info)
{
    struct view v;
    int number;

    nvmlReturn_t r = info ? open_instance(instance, false, &v, &number)
                          : NVML_ERROR_INVALID_ARGUMENT;
    if (r != NVML_SUCCESS)
        return r;
    const struct mig_profile *profile = profile_of_instance(&v, number);
    int slices = slices_of(profile, id);
    if (id >= NVML_COMPUTE_INSTANCE_PROFILE_COUNT ||
        engine >= NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_COUNT)
        r = NVML_ERROR_INVALID_ARGUMENT;
    else if (slices == 0)
        r = NVML_ERROR_NOT_SUPPORTED;
    else
        *info = (nvmlComputeInstanceProfileInfo_t){.id = id,
            .sliceCount = (unsigned)slices,
            .instanceCount = (unsigned)(profile->compute_slices / slices),
            .multiprocessorCount = (unsigned)(profile->sms * slices / profile->compute_slices)};
    view_close(&v);
    return r;
}

nvmlReturn_t nvmlGpuInstanceGetComputeInstances(
    nvmlGpuInstance_t instance, unsigned id, nvmlComputeInstance_t *found, unsigned *count)
{
    struct view v;
    int number;
    unsigned n = 0;

    nvmlReturn_t r = found && count ? open_instance(instance, false, &v, &number)
                                    : NVML_ERROR_INVALID_ARGUMENT;
    if (r != NVML_SUCCESS)
        return r;
    int slices = slices_of(profile_of_instance(&v, number), id);
    for (int u = 1; u < v.gpu->unit_count; u++) {
        const struct unit *unit = &v.gpu->units[u];
        if (unit->state == UNIT_READY && unit->instance == number && unit->slices == slices)
            found[n++] = (nvmlComputeInstance_t)handle_in(computes, v.seat.gpu, u);
    }
    *count = n;
    view_close(&v);
    return r;
}

nvmlReturn_t nvmlGpuInstanceCreateComputeInstance(
    nvmlGpuInstance_t instance, unsigned id, nvmlComputeInstance_t *compute)
{
    struct view v;
    int number;

    nvmlReturn_t r = compute ? open_instance(instance, true, &v, &number)
                             : NVML_ERROR_INVALID_ARGUMENT;
    if (r != NVML_SUCCESS)
        return r;
    int slices = slices_of(profile_of_instance(&v, number), id);
    struct unit *unit = slices ? gpu_add_compute(v.gpu, v.seat.gpu, number, slices) : NULL;
    if (unit) {
        int place = (int)(unit - v.gpu->units);
        snprintf(unit->uuid, sizeof(unit->uuid), "MIG-c0110cc0-e4a7-4a1e-9b0%x-%05x%07x",
            (unsigned)place, ++v.gpu->instances_made & 0xfffff, (unsigned)v.seat.gpu);
        *compute = (nvmlComputeInstance_t)handle_in(computes, v.seat.gpu, place);
    } else {
        r = slices ? NVML_ERROR_INSUFFICIENT_RESOURCES : NVML_ERROR_INVALID_ARGUMENT;
    }
    view_close(&v);
    return r;
}

static unsigned profile_of_slices(int slices)
{
    unsigned id = 0;

    while (id < ARRAY_SIZE(compute_slices) - 1 && compute_slices[id] != slices)
        id++;
    return id;
}

/* The emulator does not keep where a compute instance begins: they follow by their numbers. */
static unsigned first_slice(const struct gpu *gpu, const struct unit *unit)
{
    int slices = 0;

    for (int u = 1; u < gpu->unit_count; u++) {
        const struct unit *other = &gpu->units[u];
        if (other->state != UNIT_GONE && other->instance == unit->instance &&
            other->number < unit->number)
            slices += other->slices;
    }
    return (unsigned)slices;
}

nvmlReturn_t nvmlComputeInstanceGetInfo_v2(
    nvmlComputeInstance_t compute, nvmlComputeInstanceInfo_v2_t *info)
{
    struct view v;

    nvmlReturn_t r = info ? open_handle(computes, compute, false, &v) : NVML_ERROR_INVALID_ARGUMENT;
    if (r != NVML_SUCCESS)
        return r;
    const struct unit *unit = &v.gpu->units[((const struct handle *)(const void *)compute)->number];
    if (unit->state == UNIT_READY)
        *info = (nvmlComputeInstanceInfo_v2_t){
            .device = device_handle((struct seat){v.seat.gpu, 0}),
            .gpuInstance = (nvmlGpuInstance_t)handle_in(instances, v.seat.gpu, unit->instance),
            .id = (unsigned)unit->number,
            .profileId = profile_of_slices(unit->slices),
            .placement = {first_slice(v.gpu, unit), (unsigned)unit->slices},
        };
    else
        r = NVML_ERROR_NOT_FOUND;
    view_close(&v);
    return r;
}

nvmlReturn_t nvmlComputeInstanceGetInfo(
    nvmlComputeInstance_t compute, nvmlComputeInstanceInfo_t *info)
{
    nvmlComputeInstanceInfo_v2_t seen;

    nvmlReturn_t r = nvmlComputeInstanceGetInfo_v2(compute, info ? &seen : NULL);
    if (r == NVML_SUCCESS)
        *info = (nvmlComputeInstanceInfo_t){seen.device, seen.gpuInstance, seen.id, seen.profileId};
    return r;
}
