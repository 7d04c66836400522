/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a command and measures what it does on the GPUs, without a daemon: samples the GPUs at a
 * fixed rate, separates the command's processes (its descendants) from all others, and adds up.
 */
#ifndef COLLOC_RECORDER_RECORDER_H
#define COLLOC_RECORDER_RECORDER_H

#include <stdio.h>
#include <sys/types.h>

#include "base/fault.h"
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

/*
 * Runs and measures the command until it ends; its children may live on. SIGINT, SIGTERM, SIGHUP,
 * SIGQUIT, SIGUSR1 and SIGUSR2 are forwarded to the command.
 *
 * Or measures a running process, with its descendants, until it ends or one of these signals comes.
 *
 * Returns 0 with the recording, which the caller ends by recording_fini; or -errno with a fault:
 * the command cannot be started (-ENOENT, -EACCES, ...), no such process (-ESRCH), or no such GPU.
 */
int recorder_run(
    const struct recorder_settings *settings, struct fault *fault, struct recording *ret_recording);

/* Releases the list of GPUs. */
void recording_fini(struct recording *recording);

#endif
