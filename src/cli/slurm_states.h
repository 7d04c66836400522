/* SPDX-License-Identifier: Apache-2.0 */
/* The states of a task under Slurm's names. */
#ifndef COLLOC_CLI_SLURM_STATES_H
#define COLLOC_CLI_SLURM_STATES_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* Slurm's name of the state, "PAUSED" is "SUSPENDED"; and the short one, "R". */
const char *slurm_state_long(const json_t *task);
const char *slurm_state_short(const json_t *task);

/* The same as sacct has it: COMPLETING is the state that the task is about to have. */
const char *slurm_state_account(const json_t *task);

/* Has the task started, and is it not back in the queue? */
bool slurm_has_started(const json_t *task);

/* Returns the whole name of a state, "PD", "pending" or "PENDING"; NULL: Slurm has none of that
 * name. */
const char *slurm_state_parse(const char *text, size_t size);

#endif
