/* SPDX-License-Identifier: Apache-2.0 */
/* Are the two partitions of colloc as it needs them? */
#ifndef COLLOC_SLURM_PARTITION_CHECK_H
#define COLLOC_SLURM_PARTITION_CHECK_H

#include <stddef.h>

/*
 * Asks slurmctld.
 *
 * ret_text: what is wrong, and what to do; "": nothing. When slurmctld does not answer it stays as
 *           it is
 */
void partition_check(const char *intake, const char *run, char *ret_text, size_t size);

#endif
