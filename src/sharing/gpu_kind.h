/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kinds of GPUs that the simulator and the emulator know, and the constants of their common
 * model. Both read them from data/gpu-kinds.txt, which is built in and describes its own form.
 */
#ifndef COLLOC_SHARING_GPU_KIND_H
#define COLLOC_SHARING_GPU_KIND_H

#include <stdint.h>

#include "base/fault.h"
#include "base/mig_slices.h"
#include "base/text.h"
#include "sharing/interference.h"

/* More than NVIDIA sells; a profile's number is also its place in the list. */
enum { GPU_KINDS_MAX = 64, MIG_PROFILES_MAX = 16 };

/* Chosen: enough for a curve that bends, and for a line of the file. */
enum { POWER_POINTS_MAX = 12 };

/* A MIG profile; figures as `nvidia-smi mig -lgip` prints them. */
struct mig_profile {
    char name[16]; /* "3g.20gb" */
    int64_t total_bytes;
    int sms;
    int compute_slices, memory_slices; /* of those of the kind */
};

struct gpu_kind {
    char name[32];  /* "A100-40GB" */
    char alias[32]; /* another name it is accepted by, or "" */
    int64_t total_bytes;
    int64_t reserved_bytes; /* of the total, kept by NVIDIA's driver: no process can have it */
    int sms;
    double limit_w;
    double idle_w;  /* no process on it */
    double awake_w; /* with raised clocks, before any work is counted */
    double work_w;  /* what full activity adds to awake_w */
    struct power_point {
        double smact, power_w;
    } power[POWER_POINTS_MAX]; /* measured power by SM activity, both rising */
    int n_power;               /* 0: power is the sum of what the tasks add, up to limit_w */
    double tensor_tflops;      /* with 16-bit numbers, dense; 0: not known */
    double bandwidth_gbs;      /* of the memory */
    double efficiency;         /* published training speed, relative to what these two promise */
    struct mig_profile profiles[MIG_PROFILES_MAX];
    int n_profiles;
    int compute_slices, memory_slices; /* of MIG: those of the largest profile; 0: no MIG */
    struct gpu_identity_facts {
        char product[64]; /* "NVIDIA A100-SXM4-40GB" */
        int cuda_major, cuda_minor;
        unsigned architecture; /* NVML_DEVICE_ARCH_* */
        unsigned sm_mhz, memory_mhz;
        unsigned pcie_generation;
        unsigned pci_device_id;
    } nvml; /* what NVML reports of it */
};

/* The constants of the model: data/gpu-kinds.txt describes each. */
struct gpu_constants {
    int64_t context_bytes;
    double startup_s, ramp_s;
    double spread;
    double linear_memory; /* 0: a request is met from free memory anywhere; otherwise only from one
                        * contiguous piece */
    double decode_rate;   /* pictures a second by one process of a data loader; 0: not known */
    double decode_most;   /* the same by all processors; 0: not known */
    struct interference_constants interference;
};

struct gpu_kinds {
    struct gpu_constants constants;
    struct gpu_kind kinds[GPU_KINDS_MAX];
    int n;
};

/*
 * Sets the built-in kinds and constants, and the measured constants of interference.
 *
 * Returns 0, or -EINVAL with a fault (the built-in text is wrong).
 */
int gpu_kinds_init(struct gpu_kinds *kinds, struct fault *fault);

/*
 * Adds the kinds and constants of a text. An existing kind or constant is replaced.
 *
 * text: any bytes.
 * name: of the text, for messages.
 *
 * Returns 0, or -EINVAL with the line and the reason in the fault; `kinds` then holds what came
 * before that line. The rates of decoding must not contradict each other after the last line.
 */
int gpu_kinds_read(
    struct gpu_kinds *kinds, struct span text, const char *name, struct fault *fault);

/* Finds a kind by its name or alias. Returns NULL when there is none. */
const struct gpu_kind *gpu_kinds_find(const struct gpu_kinds *kinds, struct span name);

/*
 * Finds the kind of a real GPU: that of the product; else one of the same model and about as much
 * memory, such as A100-80GB for "NVIDIA A100 80GB PCIe".
 *
 * product:     as NVML names it.
 * total_bytes: as NVML has it.
 *
 * Returns NULL when there is none.
 */
const struct gpu_kind *gpu_kinds_find_product(
    const struct gpu_kinds *kinds, const char *product, int64_t total_bytes);

/*
 * Writes the names of all kinds, comma-separated, for messages.
 *
 * Returns `buffer`, cut at its size.
 */
const char *gpu_kinds_names(const struct gpu_kinds *kinds, char *buffer, size_t size);

/*
 * Returns the speed of training on the kind; only ratios of such speeds have a meaning: the
 * geometric mean of tensor TFLOPS and memory bandwidth, since a training step needs both, times the
 * kind's efficiency. 0: not known.
 */
int gpu_kind_speed(const struct gpu_kind *kind);

/*
 * The power of a GPU with tasks on it.
 *
 * smact: SM activity of the whole GPU; a kind with measured power goes by it
 * tasks_w: what its tasks add to awake_w; all others go by that
 */
double gpu_kind_power_w(const struct gpu_kind *kind, double smact, double tasks_w);

/* Finds a MIG profile of the kind by its name. Returns its place in kind->profiles, or -1. */
int gpu_kind_find_profile(const struct gpu_kind *kind, struct span name);

/*
 * Lists where instances of a profile may begin, as `nvidia-smi mig -lgipp` prints it.
 *
 * profile:    one of the kind's.
 * ret_starts: memory slices, ascending.
 *
 * Returns how many there are.
 */
int mig_profile_starts(const struct gpu_kind *kind, const struct mig_profile *profile,
    int ret_starts[MIG_MEMORY_SLICES_MAX]);

#endif
