/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads NVML by name tables: functions that must exist, functions that may be missing in old
 * drivers, and process lists, which exist in up to three versions with different entry sizes.
 */
#include "gpu/nvml.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "gpu/gpu.h"

struct symbol {
    size_t offset; /* of the function pointer in struct nvml */
    const char *name;
};

#define SYMBOL(member, name)                                                                       \
    {                                                                                              \
        offsetof(struct nvml, member), name                                                        \
    }

static const struct symbol required[] = {
    SYMBOL(init, "nvmlInit_v2"),
    SYMBOL(shutdown, "nvmlShutdown"),
    SYMBOL(device_count, "nvmlDeviceGetCount_v2"),
    SYMBOL(device_by_index, "nvmlDeviceGetHandleByIndex_v2"),
    SYMBOL(device_uuid, "nvmlDeviceGetUUID"),
};

static const struct symbol optional[] = {
    SYMBOL(error_string, "nvmlErrorString"),
    SYMBOL(driver_version, "nvmlSystemGetDriverVersion"),
    SYMBOL(device_name, "nvmlDeviceGetName"),
    SYMBOL(device_pci, "nvmlDeviceGetPciInfo_v3"),
    SYMBOL(device_minor, "nvmlDeviceGetMinorNumber"),
    SYMBOL(device_compute_mode, "nvmlDeviceGetComputeMode"),
    SYMBOL(device_compute_capability, "nvmlDeviceGetCudaComputeCapability"),
    SYMBOL(device_cores, "nvmlDeviceGetNumGpuCores"),
    SYMBOL(device_attributes, "nvmlDeviceGetAttributes_v2"),
    SYMBOL(common_ancestor, "nvmlDeviceGetTopologyCommonAncestor"),
    SYMBOL(p2p_status, "nvmlDeviceGetP2PStatus"),
    SYMBOL(nvlink_state, "nvmlDeviceGetNvLinkState"),
    SYMBOL(nvlink_remote, "nvmlDeviceGetNvLinkRemotePciInfo_v2"),
    SYMBOL(cpu_affinity, "nvmlDeviceGetCpuAffinity"),
    SYMBOL(persistence_mode, "nvmlDeviceGetPersistenceMode"),
    SYMBOL(device_mig_mode, "nvmlDeviceGetMigMode"),
    SYMBOL(device_max_mig, "nvmlDeviceGetMaxMigDeviceCount"),
    SYMBOL(device_mig_by_index, "nvmlDeviceGetMigDeviceHandleByIndex"),
    SYMBOL(device_gpu_instance, "nvmlDeviceGetGpuInstanceId"),
    SYMBOL(gpu_profile, "nvmlDeviceGetGpuInstanceProfileInfoV"),
    SYMBOL(gpu_placements, "nvmlDeviceGetGpuInstancePossiblePlacements_v2"),
    SYMBOL(gpu_instances, "nvmlDeviceGetGpuInstances"),
    SYMBOL(gpu_instance_create, "nvmlDeviceCreateGpuInstanceWithPlacement"),
    SYMBOL(gpu_instance_info, "nvmlGpuInstanceGetInfo"),
    SYMBOL(gpu_instance_destroy, "nvmlGpuInstanceDestroy"),
    SYMBOL(compute_profile, "nvmlGpuInstanceGetComputeInstanceProfileInfo"),
    SYMBOL(compute_instances, "nvmlGpuInstanceGetComputeInstances"),
    SYMBOL(compute_instance_create, "nvmlGpuInstanceCreateComputeInstance"),
    SYMBOL(compute_instance_destroy, "nvmlComputeInstanceDestroy"),
    SYMBOL(memory_v2, "nvmlDeviceGetMemoryInfo_v2"),
    SYMBOL(memory, "nvmlDeviceGetMemoryInfo"),
    SYMBOL(utilization, "nvmlDeviceGetUtilizationRates"),
    SYMBOL(power, "nvmlDeviceGetPowerUsage"),
    SYMBOL(power_limit, "nvmlDeviceGetEnforcedPowerLimit"),
    SYMBOL(energy, "nvmlDeviceGetTotalEnergyConsumption"),
    SYMBOL(temperature, "nvmlDeviceGetTemperature"),
    SYMBOL(clock, "nvmlDeviceGetClockInfo"),
    SYMBOL(process_utilization, "nvmlDeviceGetProcessUtilization"),
    SYMBOL(ecc_errors, "nvmlDeviceGetTotalEccErrors"),
    SYMBOL(remapped_rows, "nvmlDeviceGetRemappedRows"),
    SYMBOL(retirement_pending, "nvmlDeviceGetRetiredPagesPendingStatus"),
    SYMBOL(clock_reasons, "nvmlDeviceGetCurrentClocksThrottleReasons"),
    SYMBOL(event_set_create, "nvmlEventSetCreate"),
    SYMBOL(event_set_free, "nvmlEventSetFree"),
    SYMBOL(device_event_types, "nvmlDeviceGetSupportedEventTypes"),
    SYMBOL(device_register_events, "nvmlDeviceRegisterEvents"),
    SYMBOL(event_set_wait, "nvmlEventSetWait_v2"),
    SYMBOL(gpm_support, "nvmlGpmQueryDeviceSupport"),
    SYMBOL(gpm_sample_alloc, "nvmlGpmSampleAlloc"),
    SYMBOL(gpm_sample_free, "nvmlGpmSampleFree"),
    SYMBOL(gpm_sample_get, "nvmlGpmSampleGet"),
    SYMBOL(gpm_mig_sample_get, "nvmlGpmMigSampleGet"),
    SYMBOL(gpm_metrics_get, "nvmlGpmMetricsGet"),
};

static const struct symbol process_lists[] = {
    SYMBOL(compute_processes, "nvmlDeviceGetComputeRunningProcesses"),
    SYMBOL(graphics_processes, "nvmlDeviceGetGraphicsRunningProcesses"),
    SYMBOL(mps_processes, "nvmlDeviceGetMPSComputeRunningProcesses"),
};

static bool find_function(struct nvml *nvml, size_t offset, const char *name)
{
    void *function = dlsym(nvml->library, name);
    memcpy((char *)nvml + offset, &function, sizeof function);
    return function != NULL;
}

static bool has_function(const struct nvml *nvml, const char *name)
{
    return dlsym(nvml->library, name) != NULL;
}

/*
 * Drivers 535.43 to 535.86 appended a fourth field to the entries of _v3, later ones took it back.
 * Those drivers are the ones with the confidential-computing query but not yet the detail list that
 * replaced the field.
 */
static size_t process_stride_v3(const struct nvml *nvml)
{
    bool appended = has_function(nvml, "nvmlDeviceGetConfComputeMemSizeInfo") &&
                    !has_function(nvml, "nvmlDeviceGetRunningProcessDetailList");
    return appended ? NVML_PROCESS_PROTECTED_SIZE : NVML_PROCESS_V2_SIZE;
}

/* All three lists in one version, the newest there is, so that their entries have one layout. */
static void find_process_lists(struct nvml *nvml)
{
    static const char *const suffixes[] = {"_v3", "_v2", ""};
    const size_t strides[] = {process_stride_v3(nvml), NVML_PROCESS_V2_SIZE, NVML_PROCESS_V1_SIZE};
    for (size_t v = 0; v < ARRAY_SIZE(suffixes); v++) {
        bool found = false;
        for (size_t i = 0; i < ARRAY_SIZE(process_lists); i++) {
            char name[64];
            snprintf(name, sizeof name, "%s%s", process_lists[i].name, suffixes[v]);
            found |= find_function(nvml, process_lists[i].offset, name);
        }
        if (found) {
            nvml->process_stride = strides[v];
            return;
        }
    }
}

int nvml_load(struct nvml *nvml, const char *path, struct fault *fault)
{
    *nvml = (struct nvml){
        .library = dlopen(path ? path : "libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL)};
    if (!nvml->library) {
        fault_set(fault, ENOENT,
            "no NVIDIA management library: %s; it comes with the NVIDIA driver", dlerror());
        return GPU_NO_LIBRARY;
    }
    for (size_t i = 0; i < ARRAY_SIZE(required); i++) {
        if (!find_function(nvml, required[i].offset, required[i].name)) {
            fault_set(fault, ENOSYS,
                "%s has no %s: not the NVIDIA management library, or one too old",
                path ? path : "libnvidia-ml.so.1", required[i].name);
            nvml_unload(nvml);
            return GPU_NO_LIBRARY;
        }
    }
    for (size_t i = 0; i < ARRAY_SIZE(optional); i++)
        find_function(nvml, optional[i].offset, optional[i].name);
    find_process_lists(nvml);
    return 0;
}

void nvml_unload(struct nvml *nvml)
{
    if (nvml->library)
        dlclose(nvml->library);
    *nvml = (struct nvml){0};
}

const char *nvml_error_text(const struct nvml *nvml, int result)
{
    if (result == NVML_FUNCTION_NOT_FOUND)
        return "the driver's NVML lacks the function";
    const char *text = nvml->error_string ? nvml->error_string(result) : NULL;
    return text ? text : "unknown NVML error";
}
