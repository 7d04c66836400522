/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The GPUs: polled at a fixed period, their processes attributed to tasks, and what each task uses
 * of them added up in its job.
 *
 * Contract:
 * 1. NVML is called in the loop's thread pool only, one poll at a time, so a driver that does not
 *    answer never stops the loop.
 * 2. Each complete poll feeds one SAMPLE for each managed GPU that answered, then calls the hook
 *    `polled`.
 * 3. A GPU's index is its place among those of NVML; it may change from one poll to the next. Its
 *    index in the core's view does not.
 */
#ifndef COLLOC_DAEMON_GPUS_GPUS_H
#define COLLOC_DAEMON_GPUS_GPUS_H

#include <stdio.h>
#include <sys/types.h>
#include <uv.h>

#include "daemon/config.h"
#include "daemon/driver.h"
#include "daemon/gpu_report.h"
#include "daemon/jobs.h"

/* What the part calls. All must be set; each gets `context`. */
struct gpus_hooks {
    void *context;

    /* Returns the pid of the task's shim; 0: it has none. */
    pid_t (*find_shim)(void *context, uint64_t task);

    /* The poll of this number is complete. */
    void (*polled)(void *context, int64_t poll);

    /* A file of the state folder could not be written. */
    void (*write_failed)(void *context, const char *what);
};

struct gpus_options {
    uv_loop_t *loop; /* borrowed, as the others; all outlive the part */
    const struct config *config;
    const struct core *core;
    struct jobs *jobs;
    struct driver *driver;
    struct gpus_hooks hooks;
};

struct gpus;

/* Creates the part, still without GPUs. `options` is copied. Returns NULL when memory is out. */
struct gpus *gpus_create(const struct gpus_options *options);

/* Opens NVML and feeds the list of GPUs, once the log is replayed. Returns 0, also where there are
 * no GPUs, or a fault. */
int gpus_open(struct gpus *gpus, struct fault *fault);

/* Polls now and then at the configured period; to be called again when that has changed. */
void gpus_start(struct gpus *gpus);

/* Stops polling; a poll under way in the pool ends by itself. NULL is fine. */
void gpus_close(struct gpus *gpus);

/* Releases the part once the loop has run after gpus_close. NULL is fine. */
void gpus_destroy(struct gpus *gpus);

/* Writes what live tasks have used so far to the state folder. */
void gpus_save_usage(struct gpus *gpus);

/* Polls as soon as possible. */
void gpus_poll(struct gpus *gpus);

/* The same, and also lists what GPUs there are. Returns the poll's number, from 1; 0: there are no
 * GPUs to poll. */
int64_t gpus_poll_closely(struct gpus *gpus);

/* Adds the time since the last sample to the usage of a job whose attempt ends now. */
void gpus_end_usage(struct gpus *gpus, struct job *job);

/* ---- what is known of them ---- */

/* Returns how many there are, managed or not. */
size_t gpus_count(const struct gpus *gpus);

/* Returns why there are none; "" where there are. */
const char *gpus_why_none(const struct gpus *gpus);

/* Reports GPU `i`. Returns false when there are no more. */
bool gpus_report(const struct gpus *gpus, size_t i, struct gpu_report *ret_report);

/* Returns why the GPU of this index in the core's view is lost or removed; NULL: it is not. */
const char *gpus_why_gone(const struct gpus *gpus, int view);

/* Returns whether NVML's index of each GPU is also CUDA's. `by_mps`: for an MPS client. */
bool gpus_cuda_counts_as_nvml(const struct gpus *gpus, bool by_mps);

/*
 * For how long a resident of GPU `i` has held it while no process used it, up to the last sample,
 * in microseconds; 0: it is in use; unknown without a reading of its activity.
 *   ret_is_long   whether that is beyond the setting unused-after
 */
struct reading gpus_idle_us(
    const struct gpus *gpus, size_t i, const struct resident *resident, bool *ret_is_long);

struct gpu_totals gpus_totals(const struct gpus *gpus);

/* Writes the stored samples of all GPUs since `since_us` (wall time) as JSON. Returns 0 or
 * -errno. */
int gpus_write_history(struct gpus *gpus, int64_t since_us, FILE *out);

/* An administrator says that GPU `i` is well again: its Xid errors are forgotten with the next
 * poll. */
void gpus_clear_errors(struct gpus *gpus, size_t i);

#endif
