/* Event sets, in which nothing ever happens: enough for clients that insist on waiting. */
#include <stdlib.h>
#include <time.h>

#include "emulator/nvml_view.h"

struct nvmlEventSet_st {
    int nothing;
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

    nvmlReturn_t r = view_open_gpu(device, types, 0, &v);
    if (r != NVML_SUCCESS)
        return r;
    *types = 0;
    view_close(&v);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t device, unsigned long long types, nvmlEventSet_t set)
{
    struct view v;

    nvmlReturn_t r = view_open_gpu(device, set, 0, &v);
    if (r != NVML_SUCCESS)
        return r;
    view_close(&v);
    return types == 0 ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
}

nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t *data, unsigned timeout_ms)
{
    struct timespec wait = {timeout_ms / 1000, timeout_ms % 1000 * 1000000L};

    if (!set || !data)
        return NVML_ERROR_INVALID_ARGUMENT;
    nanosleep(&wait, NULL);
    return NVML_ERROR_TIMEOUT;
}

nvmlReturn_t nvmlEventSetWait(nvmlEventSet_t set, nvmlEventData_t *data, unsigned timeout_ms)
{
    return nvmlEventSetWait_v2(set, data, timeout_ms);
}
