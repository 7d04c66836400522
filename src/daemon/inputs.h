/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The recording of everything that the core is fed and decides, for `colloc replay` (setting
 * record-inputs).
 *
 * All functions but inputs_open take NULL: nothing is recorded.
 */
#ifndef COLLOC_DAEMON_INPUTS_H
#define COLLOC_DAEMON_INPUTS_H

#include "core/core.h"
#include "daemon/config.h"

struct inputs;

/*
 * Opens the file and writes the core's settings to it. To be called before the core is fed.
 *
 * config:     borrowed; outlives the recording
 * ret_inputs: NULL when no recording is wanted
 *
 * Returns 0 or a fault that names the file.
 */
int inputs_open(const struct config *config, struct fault *fault, struct inputs **ret_inputs);

/* An event of the log was applied to the core. */
void inputs_note_applied(struct inputs *inputs, const struct event *event);

/* The core's settings have changed to those of the configuration. */
void inputs_note_settings(struct inputs *inputs);

/* The core has forgotten the task. */
void inputs_note_forgotten(struct inputs *inputs, uint64_t task);

/* The core took an input and decided, or refused it. `answer`: of core_step. */
void inputs_note_step(
    struct inputs *inputs, const struct core *core, const struct event *event, int answer);

/* Ends the recording and releases it. */
void inputs_close(struct inputs *inputs);

#endif
