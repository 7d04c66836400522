/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a command and measures what it does on the GPUs, without a daemon: looks at the GPUs at a
 * steady rate, tells the command's processes (all that descend from it) from others, and adds up.
 */
#ifndef COLLOC_RECORDER_RECORDER_H
#define COLLOC_RECORDER_RECORDER_H

#include <stdio.h>

#include "base/fault.h"
#include "recorder/tally.h"

struct recorder_settings {
    char *const *words;       /* the command, NULL-terminated */
    const char *gpus;         /* indices and UUIDs parted by commas; "": all */
    int64_t period_us;        /* between two looks */
    const char *nvml_library; /* NULL: the driver's */
    FILE *csv;                /* one line per look and GPU; NULL: not wanted */
};

struct recorded_gpu {
    struct gpu_info info;
    struct tally tally;
};

struct recording {
    int exit_code; /* the command's; 128 + N for signal N */
    double elapsed_s, user_s, system_s;
    int64_t host_peak_bytes; /* of the command's largest process */
    int64_t looks, late_looks;
    double own_cpu_s; /* what the measuring itself took, since the command started */
    char why_no_gpus[256];
    struct recorded_gpu *gpu; /* those that were asked for */
    size_t n_gpus;
};

/*
 * Returns when the command has ended; its children may live on. Signals that ask a program to end
 * go to the command. 0 with the recording, which recording_fini ends; a fault when the command
 * cannot be started: -ENOENT, -EACCES, ...
 */
int recorder_run(
    const struct recorder_settings *settings, struct fault *fault, struct recording *ret_recording);

void recording_fini(struct recording *recording);

#endif
