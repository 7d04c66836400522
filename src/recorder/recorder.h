/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a command and measures what it does on the GPUs, without a daemon: samples the GPUs at a
 * fixed rate, separates the command's processes (its descendants) from all others, and adds up.
 */
#ifndef COLLOC_RECORDER_RECORDER_H
#define COLLOC_RECORDER_RECORDER_H

#include "base/fault.h"
#include "recorder/recording.h"

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
