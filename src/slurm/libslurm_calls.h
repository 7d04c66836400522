/* SPDX-License-Identifier: Apache-2.0 */
/* The calls of slurm_job.h by libslurm, on the cluster that SLURM_CONF or /etc/slurm names. */
#ifndef COLLOC_SLURM_LIBSLURM_CALLS_H
#define COLLOC_SLURM_LIBSLURM_CALLS_H

#include "slurm/slurm_job.h"

/*
 * Prepares the calls; slurmctld need not run yet.
 *
 * intake_partition, run_partition: borrowed
 * ret_calls: for libslurm_calls_fini. A snapshot stays valid until the call of `load` after the
 *            next one.
 *
 * Returns 0 or -ENOMEM.
 */
int libslurm_calls_init(
    const char *intake_partition, const char *run_partition, struct slurm_calls *ret_calls);
void libslurm_calls_fini(struct slurm_calls *calls);

#endif
