/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of NVML's binary interface that colloc uses: own declarations after NVIDIA's public
 * "NVML API Reference" (docs.nvidia.com/deploy/nvml-api). Layouts are those of 64-bit Linux. Each
 * structure is named after NVML's.
 */
#ifndef COLLOC_GPU_NVML_ABI_H
#define COLLOC_GPU_NVML_ABI_H

#include <assert.h>
#include <stdint.h>

typedef struct nvml_device_opaque *nvml_device;     /* nvmlDevice_t: a GPU or a MIG instance */
typedef struct nvml_gpm_sample_opaque *nvml_sample; /* nvmlGpmSample_t */

typedef struct nvml_event_set_opaque *nvml_event_set; /* nvmlEventSet_t */

enum nvml_result { /* nvmlReturn_t; the values that colloc distinguishes */
    NVML_OK = 0,
    NVML_UNINITIALIZED = 1,
    NVML_INVALID_ARGUMENT = 2,
    NVML_NOT_SUPPORTED = 3,
    NVML_NO_PERMISSION = 4,
    NVML_NOT_FOUND = 6,
    NVML_INSUFFICIENT_SIZE = 7,
    NVML_DRIVER_NOT_LOADED = 9,
    NVML_IRQ_ISSUE = 11,
    NVML_LIBRARY_NOT_FOUND = 12,
    NVML_FUNCTION_NOT_FOUND = 13,
    NVML_GPU_IS_LOST = 15,
    NVML_RESET_REQUIRED = 16,
    NVML_LIB_RM_VERSION_MISMATCH = 18,
    NVML_GPU_NOT_FOUND = 28,
    NVML_UNKNOWN = 999,
};

enum { NVML_NAME_SIZE = 96, NVML_UUID_SIZE = 96, NVML_BUS_ID_SIZE = 32, NVML_VERSION_SIZE = 80 };
enum { NVML_TEMPERATURE_GPU = 0, NVML_CLOCK_SM = 1, NVML_MIG_ENABLED = 1 };

/* usedGpuMemory of a process whose memory the driver does not know. */
#define NVML_MEMORY_NOT_AVAILABLE UINT64_MAX

struct nvml_memory { /* nvmlMemory_t: `used` includes what driver and firmware reserve */
    uint64_t total, free, used;
};

struct nvml_memory_v2 { /* nvmlMemory_v2_t: `used` is without `reserved` */
    uint32_t version;
    uint64_t total, reserved, free, used;
};
#define NVML_MEMORY_V2_VERSION (uint32_t)(sizeof(struct nvml_memory_v2) | 2U << 24)
static_assert(sizeof(struct nvml_memory_v2) == 40, "layout of nvmlMemory_v2_t");

struct nvml_utilization { /* nvmlUtilization_t: per cent */
    uint32_t gpu, memory;
};

struct nvml_pci { /* nvmlPciInfo_t of nvmlDeviceGetPciInfo_v3 */
    char bus_id_legacy[16];
    uint32_t domain, bus, device, device_id, subsystem_id;
    char bus_id[NVML_BUS_ID_SIZE];
};
static_assert(sizeof(struct nvml_pci) == 68, "layout of nvmlPciInfo_t");

struct nvml_attributes { /* nvmlDeviceAttributes_t: MIG instances only */
    uint32_t multiprocessors, copy_engines, decoders, encoders, jpegs, ofas, gpu_slices,
        compute_slices;
    uint64_t memory_mib;
};
static_assert(sizeof(struct nvml_attributes) == 40, "layout of nvmlDeviceAttributes_t");

/*
 * The head that all versions of nvmlProcessInfo_t begin with; how far apart entries lie depends on
 * the function's version (struct nvml, process_stride).
 */
struct nvml_process {
    uint32_t pid;
    uint64_t used_bytes;
};
enum { NVML_PROCESS_V1_SIZE = 16, NVML_PROCESS_V2_SIZE = 24, NVML_PROCESS_PROTECTED_SIZE = 32 };
static_assert(
    sizeof(struct nvml_process) == NVML_PROCESS_V1_SIZE, "layout of nvmlProcessInfo_v1_t");

struct nvml_process_utilization { /* nvmlProcessUtilizationSample_t: per cent, since the sample
                                     before */
    uint32_t pid;
    uint64_t time_us;
    uint32_t sm, memory, encoder, decoder;
};
static_assert(
    sizeof(struct nvml_process_utilization) == 32, "layout of nvmlProcessUtilizationSample_t");

enum {
    NVML_UNCORRECTED = 1,
    NVML_SINCE_DRIVER_LOAD = 0
}; /* nvmlMemoryErrorType_t, nvmlEccCounterType_t */

enum nvml_held_down { /* nvmlClocksEventReason...: reasons that mean a faulty card or server */
    NVML_HELD_DOWN_HARDWARE = 0x8,
    NVML_HELD_DOWN_HARDWARE_HEAT = 0x40,
    NVML_HELD_DOWN_POWER_BRAKE = 0x80,
};

/* nvmlGpuTopologyLevel_t counts in steps: internal 0, single 10, multiple 20, host bridge 30, node
 * 40, system 50. */
enum { NVML_TOPOLOGY_STEP = 10 };
/* nvmlGpuP2PCapsIndex_t, nvmlGpuP2PStatus_t */
enum { NVML_P2P_BY_NVLINK = 2, NVML_P2P_OK = 0, NVML_P2P_UNKNOWN = 6 };

enum { NVML_EVENT_XID = 8 }; /* nvmlEventTypeXidCriticalError */

struct nvml_event { /* nvmlEventData_t */
    nvml_device device;
    uint64_t type, data;
    uint32_t gpu_instance, compute_instance;
};
static_assert(sizeof(struct nvml_event) == 32, "layout of nvmlEventData_t");

enum nvml_gpm_metric_id { /* nvmlGpmMetricId_t; per cent, or MiB per second */
    NVML_GPM_GRAPHICS_UTIL = 1,
    NVML_GPM_SM_UTIL = 2,
    NVML_GPM_SM_OCCUPANCY = 3,
    NVML_GPM_ANY_TENSOR_UTIL = 5,
    NVML_GPM_DRAM_BW_UTIL = 10,
    NVML_GPM_FP64_UTIL = 11,
    NVML_GPM_FP32_UTIL = 12,
    NVML_GPM_FP16_UTIL = 13,
    NVML_GPM_PCIE_TX_PER_SEC = 20,
    NVML_GPM_PCIE_RX_PER_SEC = 21,
    NVML_GPM_NVLINK_RX_PER_SEC = 60,
    NVML_GPM_NVLINK_TX_PER_SEC = 61,
    NVML_GPM_METRIC_MAX = 333,
};

struct nvml_gpm_metric { /* nvmlGpmMetric_t */
    uint32_t id;
    uint32_t result; /* of this metric alone */
    double value;
    const char *short_name, *long_name, *unit;
};
static_assert(sizeof(struct nvml_gpm_metric) == 40, "layout of nvmlGpmMetric_t");

struct nvml_gpm_metrics { /* nvmlGpmMetricsGet_t */
    uint32_t version;
    uint32_t count;
    nvml_sample before, after;
    struct nvml_gpm_metric metrics[NVML_GPM_METRIC_MAX];
};
enum { NVML_GPM_METRICS_VERSION = 1, NVML_GPM_SUPPORT_VERSION = 1 };

struct nvml_gpm_support { /* nvmlGpmSupport_t */
    uint32_t version;
    uint32_t supported;
};

/* ---- MIG instances ---- */

typedef struct nvml_gpu_instance_opaque *nvml_gpu_instance;         /* nvmlGpuInstance_t */
typedef struct nvml_compute_instance_opaque *nvml_compute_instance; /* nvmlComputeInstance_t */

/* Numbers of profiles to query: there are 0x17 for GPU instances by now, and 8 for compute
 * instances.
 */
enum { NVML_GPU_PROFILES = 32, NVML_COMPUTE_PROFILES = 8, NVML_COMPUTE_ENGINES_SHARED = 0 };

struct nvml_placement { /* nvmlGpuInstancePlacement_t: in memory slices */
    uint32_t start, size;
};

struct nvml_gpu_profile { /* nvmlGpuInstanceProfileInfo_v2_t */
    uint32_t version, id, p2p, slices, instances, multiprocessors, copy_engines, decoders, encoders,
        jpegs, ofas;
    uint64_t memory_mib;
    char name[NVML_NAME_SIZE];
};
#define NVML_GPU_PROFILE_VERSION (uint32_t)(sizeof(struct nvml_gpu_profile) | 2U << 24)
static_assert(sizeof(struct nvml_gpu_profile) == 152, "layout of nvmlGpuInstanceProfileInfo_v2_t");

struct nvml_gpu_instance_info { /* nvmlGpuInstanceInfo_t */
    nvml_device device;
    uint32_t id, profile;
    struct nvml_placement placement;
};
static_assert(sizeof(struct nvml_gpu_instance_info) == 24, "layout of nvmlGpuInstanceInfo_t");

struct nvml_compute_profile { /* nvmlComputeInstanceProfileInfo_t */
    uint32_t id, slices, instances, multiprocessors, copy_engines, decoders, encoders, jpegs, ofas;
};
static_assert(
    sizeof(struct nvml_compute_profile) == 36, "layout of nvmlComputeInstanceProfileInfo_t");

#endif
