/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the scheduler learns from completed runs, as the daemon does (daemon/command_history.h): a
 * task of the catalogue is a command. Once a run of a user has completed, its memory and activity
 * are known for the user's runs that wait and for those to come.
 */
#ifndef COLLOC_SIM_LEARNED_RUNS_H
#define COLLOC_SIM_LEARNED_RUNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Of one task of the catalogue: the users with a completed run. */
struct learned_runs {
    uint32_t *uids;
    size_t n, capacity;
};

/* Has a run of the user completed? */
bool learned_runs_knows(const struct learned_runs *runs, uint32_t uid);

/* Notes that one has. Returns 1 when it is the first, 0, or -ENOMEM. */
int learned_runs_note(struct learned_runs *runs, uint32_t uid);

void learned_runs_fini(struct learned_runs *runs);

#endif
