/* SPDX-License-Identifier: Apache-2.0 */
/* What a gpu_set keeps of each device beside what it tells: handles, and what the next look
 * compares with. */
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

/* More than any card can be cut into (seven today), so that room is made once. */
enum { INSTANCES_MAX = 16 };

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

/*
 * What changes slowly: not asked at each of ten looks a second. Utilisation and power are not
 * either by who looks all day: the driver's power is the mean of a second (Ampere and later, but
 * for GA100), and SMACT says more than utilisation.
 */
struct slow {
    struct reading temperature_c, sm_clock_mhz;
    struct reading utilisation, mem_utilisation, power_w;
    int64_t ask_again_us, ask_activity_again_us;
};

struct gpu_device {
    nvml_device handle; /* NULL: could not be opened, because of open_result */
    int open_result;
    struct energy energy;
    struct slow slow;
    struct gpm gpm;
    struct processes_told processes;
    struct process_time process_time;
    struct trouble trouble; /* of a card */
    bool in_dcgm;
    size_t dcgm_number; /* if so: what dcgm knows it by */
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
    int64_t gpm_interval_us; /* as was asked for; 0: nothing was */
    double gpm_share;        /* likewise, of all GPUs together */
    int64_t roster_ask_again_us;
};

/* What may change of a card while the driver runs. */
struct roster {
    enum gpu_mig_mode mig_mode;
    enum gpu_compute_mode compute_mode;
    bool instances_known;
    unsigned count; /* of MIG instances, and of each: */
    struct roster_instance {
        unsigned number; /* as nvidia-smi counts, behind the card's */
        nvml_device handle;
        char uuid[NVML_UUID_SIZE];
    } instance[INSTANCES_MAX];
};

/* set.c: */
void roster_read(const struct nvml *nvml, nvml_device card, struct roster *ret_roster);
int gpu_source_make_room(struct gpu_source *source, size_t cards);
/* Parts gpm_share among the GPUs there are. */
void gpu_source_share_gpm(struct gpu_source *source);
void gpu_source_add_card(
    struct gpu_source *source, unsigned index, nvml_device handle, const struct roster *roster);

/* The GPU is there no more, or not until somebody resets it. */
static inline bool nvml_says_lost(int result)
{
    return result == NVML_GPU_IS_LOST || result == NVML_RESET_REQUIRED;
}

#endif
