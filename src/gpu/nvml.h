/* SPDX-License-Identifier: Apache-2.0 */
/* NVML, loaded at run time. nvml.c maps each member to its NVML function by name. Every function
 * but the first five may be missing (NULL): call those by nvml_call. */
#ifndef COLLOC_GPU_NVML_H
#define COLLOC_GPU_NVML_H

#include <stddef.h>

#include "base/fault.h"
#include "gpu/nvml_abi.h"

typedef int nvml_processes_function(nvml_device, unsigned *count, void *infos);

struct nvml {
    void *library;
    size_t process_stride; /* bytes from one entry of a process list to the next */

    int (*init)(void);
    int (*shutdown)(void);
    int (*device_count)(unsigned *);
    int (*device_by_index)(unsigned, nvml_device *);
    int (*device_uuid)(nvml_device, char *, unsigned);

    const char *(*error_string)(int);
    int (*driver_version)(char *, unsigned);

    int (*device_name)(nvml_device, char *, unsigned);
    int (*device_pci)(nvml_device, struct nvml_pci *);
    int (*device_minor)(nvml_device, unsigned *);
    int (*device_compute_mode)(nvml_device, int *);
    int (*device_compute_capability)(nvml_device, int *major, int *minor);
    int (*device_cores)(nvml_device, unsigned *);
    int (*device_attributes)(nvml_device, struct nvml_attributes *);

    int (*common_ancestor)(nvml_device, nvml_device, int *level);
    int (*p2p_status)(nvml_device, nvml_device, int by, int *status);
    int (*nvlink_state)(nvml_device, unsigned link, unsigned *active);
    int (*nvlink_remote)(nvml_device, unsigned link, struct nvml_pci *);
    int (*cpu_affinity)(nvml_device, unsigned words, unsigned long *cpus);

    int (*persistence_mode)(nvml_device, unsigned *mode);
    int (*device_mig_mode)(nvml_device, unsigned *current, unsigned *pending);
    int (*device_max_mig)(nvml_device, unsigned *);
    int (*device_mig_by_index)(nvml_device, unsigned, nvml_device *);
    int (*device_gpu_instance)(nvml_device, unsigned *);

    int (*gpu_profile)(nvml_device, unsigned number, struct nvml_gpu_profile *);
    int (*gpu_placements)(nvml_device, unsigned profile, struct nvml_placement *, unsigned *count);
    int (*gpu_instances)(nvml_device, unsigned profile, nvml_gpu_instance *, unsigned *count);
    int (*gpu_instance_create)(
        nvml_device, unsigned profile, const struct nvml_placement *, nvml_gpu_instance *);
    int (*gpu_instance_info)(nvml_gpu_instance, struct nvml_gpu_instance_info *);
    int (*gpu_instance_destroy)(nvml_gpu_instance);
    int (*compute_profile)(
        nvml_gpu_instance, unsigned number, unsigned engines, struct nvml_compute_profile *);
    int (*compute_instances)(
        nvml_gpu_instance, unsigned profile, nvml_compute_instance *, unsigned *count);
    int (*compute_instance_create)(nvml_gpu_instance, unsigned profile, nvml_compute_instance *);
    int (*compute_instance_destroy)(nvml_compute_instance);

    int (*memory_v2)(nvml_device, struct nvml_memory_v2 *);
    int (*memory)(nvml_device, struct nvml_memory *);
    int (*utilization)(nvml_device, struct nvml_utilization *);
    int (*power)(nvml_device, unsigned *milliwatt);
    int (*power_limit)(nvml_device, unsigned *milliwatt);
    int (*energy)(nvml_device, unsigned long long *millijoule);
    int (*temperature)(nvml_device, int sensor, unsigned *celsius);
    int (*clock)(nvml_device, int domain, unsigned *mhz);
    nvml_processes_function *compute_processes;
    nvml_processes_function *graphics_processes;
    nvml_processes_function *mps_processes;
    int (*process_utilization)(nvml_device, struct nvml_process_utilization *, unsigned *count,
        unsigned long long since_us);

    int (*ecc_errors)(nvml_device, int type, int counter, unsigned long long *count);
    int (*remapped_rows)(nvml_device, unsigned *corrected, unsigned *uncorrected, unsigned *pending,
        unsigned *failed);
    int (*retirement_pending)(nvml_device, int *pending);
    int (*clock_reasons)(nvml_device, unsigned long long *reasons);
    int (*event_set_create)(nvml_event_set *);
    int (*event_set_free)(nvml_event_set);
    int (*device_event_types)(nvml_device, unsigned long long *types);
    int (*device_register_events)(nvml_device, unsigned long long types, nvml_event_set);
    int (*event_set_wait)(nvml_event_set, struct nvml_event *, unsigned timeout_ms);

    int (*gpm_support)(nvml_device, struct nvml_gpm_support *);
    int (*gpm_sample_alloc)(nvml_sample *);
    int (*gpm_sample_free)(nvml_sample);
    int (*gpm_sample_get)(nvml_device, nvml_sample);
    int (*gpm_mig_sample_get)(nvml_device parent, unsigned gpu_instance, nvml_sample);
    int (*gpm_metrics_get)(struct nvml_gpm_metrics *);
};

/* Calls an optional function; NVML_FUNCTION_NOT_FOUND when this driver's NVML lacks it. */
#define nvml_call(nvml, function, ...)                                                             \
    ((nvml)->function ? (nvml)->function(__VA_ARGS__) : (int)NVML_FUNCTION_NOT_FOUND)

/*
 * Loads NVML and looks its functions up; calls none of them.
 *
 * path: NULL: libnvidia-ml.so.1, by the dynamic linker's search path
 *
 * Returns 0, or GPU_NO_LIBRARY (gpu/gpu.h) with the reason in `fault`.
 */
int nvml_load(struct nvml *nvml, const char *path, struct fault *fault);

/* Closes the library; its functions must not be called any more. */
void nvml_unload(struct nvml *nvml);

/* Returns NVML's text for a result, or ours when it has none. */
const char *nvml_error_text(const struct nvml *nvml, int result);

#endif
