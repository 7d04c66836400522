/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The GPUs of this machine: which there are (struct gpu_set, fixed when opened) and what each does
 * now (struct gpu_sample).
 *
 * Everything is queried from NVML, which is loaded at run time: neither a build nor a start needs a
 * GPU, driver or vendor header. The SM activity of GPUs without GPM comes from NVIDIA DCGM, if
 * gpu_set_use_dcgm is called and DCGM is installed. gpu_set_renew follows MIG instances that are
 * made or removed later.
 *
 * Contract:
 *   1. A set and its samples are used by one thread at a time; but while a call of gpu_set_sample
 *      hangs in the driver, another thread may sample other cards and their instances.
 *   2. A value that the driver does not report is an invalid reading, never 0.
 *   3. Positions of GPUs in a set do not change during its life.
 */
#ifndef COLLOC_GPU_GPU_H
#define COLLOC_GPU_GPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/fault.h"
#include "base/process.h"
#include "base/reading.h"

/* Named answers of gpu_set_open: this machine has no usable GPU. */
enum gpu_answer {
    GPU_NO_LIBRARY = 1, /* NVML is not installed, or the named library is not NVML */
    GPU_NO_DRIVER,      /* the kernel driver is not loaded, or of another version than NVML */
    GPU_NO_DEVICES,     /* the driver runs and sees no GPU */
};

enum gpu_mig_mode { GPU_MIG_UNSUPPORTED, GPU_MIG_OFF, GPU_MIG_ON };

enum gpu_compute_mode { /* NVML's numbers */
    GPU_COMPUTE_DEFAULT = 0,
    GPU_COMPUTE_EXCLUSIVE_THREAD = 1,
    GPU_COMPUTE_PROHIBITED = 2,
    GPU_COMPUTE_EXCLUSIVE_PROCESS = 3,
    GPU_COMPUTE_UNKNOWN = -1,
};

/* Distance of two cards that the driver does not report. */
#define GPU_DISTANCE_UNKNOWN '~'

/* Number of cards whose distances are listed. Chosen: more than a server has. */
enum { GPU_DISTANCES_MAX = 64 };

/* One GPU, or one MIG instance of a GPU. Texts that are not known are "". */
struct gpu_info {
    char uuid[96];        /* what CUDA_VISIBLE_DEVICES takes: "GPU-..." or "MIG-..." */
    char index[24];       /* as nvidia-smi counts: "0"; "0:1" for MIG device 1 of GPU 0 */
    char name[96];        /* "NVIDIA A100-SXM4-40GB" */
    char pci_bus_id[32];  /* of the card, also for a MIG instance */
    struct reading minor; /* N of its /dev/nvidiaN, likewise */
    struct reading mem_total_bytes;
    struct reading mem_reserved_bytes; /* of the total, for driver and firmware; not known where the
                                          driver counts it as used */
    struct reading sm_count;
    struct reading power_limit_w; /* that the driver keeps; of an instance its part */
    enum gpu_compute_mode compute_mode;
    enum gpu_mig_mode mig_mode; /* of the card, also for a MIG instance */
    struct reading card_slices; /* of compute, of a card with MIG on: seven, of an A30 four */
    bool instances_known; /* of a card: the driver reports which MIG instances it has, if any */

    /* Of a card: a character for each card before it, which is the larger the farther that is
     * (topology.c). */
    char distances[GPU_DISTANCES_MAX + 1];
    char near_cpus[96];       /* of a card: those of its NUMA node, as "0-15,64-79" */
    struct reading numa_node; /* also of a MIG instance's card */

    bool is_place;     /* a task can be placed here */
    char why_not[112]; /* otherwise the reason, for the user */

    bool is_mig;                   /* the rest is about MIG instances only */
    size_t parent;                 /* the card's position in the set */
    char profile[32];              /* "3g.20gb", "1c.3g.20gb" */
    struct reading gpu_slices;     /* of card_slices */
    struct reading compute_slices; /* of gpu_slices */
    struct reading gpu_instance;   /* NVML's id; compute instances with the same one share memory */
};

struct gpu_source;

/* A card comes before its MIG instances, cards in NVML's order (PCI bus). */
struct gpu_set {
    const struct gpu_info *gpu;
    size_t count;
    char driver_version[80];
    struct gpu_source *source;
};

/*
 * Loads NVML and lists all GPUs. A GPU that cannot be queried is listed too, but no task can be
 * placed on it.
 *
 * library_path: NULL: the driver's libnvidia-ml.so.1
 * ret_set:      closed by the caller with gpu_set_close; NULL unless 0 is returned
 *
 * Returns 0; a gpu_answer, with a sentence for the user in `fault`; or -ENOMEM, -EACCES, -EIO.
 */
int gpu_set_open(const char *library_path, struct fault *fault, struct gpu_set **ret_set);

/* Takes NULL. */
void gpu_set_close(struct gpu_set *set);

/*
 * Follows what changed since the set was opened: MIG turned on or off, instances made or removed,
 * the compute mode. A card that does not answer counts as unchanged.
 *
 * at_once: query now; otherwise the driver is queried at most once in one to five seconds
 * ret_set: the new set, which takes over sampling with its energy totals, health and activity. The
 *          old one keeps its `gpu` list and may only be closed.
 *
 * Returns 0: no change; GPU_SET_CHANGED with *ret_set, closed by the caller; or -ENOMEM.
 */
enum { GPU_SET_CHANGED = 1 };

/* Returns whether gpu_set_renew has something to do; only queries. */
bool gpu_set_is_outdated(struct gpu_set *set, bool at_once);

int gpu_set_renew(struct gpu_set *set, bool at_once, struct gpu_set **ret_set);

/* Sets the minimum time that GPM values are means over (default: GPM_INTERVAL_MIN_US). For emulated
 * GPUs, whose time may be compressed. */
void gpu_set_gpm_interval(struct gpu_set *set, int64_t interval_min_us);

/*
 * Low-overhead mode, for continuous sampling. Values that were not queried anew repeat the last:
 * GPM values and the processes' sm_utilisation are computed less often, the more they cost (1.0 to
 * 1.3 ms on an H200); utilisation and power are queried once a second where there is GPM; processes
 * when memory in use has changed, and once a second.
 *
 * cpu_share: of one processor, that GPM may cost for all GPUs together; 0, the default: every
 *            sample queries everything
 */
void gpu_set_limit_overhead(struct gpu_set *set, double cpu_share);

/* The next sample of each GPU queries everything, whatever it costs: for the two ends of a
 * measurement. */
void gpu_set_query_all_next(struct gpu_set *set);

/* Forgets the Xids of GPU `i` (for an instance: of its card), when a person has repaired it. */
void gpu_set_forget_xids(struct gpu_set *set, size_t i);

/* Is the GPU in a comma-separated list of indices and UUIDs? "" and "all" name every GPU. */
bool gpu_info_is_listed(const struct gpu_info *info, const char *list);

/* Do the two have one memory: MIG compute instances of the same GPU instance? */
bool gpu_info_shares_memory(const struct gpu_info *one, const struct gpu_info *other);

/*
 * Takes the activity of GPUs and MIG instances without GPM (before Hopper) from NVIDIA DCGM, by one
 * long-running child (gpu/dcgm.h). It starts with the next sample, and again when it ends or MIG
 * instances change; when it cannot be started the samples say so. Does nothing where all GPUs have
 * GPM.
 *
 * dcgmi:     path of that program, or its name on PATH; used where libdcgm does not work
 * period_us: between two values of DCGM
 *
 * Returns 0 or -ENOMEM.
 */
int gpu_set_use_dcgm(struct gpu_set *set, const char *dcgmi, int64_t period_us);

/* Changes the time between two values of DCGM, where that is used. Not during a sample. */
void gpu_set_change_dcgm_period(struct gpu_set *set, int64_t period_us);

/* Returns how DCGM is used, for the user: "libdcgm.so.4 with nv-hostengine", "dcgmi (why)"; "" where
 * it is not used, or not yet. Not during a sample. */
const char *gpu_set_dcgm_source(const struct gpu_set *set);

enum gpu_health {
    GPU_HEALTH_OK,
    GPU_HEALTH_LOST,   /* fell off the bus or needs a reset */
    GPU_HEALTH_GONE,   /* a MIG instance that was removed since the set was opened */
    GPU_HEALTH_SILENT, /* answers no query */
};

enum gpu_activity_source { GPU_ACTIVITY_NONE, GPU_ACTIVITY_GPM, GPU_ACTIVITY_DCGM };

enum gpu_process_kind { GPU_PROCESS_COMPUTE = 1, GPU_PROCESS_GRAPHICS = 2, GPU_PROCESS_MPS = 4 };

struct gpu_process {
    pid_t pid;
    uint64_t born; /* as of struct process_id: noted by the reader of the sample, 0 before that */
    struct reading used_bytes;
    unsigned kinds; /* bits of enum gpu_process_kind: a process may have several kinds of context */
    struct reading sm_utilisation; /* 0..1 of the last second in which it had kernels; only when
                                      several compute without MPS */
    bool is_mps_server;            /* by the program's name: it belongs to MPS itself, whose clients
                                      are listed beside it */
};

static inline struct process_id gpu_process_id(const struct gpu_process *process)
{
    return (struct process_id){process->pid, process->born};
}

/*
 * What one GPU did at one time. Start with {0}; reuse it for the next sample (its memory only
 * grows); end with gpu_sample_fini. Unless `health` is GPU_HEALTH_OK no reading is valid.
 */
struct gpu_sample {
    int64_t at_us; /* clock_monotonic_us */
    enum gpu_health health;
    char health_reason[112]; /* "" when OK */

    /* The fault of a GPU that answers ("": none); when is_serious, no task should be placed on
     * it. */
    struct {
        bool is_serious;
        char text[112];
    } trouble;

    /* As nvidia-smi counts: what driver and firmware reserve is neither used nor free, if the
     * driver reports it. */
    struct reading mem_total_bytes, mem_used_bytes, mem_free_bytes;

    struct reading utilisation; /* 0..1 of recent time with at least one kernel: an upper bound of
                                   SM activity */
    struct reading mem_utilisation; /* 0..1 of recent time in which memory was read or written */
    struct reading power_w;
    struct reading energy_j; /* total since some start; never falls between valid readings */
    struct reading temperature_c;
    struct reading sm_clock_mhz;

    /*
     * Activity, fractions 0..1. From GPM (Hopper and newer): means since the previous sample, over
     * at least 0.1 s unless gpu_set_gpm_interval says otherwise, and over longer in low-overhead
     * mode; a sample taken sooner repeats the last (see activity.at_us). Not valid in the first
     * sample. For a MIG instance: of its GPU instance. From DCGM: means over its period; not valid
     * when no row has come for one and a half periods.
     */
    struct reading smact, smocc, gract, dram_active, tensor_active, fp64_active, fp32_active,
        fp16_active;
    struct reading pcie_tx_bytes_per_s, pcie_rx_bytes_per_s, nvlink_tx_bytes_per_s,
        nvlink_rx_bytes_per_s;
    struct {
        enum gpu_activity_source source;
        int64_t at_us;    /* when it was measured; meaningless without a source */
        char reason[112]; /* why there is none, for the user; "" when there is one */
    } activity;

    /* Each pid once. A card in MIG mode has none: its instances do. */
    struct {
        bool valid;
        size_t count;
        struct gpu_process *item;
        size_t capacity;
    } processes;
};

/*
 * Samples GPU `i` of the set. Allocates only when a process list is longer than all before it.
 *
 * ret_sample: a sample that was used before, or {0}
 */
void gpu_set_sample(struct gpu_set *set, size_t i, struct gpu_sample *ret_sample);

/* Does the same at a given time (monotonic, microseconds). */
void gpu_set_sample_at(
    struct gpu_set *set, size_t i, int64_t now_us, struct gpu_sample *ret_sample);

/* Releases the process list of a sample. */
void gpu_sample_fini(struct gpu_sample *sample);

#endif
