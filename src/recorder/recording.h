/* SPDX-License-Identifier: Apache-2.0 */
/* What is recorded of a command: what is asked for, and what comes out. */
#ifndef COLLOC_RECORDER_RECORDING_H
#define COLLOC_RECORDER_RECORDING_H

#include <stdio.h>
#include <sys/types.h>

#include "recorder/gpu_totals.h"

struct recorder_settings {
    char *const *argv;        /* the command, NULL-terminated */
    pid_t pid;                /* a running process in place of the command; 0: none */
    const char *gpus;         /* comma-separated indices and UUIDs; "": all */
    int64_t period_us;        /* between two samples */
    const char *nvml_library; /* NULL: the driver's */
    FILE *csv;                /* for a line per sample and GPU; NULL: none is written */
};

struct recorded_gpu {
    struct gpu_info info;
    struct gpu_totals totals;
};

struct recording {
    int exit_code; /* the command's; 128 + N for signal N; of a running process 0 */
    double elapsed_s, user_s, system_s;
    int64_t host_peak_bytes;       /* of the command's largest process */
    int64_t samples, late_samples; /* late: not taken because the previous one took too long */
    double own_cpu_s;              /* processor time of the measurement itself */
    char why_no_gpus[256];         /* "": there are some */
    struct recorded_gpu *gpu;      /* those of settings->gpus */
    size_t n_gpus;
};

#endif
