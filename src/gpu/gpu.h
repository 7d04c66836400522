/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The GPUs of this machine: what there is (struct gpu_set, fixed when opened) and what each does
 * now (struct gpu_sample).
 *
 * All of it comes from NVML, found at run time: no GPU, driver or vendor header is needed to build
 * or start. SM activity of GPUs without GPM comes from `dcgmi`, where that is wanted and there. Not
 * thread safe: one thread at a time. MIG instances made or removed later are seen by gpu_set_renew.
 */
#ifndef COLLOC_GPU_GPU_H
#define COLLOC_GPU_GPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/fault.h"
#include "base/reading.h"

/* Named answers of gpu_set_open: nothing is broken in colloc, there are just no GPUs to be had. */
enum gpu_answer {
    GPU_NO_LIBRARY = 1, /* NVML is not installed, or what was named is not NVML */
    GPU_NO_DRIVER,      /* NVML is there, the kernel driver does not run or is of another version */
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

/* One GPU, or one MIG instance of a GPU. Texts that are not known are "". */
struct gpu_info {
    char uuid[96];  /* what CUDA_VISIBLE_DEVICES takes: "GPU-..." or "MIG-..." */
    char index[24]; /* for people: "0", and "0:1" for MIG device 1 of GPU 0, as nvidia-smi counts */
    char name[96];  /* "NVIDIA A100-SXM4-40GB" */
    char pci_bus_id[32]; /* of the card, also for a MIG instance */
    struct reading mem_total_bytes;
    int sm_count; /* 0: not known */
    enum gpu_compute_mode compute_mode;
    enum gpu_mig_mode mig_mode; /* of the card, also for a MIG instance */
    bool instances_known; /* of a card: the driver said which MIG instances it has, or that it has
                             none */

    bool is_place;     /* a task can be put here */
    char why_not[112]; /* when not: the reason, for people */

    bool is_mig;           /* the rest is about MIG instances only */
    size_t parent;         /* the card's position in the set */
    char profile[32];      /* "3g.20gb", "1c.3g.20gb" */
    int gpu_slices;        /* of seven; 0: not known */
    int compute_slices;    /* 0: not known */
    unsigned gpu_instance; /* NVML's id; compute instances with the same one share memory */
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
 * Finds all GPUs. `library_path` NULL: the driver's libnvidia-ml.so.1. 0 with *ret_set (closed by
 * the caller), a gpu_answer (then `fault` holds the sentence for people and *ret_set is NULL), or a
 * fault: -ENOMEM, -EACCES, -EIO. A GPU that cannot be asked is listed all the same, as no place.
 */
int gpu_set_open(const char *library_path, struct fault *fault, struct gpu_set **ret_set);

void gpu_set_close(struct gpu_set *set);

/*
 * What has changed since the set was opened: MIG turned on or off, instances made or removed, the
 * compute mode. 0: nothing, as far as the driver tells, which is asked seldom unless `at_once`;
 * GPU_SET_CHANGED: *ret_set (closed by the caller) is what there is now and goes on where `set`
 * was, with its sums, troubles and activity; `set` tells what it told and is only to be closed. A
 * card that does not answer stays as it was. Or -ENOMEM.
 */
enum { GPU_SET_CHANGED = 1 };
int gpu_set_renew(struct gpu_set *set, bool at_once, struct gpu_set **ret_set);

/* Shortens (or lengthens) what GPM means are taken over at least: for emulated GPUs, whose time may
 * be compressed. */
void gpu_set_gpm_interval(struct gpu_set *set, int64_t interval_min_us);

/*
 * For who looks all day. Keeps the processor time that GPM takes for all GPUs together under this
 * share of one processor, by working its values out the seldomer the dearer they are (1.0 to 1.3 ms
 * on an H200). Likewise sm_utilisation of processes; utilisation and power are asked once a second
 * where there is GPM, and for processes when memory in use has moved, and once a second. What was
 * not asked anew repeats the last. 0, as at first: all of it at each look.
 */
void gpu_set_looks_all_day(struct gpu_set *set, double share);

/* The next look asks for all of it, however dear (energy counter, GPM): ends of a measurement. */
void gpu_set_ask_all(struct gpu_set *set);

/* Forgets the Xids of the card (for an instance: of its card): somebody has seen to it. */
void gpu_set_forget_xids(struct gpu_set *set, size_t i);

/* In a list of indices and UUIDs parted by commas? "" and "all" name every GPU. */
bool gpu_info_is_listed(const struct gpu_info *info, const char *list);

/*
 * From now on GPUs that have no GPM (before Hopper; MIG instances excepted) have their activity
 * from one long-lived `dcgmi dmon` that tells every period. `program` is a path or a name on PATH.
 * It is started by the first look, and again when it ends; that it is not there is told in the
 * samples. Does nothing when all GPUs have GPM. 0 or -ENOMEM.
 */
int gpu_set_use_dcgmi(struct gpu_set *set, const char *program, int64_t period_us);

enum gpu_health {
    GPU_HEALTH_OK,
    GPU_HEALTH_LOST, /* fell off the bus or needs a reset */
    GPU_HEALTH_GONE, /* a MIG instance that was there when the set was opened and is not any more */
    GPU_HEALTH_SILENT, /* does not even tell its memory */
};

enum gpu_activity_source { GPU_ACTIVITY_NONE, GPU_ACTIVITY_GPM, GPU_ACTIVITY_DCGM };

enum gpu_process_kind { GPU_PROCESS_COMPUTE = 1, GPU_PROCESS_GRAPHICS = 2, GPU_PROCESS_MPS = 4 };

struct gpu_process {
    pid_t pid;
    struct reading used_bytes;
    unsigned kinds; /* bits of enum gpu_process_kind: a process may have several kinds of context */
    struct reading sm_utilisation; /* 0..1 of the last second in which it had kernels; only of
                                      several without MPS */
};

/*
 * One look at one GPU. Start with {0}, reuse for the next look (its memory only grows), end with
 * gpu_sample_fini. Whatever the GPU or driver does not tell is not valid; unless `health` is OK
 * nothing is.
 */
struct gpu_sample {
    int64_t at_us; /* clock_monotonic_us */
    enum gpu_health health;
    char health_reason[112]; /* "" when OK */

    /* What is wrong though it answers, for people ("": nothing), and whether no task should be put
     * there for it. */
    struct {
        bool is_serious;
        char text[112];
    } trouble;

    /* As nvidia-smi counts: what driver and firmware reserve is neither used nor free, where the
     * driver tells it. */
    struct reading mem_total_bytes, mem_used_bytes, mem_free_bytes;

    struct reading
        utilisation; /* 0..1 of recent time with at least one kernel: misleads, see SMACT */
    struct reading mem_utilisation; /* 0..1 of recent time in which memory was read or written */
    struct reading power_w;
    struct reading
        energy_j; /* total since some start; never falls from one valid reading to the next */
    struct reading temperature_c;
    struct reading sm_clock_mhz;

    /*
     * From GPM (Hopper and newer): means over the time since the previous look, at least 0.1 s
     * unless gpu_set_gpm_interval says otherwise, and longer under gpu_set_looks_all_day (a look
     * sooner repeats the last: activity.at_us tells). Not valid in the first look. For a MIG
     * instance: shares of the GPU instance it is in. From DCGM: means over its period; not valid
     * any more when nothing new has come for one and a half periods. Fractions 0..1.
     */
    struct reading smact, smocc, gract, dram_active, tensor_active, fp64_active, fp32_active,
        fp16_active;
    struct reading pcie_tx_bytes_per_s, pcie_rx_bytes_per_s, nvlink_tx_bytes_per_s,
        nvlink_rx_bytes_per_s;
    struct {
        enum gpu_activity_source source;
        int64_t at_us;    /* when it was measured; meaningless without a source */
        char reason[112]; /* why there is none, for people; "" when there is nothing to say */
    } activity;

    /* Each pid once. A card in MIG mode tells none: its instances do. */
    struct {
        bool valid;
        size_t count;
        struct gpu_process *item;
        size_t capacity;
    } processes;
};

/*
 * MPS's own processes (by the name of the program) are part of sharing, whoever's server it is:
 * their clients are listed beside them.
 */
bool gpu_process_is_mps_server(pid_t pid);

/* Looks at GPU number `i` of the set. Takes no memory once the process lists have had their
 * longest. */
void gpu_set_sample(struct gpu_set *set, size_t i, struct gpu_sample *ret_sample);

/* The same with the caller's clock (monotonic). */
void gpu_set_sample_at(
    struct gpu_set *set, size_t i, int64_t now_us, struct gpu_sample *ret_sample);

void gpu_sample_fini(struct gpu_sample *sample);

#endif
