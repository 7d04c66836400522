/* SPDX-License-Identifier: Apache-2.0 */
/* Event sets. Xids are the only events here. The world stores the last Xid of each GPU and how many
 * there were; an event set stores the number up to which its client has been informed. So of
 * several Xids of one GPU between two waits the client gets the last, and Xids before the
 * registration are not reported. */
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "emulator/nvml_view.h"

struct nvmlEventSet_st {
    bool registered[GPUS_MAX];
    unsigned reported[GPUS_MAX]; /* how many Xids of the GPU the client has received or missed */
};

nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *set)
{
    if (!set)
        return NVML_ERROR_INVALID_ARGUMENT;
    *set = calloc(1, sizeof(**set));
    return *set ? NVML_SUCCESS : NVML_ERROR_MEMORY;
}

nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set)
{
    free(set);
    return set ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

nvmlReturn_t nvmlDeviceGetSupportedEventTypes(nvmlDevice_t device, unsigned long long *types)
{
    struct view v;

    nvmlReturn_t r = view_open_gpu(device, types, TROUBLE_NO_EVENTS, &v);
    if (r != NVML_SUCCESS)
        return r;
    *types = NVML_EVENT_XID;
    view_close(&v);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceRegisterEvents(
    nvmlDevice_t device, unsigned long long types, nvmlEventSet_t set)
{
    struct view v;

    nvmlReturn_t r = view_open_gpu(device, set, TROUBLE_NO_EVENTS, &v);
    if (r != NVML_SUCCESS)
        return r;
    set->registered[v.seat.gpu] = types & NVML_EVENT_XID;
    set->reported[v.seat.gpu] = v.gpu->xid_count;
    view_close(&v);
    return types & ~(unsigned long long)NVML_EVENT_XID ? NVML_ERROR_NOT_SUPPORTED : NVML_SUCCESS;
}

/* Returns true with the Xid of the first GPU that has a new one. */
static bool take_event(struct nvmlEventSet_st *set, struct world *world, nvmlEventData_t *data)
{
    for (int g = 0; g < world->gpu_count; g++) {
        const struct gpu *gpu = &world->gpus[g];
        if (!set->registered[g] || set->reported[g] == gpu->xid_count)
            continue;
        set->reported[g] = gpu->xid_count;
        *data = (nvmlEventData_t){.device = device_handle((struct seat){g, 0}),
            .eventType = NVML_EVENT_XID,
            .eventData = gpu->xid,
            .gpuInstanceId = NVML_NO_ID,
            .computeInstanceId = NVML_NO_ID};
        return true;
    }
    return false;
}

nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t *data, unsigned timeout_ms)
{
    const struct timespec pause = {.tv_nsec = 5000000};
    int64_t until_us = clock_monotonic_us() + timeout_ms * MS_US;
    struct world *world = session_world();

    if (!set || !data)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (!world)
        return NVML_ERROR_UNINITIALIZED;
    for (;;) {
        world_enter(world);
        bool taken = take_event(set, world, data);
        world_leave(world);
        if (taken)
            return NVML_SUCCESS;
        if (clock_monotonic_us() >= until_us)
            return NVML_ERROR_TIMEOUT;
        nanosleep(&pause, NULL);
    }
}

nvmlReturn_t nvmlEventSetWait(nvmlEventSet_t set, nvmlEventData_t *data, unsigned timeout_ms)
{
    return nvmlEventSetWait_v2(set, data, timeout_ms);
}
