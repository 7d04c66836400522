/* SPDX-License-Identifier: Apache-2.0 */
/* Are the two partitions of colloc as it needs them? */
#ifndef COLLOC_SLURM_PARTITION_CHECK_H
#define COLLOC_SLURM_PARTITION_CHECK_H

#include <stddef.h>

/*
 * Asks slurmctld.
 *
 * ret_text: the fault, and what to do; "": none. Unchanged if slurmctld does not answer
 */
void partition_check(const char *intake, const char *run, char *ret_text, size_t size);

#endif
