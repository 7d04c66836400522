/* SPDX-License-Identifier: Apache-2.0 */
/* MIG compute instances as devices. A device has the number of its unit. One that was removed
 * leaves a gap in the numbers, as on a real GPU: a client has to try all indices up to the
 * maximum. */
#include "base/units.h"
#include "emulator/nvml_view.h"

nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned *current, unsigned *pending)
{
    struct view v;

    nvmlReturn_t r = view_open_gpu(device, pending ? current : NULL, 0, &v);
    if (r != NVML_SUCCESS)
        return r;
    *current = *pending = v.gpu->mig ? NVML_FEATURE_ENABLED : NVML_FEATURE_DISABLED;
    view_close(&v);
    return NVML_SUCCESS;
}

static unsigned most_instances(const struct view *v, unsigned index)
{
    return (unsigned)v->kind->compute_slices;
}

nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t device, unsigned *count)
{
    return give_number(view_open_gpu, device, 0, count, most_instances);
}

nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(
    nvmlDevice_t device, unsigned index, nvmlDevice_t *mig_device)
{
    struct view v;

    nvmlReturn_t r = view_open_gpu(device, mig_device, 0, &v);
    if (r != NVML_SUCCESS)
        return r;
    if (index >= most_instances(&v, 0))
        r = NVML_ERROR_INVALID_ARGUMENT;
    else if ((int)index + 1 >= v.gpu->unit_count || v.gpu->units[index + 1].state != UNIT_READY)
        r = NVML_ERROR_NOT_FOUND;
    else
        *mig_device = device_handle((struct seat){v.seat.gpu, (int)index + 1});
    view_close(&v);
    return r;
}

nvmlReturn_t nvmlDeviceGetDeviceHandleFromMigDeviceHandle(
    nvmlDevice_t mig_device, nvmlDevice_t *device)
{
    struct view v;

    nvmlReturn_t r = view_open_instance(mig_device, device, 0, &v);
    if (r != NVML_SUCCESS)
        return r;
    *device = device_handle((struct seat){v.seat.gpu, 0});
    view_close(&v);
    return NVML_SUCCESS;
}

static unsigned instance_number(const struct view *v, unsigned index)
{
    return (unsigned)v->unit->instance;
}

static unsigned is_instance(const struct view *v, unsigned index)
{
    return v->seat.unit != 0;
}

static unsigned compute_instance(const struct view *v, unsigned index)
{
    return (unsigned)v->unit->number;
}

nvmlReturn_t nvmlDeviceIsMigDeviceHandle(nvmlDevice_t device, unsigned *is_mig)
{
    return give_number(view_open, device, 0, is_mig, is_instance);
}

nvmlReturn_t nvmlDeviceGetGpuInstanceId(nvmlDevice_t device, unsigned *id)
{
    return give_number(view_open_instance, device, 0, id, instance_number);
}

nvmlReturn_t nvmlDeviceGetComputeInstanceId(nvmlDevice_t device, unsigned *id)
{
    return give_number(view_open_instance, device, 0, id, compute_instance);
}

nvmlReturn_t nvmlDeviceGetAttributes_v2(nvmlDevice_t device, nvmlDeviceAttributes_t *attributes)
{
    struct view v;

    nvmlReturn_t r = view_open_instance(device, attributes, 0, &v);
    if (r != NVML_SUCCESS)
        return r;
    const struct mig_profile *profile = unit_profile(v.gpu, v.unit);
    *attributes = (nvmlDeviceAttributes_t){
        .multiprocessorCount = (unsigned)(profile->sms * v.unit->slices / profile->compute_slices),
        .sharedCopyEngineCount = (unsigned)profile->compute_slices,
        .sharedDecoderCount = (unsigned)profile->compute_slices / 2,
        .gpuInstanceSliceCount = (unsigned)profile->compute_slices,
        .computeInstanceSliceCount = (unsigned)v.unit->slices,
        .memorySizeMB = (unsigned long long)(v.unit->total_bytes / MIB)};
    view_close(&v);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetAttributes(nvmlDevice_t device, nvmlDeviceAttributes_t *attributes)
{
    return nvmlDeviceGetAttributes_v2(device, attributes);
}
