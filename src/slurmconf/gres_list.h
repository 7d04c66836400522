/* SPDX-License-Identifier: Apache-2.0 */
/* The generic resources of a node as slurm.conf writes them: "gpu:a100:4(S:0-1),nvme:1". */
#ifndef COLLOC_SLURMCONF_GRES_LIST_H
#define COLLOC_SLURMCONF_GRES_LIST_H

#include <stdio.h>

#include "base/text.h"

enum { NODE_GPUS_MAX = 64 }; /* chosen: four times what one server has today */

/*
 * Takes the next entry off the front of a list; commas inside parentheses belong to the entry.
 *
 * Returns false at the end.
 */
bool gres_list_next(struct span *rest, struct span *ret_entry);

/* Is the entry one of this resource: "gpu", "gpu:4" or "gpu:a100:4"? */
bool gres_entry_is(struct span entry, const char *name);

/* Returns how many of a resource the list has; an entry without a number is one. */
int gres_list_count(struct span list, const char *name);

/* Returns the largest number of typed shards for each index that the list has without a gap:
 * "shard:i0:80,shard:i1:80" has 2. */
int gres_list_typed_shards(struct span list);

/*
 * Writes the list with GPUs and shards typed by index, i0 and so on; entries of other resources
 * stay.
 */
void gres_list_write_typed(FILE *out, struct span list, int gpus, int shards);

#endif
