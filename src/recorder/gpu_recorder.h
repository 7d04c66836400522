/* SPDX-License-Identifier: Apache-2.0 */
/* Samples the recorded GPUs: adds each sample to the totals and prints it as CSV. */
#ifndef COLLOC_RECORDER_GPU_RECORDER_H
#define COLLOC_RECORDER_GPU_RECORDER_H

#include "exec/ancestry_cache.h"
#include "exec/process_usage.h"
#include "recorder/recording.h"

struct gpu_recorder {
    struct gpu_set *set; /* NULL: this machine has no usable GPU */
    size_t *index;       /* positions in the set, one for each of recording->gpu */
    struct gpu_sample sample;
    int64_t began_us;
    pid_t command;             /* 0: it does not run yet */
    struct process_usage host; /* of it and its descendants, at this sample */
    int64_t host_us;           /* when that was read last */
    struct ancestry_cache ancestry;
    FILE *csv;
    struct recording *recording;
};

/*
 * Opens the GPUs and prints the CSV header. Without usable GPUs recording->why_no_gpus says why and
 * nothing is sampled.
 *
 * Returns 0, or -errno with a fault: no GPU of settings->gpus exists, or no memory. Ended by
 * gpu_recorder_close either way.
 */
int gpu_recorder_open(struct gpu_recorder *recorder, const struct recorder_settings *settings,
    struct recording *recording, struct fault *fault);

/* Samples all recorded GPUs. `root`: ancestor of the command's processes; 0: no command yet. */
void gpu_recorder_sample(struct gpu_recorder *recorder, pid_t root);

/* The next sample queries everything, whatever it costs: call it before the first and the last. */
void gpu_recorder_query_all(struct gpu_recorder *recorder);

/* Releases the sample and the set of GPUs. */
void gpu_recorder_close(struct gpu_recorder *recorder);

#endif
