/* SPDX-License-Identifier: Apache-2.0 */
/* Slurm's own commands, run in a helper process: so the agent works with any version of Slurm. */
#ifndef COLLOC_DAEMON_NODE_SLURM_CLIENT_H
#define COLLOC_DAEMON_NODE_SLURM_CLIENT_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Runs a program, found on PATH, and waits for its end: in a helper process only. The program is
 * killed when the caller ends.
 *
 * ret_text: what it wrote to standard output; where its exit status is not 0, then what it wrote to
 *           standard error; truncated and NUL-terminated
 *
 * Returns its exit status; -ENOENT: there is no such program; or another -errno.
 */
int slurm_client_run(const char *const *argv, char *ret_text, size_t size);

/*
 * Finds a field in what `scontrol --oneliner show job` or `scontrol show config` prints: "KEY=" or
 * "KEY   = ", up to the next blank, or to `end` where the value may have blanks.
 * Returns false when there is none, or it is longer than `size`.
 */
bool slurm_client_field(
    const char *text, const char *key, const char *end, char *ret_value, size_t size);

#endif
