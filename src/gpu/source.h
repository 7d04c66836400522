/* What a gpu_set keeps of each device beside what it tells: handles, and what the next look compares with. */
#ifndef COLLOC_GPU_SOURCE_H
#define COLLOC_GPU_SOURCE_H

#include "gpu/dcgm.h"
#include "gpu/gpm.h"
#include "gpu/gpu.h"
#include "gpu/nvml.h"
#include "gpu/process_time.h"
#include "gpu/processes.h"
#include "gpu/trouble.h"
#include "gpu/xid_events.h"

/* A total that NVML may restart (driver reload, reset) as one that never falls. */
struct total {
    bool seen;
    uint64_t last; /* NVML's latest */
    uint64_t lost; /* what earlier restarts dropped */
};

/* The energy counter, and what is added to it by power until it is asked again. */
struct energy {
    struct total counter_mj;
    struct reading total_j; /* as told last */
    int64_t told_us;
    int64_t ask_again_us;
};

struct gpu_device {
    nvml_device handle; /* NULL: could not be opened, because of open_result */
    int open_result;
    struct energy energy;
    struct gpm gpm;
    struct trouble trouble;             /* of a card */
    unsigned long long process_time_us; /* the newest sample of process_time_look */
    bool in_dcgm;
};

struct gpu_source {
    struct nvml nvml;
    struct gpu_set set;
    struct gpu_info *info;
    struct gpu_device *device; /* beside info */
    struct dcgm *dcgm;         /* NULL: not wanted */
    nvml_event_set events;     /* NULL: the driver has none */
    int64_t events_taken_us;
    struct process_room room;
    struct process_time_room time_room;
    struct nvml_gpm_metrics gpm_scratch;
};

/* The GPU is there no more, or not until somebody resets it. */
static inline bool nvml_says_lost(int result)
{
    return result == NVML_GPU_IS_LOST || result == NVML_RESET_REQUIRED;
}

#endif
