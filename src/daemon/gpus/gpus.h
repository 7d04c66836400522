/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The GPUs: polled at a fixed period, their processes attributed to tasks, and what each task uses
 * of them added up in its job.
 *
 * Contract:
 * 1. NVML is called in threads of the part only, so a driver that does not answer never stops the
 *    loop. A call about one GPU that does not return makes that GPU stale, and no other.
 * 2. Each complete poll feeds one SAMPLE for each managed GPU that answered, then calls the hook
 *    `polled`.
 * 3. A GPU's index is its place among those of NVML; it may change from one poll to the next. Its
 *    index in the core's view does not.
 */
#ifndef COLLOC_DAEMON_GPUS_GPUS_H
#define COLLOC_DAEMON_GPUS_GPUS_H

#include "daemon/gpus/gpus_options.h"

struct gpus;

/* Creates the part, still without GPUs. `options` is copied. Returns NULL when memory is out. */
struct gpus *gpus_create(const struct gpus_options *options);

/* Opens NVML and feeds the list of GPUs, once the log is replayed. Where NVML does not answer, that
 * happens later. Returns 0, also where there are no GPUs, or a fault. */
int gpus_open(struct gpus *gpus, struct fault *fault);

/* For `collocd --check`: warns of GPUs in the settings that this server does not have, where NVML
 * lists its GPUs in time. */
void gpus_check(const struct config *config);

/* Takes over the setting drain, and polls. Fails without memory only. */
int gpus_review_use(struct gpus *gpus);

/* Polls now and then at the configured period; to be called again when that has changed. */
void gpus_start(struct gpus *gpus);

/* Stops polling; waits a moment for a poll under way. NULL is fine. */
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

/* An administrator says that GPU `i` is well again: its Xid errors are forgotten with the next
 * poll. */
void gpus_clear_errors(struct gpus *gpus, size_t i);

#endif
