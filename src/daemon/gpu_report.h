/* SPDX-License-Identifier: Apache-2.0 */
/* What the daemon knows of one GPU, beside the core's view of it: for lists and metrics. */
#ifndef COLLOC_DAEMON_GPU_REPORT_H
#define COLLOC_DAEMON_GPU_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/reading.h"
#include "gpu/attribution.h"
#include "gpu/gpu.h"

/* A task or an external process on a GPU, and its part of the GPU's activity up to the last
 * sample. */
struct share {
    uint64_t task; /* 0: an external process */
    struct gpu_holder holder;
    struct reading smact, power_w;
    struct reading calls_idle_us; /* since one of its processes called CUDA; 0 without processes */
};

/* A process of a task on a GPU that the task was not given. */
struct misplaced_process {
    uint64_t task;
    pid_t pid;
    struct reading used_bytes;
    int64_t since_us; /* it has been listed there */
    bool is_lasting;  /* for so long that the task does use that GPU */
};

/* Memory that the driver lists for a process that has ended (gpus/listed_processes.c). */
struct left_memory {
    pid_t pid;     /* as listed: the process has ended, and another one may have the pid now */
    uint64_t task; /* that the process was of; 0: of none, or not known */
    pid_t holder;  /* the process that keeps the device open; 0: not found */
    struct reading used_bytes;
};

/* Borrowed; valid until the next poll. */
struct gpu_report {
    const struct gpu_info *info;
    const struct gpu_info *parent; /* of a MIG instance: its card; otherwise NULL */
    const struct gpu_sample *sample;
    int view; /* its index in the core's view; -1: not managed */
    const struct gpu_process *external;
    size_t n_external;
    const struct misplaced_process *misplaced;
    size_t n_misplaced;
    const struct left_memory *left; /* of the external processes, those that have ended */
    size_t n_left;
    const struct share *shares; /* the tasks on it, then each other task or external process that
                                   computes there */
    size_t n_shares;
    bool shares_estimated; /* the driver did not report which of them was active */
};

/* What the GPUs have done while there were live tasks, since the daemon was started. */
struct gpu_totals {
    double energy_j;
    struct reading mean_smact;
};

#endif
