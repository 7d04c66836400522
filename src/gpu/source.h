/* SPDX-License-Identifier: Apache-2.0 */
/* The private part of a gpu_set: NVML handles, and for each device the state that the next sample
 * is computed from. */
#ifndef COLLOC_GPU_SOURCE_H
#define COLLOC_GPU_SOURCE_H

#include "gpu/dcgm.h"
#include "gpu/gpm.h"
#include "gpu/gpu.h"
#include "gpu/nvml.h"
#include "gpu/process_list.h"
#include "gpu/process_time.h"
#include "gpu/roster.h"
#include "gpu/trouble.h"

/* A counter that never falls, made from one that NVML may restart (driver reload, GPU reset). */
struct total {
    bool seen;
    uint64_t last; /* NVML's latest value */
    uint64_t lost; /* sum of the counts before each restart */
};

/* The energy counter; between two queries power times time is added. */
struct energy {
    struct total counter_mj;
    struct reading total_j; /* as reported last */
    int64_t updated_us;
    int64_t next_query_us;
};

/*
 * Values that change slowly: queried once a second, however many samples are taken. Under
 * gpu_set_limit_overhead that includes utilisation and power: the driver's power is the mean of a
 * second (Ampere and later, but for GA100), and SMACT says more than utilisation.
 */
struct slow {
    struct reading temperature_c, sm_clock_mhz;
    struct reading utilisation, mem_utilisation, power_w;
    int64_t next_query_us, next_activity_query_us;
};

struct gpu_device {
    nvml_device handle; /* NULL: could not be opened, because of open_result */
    int open_result;
    struct energy energy;
    struct slow slow;
    struct gpm gpm;
    struct process_cache processes;
    struct process_time process_time;
    struct process_buffer process_buffer;
    struct process_time_buffer time_buffer;
    struct nvml_gpm_metrics gpm_scratch;
    struct trouble trouble; /* of a card */
    bool in_dcgm;           /* `dcgm` has it, by its position in the set */
};

struct gpu_source {
    struct nvml nvml;
    struct gpu_set set;
    struct gpu_info *info;
    struct gpu_device *device; /* one for each of info, at the same positions */
    char dcgmi[512];           /* the program; "": DCGM is not used */
    int64_t dcgm_period_us;
    struct dcgm *dcgm;     /* NULL: no GPU of the set has needed it */
    nvml_event_set events; /* NULL: the driver has none */
    int64_t events_read_us;
    _Atomic bool events_are_read, dcgm_is_read; /* by a thread, which may have been abandoned */
    int64_t gpm_interval_us;                    /* set by gpu_set_gpm_interval; 0: not set */
    double gpm_share; /* set by gpu_set_limit_overhead, for all GPUs together; 0: not set */
    int64_t roster_next_query_us;
};

/* discover.c: */

/* Allocates `info` and `device` for this many cards with all the instances they can have. 0 or
 * -ENOMEM. */
int gpu_source_allocate(struct gpu_source *source, size_t cards);

/* Lists all cards and their instances. 0, GPU_NO_DEVICES, or -errno with a fault. */
int gpu_source_discover(struct gpu_source *source, struct fault *fault);

/* Appends a card and its instances, of which allocated entries are left. `index`: NVML's. */
void gpu_source_add_card(
    struct gpu_source *source, unsigned index, nvml_device handle, const struct roster *roster);

/* set.c: */

/* Divides gpm_share equally among the GPUs. */
void gpu_source_divide_gpm_share(struct gpu_source *source);

/* Has DCGM watch the GPUs and instances that need it. 0 or -ENOMEM, then it watches none. */
int gpu_source_watch_by_dcgm(struct gpu_source *source);

/* Tests whether an NVML result means that the GPU is lost, or unusable until it is reset. */
static inline bool nvml_is_lost(int result)
{
    return result == NVML_GPU_IS_LOST || result == NVML_RESET_REQUIRED;
}

#endif
