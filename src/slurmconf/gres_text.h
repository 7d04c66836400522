/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slurm's texts of generic resources: "gres:gpu:2", "gres/shard:i0:20,gres/shard:i3:10" of a job,
 * "gpu:i0:1(S:0-1),shard:i0:80(S:0-1)" of a node, "gpu:a100:4(S:0-1),nvme:1" in slurm.conf. 22.05
 * writes "gres:", 24.11 "gres/"; both read "gres:". The type iK means the GPU with the device file
 * /dev/nvidiaK: the agent of a node counts GPUs by that number.
 *
 * Any bytes are accepted. An entry that is not an item is skipped.
 */
#ifndef COLLOC_SLURMCONF_GRES_TEXT_H
#define COLLOC_SLURMCONF_GRES_TEXT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/text.h"

enum { GRES_INDEX_MAX = 64 }; /* GPUs of one node; chosen: four times what a server has today */

struct gres_item {
    char name[32]; /* "gpu" */
    char type[32]; /* "i2", "a100"; "": none given */
    int64_t count; /* without a number 1, of a number beyond INT32_MAX that */
};

/* Removes the next item from the front of `text`. Returns false at the end. */
bool gres_next(struct span *text, struct gres_item *ret_item);

/* Returns K of a type "iK", or -1. */
int gres_type_index(const char *type);

/* Is the type one of MIG instances, such as "1g.10gb" or "1c.3g.20gb"? */
bool gres_is_mig_type(const char *type);

/* Sums the counts of all items of this name, whatever their type. */
int64_t gres_count(struct span text, const char *name);

/* Writes the counts of the items `name:iK` by K; others stay 0. Returns how many indices have a
 * count. */
int gres_counts_by_index(
    struct span text, const char *name, int64_t ret_counts[static GRES_INDEX_MAX]);

/* Returns how many GPUs have shards of their index: "shard:i2:80,shard:i3:80" has 2. */
int gres_count_typed(struct span text);

/* Returns the number at the end of a device file's name, which is the K of its GPU's type:
 * "/dev/nvidia2" has 2. Returns -1 where there is none, it is too large, or the file is of a MIG
 * instance. */
int gres_file_number(struct span file);

/*
 * Writes a request for `shards` of each GPU in `indices`: "gres:shard:i0:20,gres:shard:i3:20".
 *
 * indices: a bit for each GPU
 *
 * Returns false when the text was cut.
 */
bool gres_format_shards(uint64_t indices, int64_t shards, char *text, size_t size);

/*
 * Writes a node's list anew with its GPUs and shards typed by index; entries of other resources
 * stay as they are, whether they are items or not. `gpu:a100:2(S:0-1),nvme:1` becomes
 *
 *     nvme:1,gpu:i0:1,gpu:i1:1,shard:i0:80,shard:i1:80
 *
 * indices: a bit for each GPU
 * shards:  of each GPU
 */
void gres_write_typed(FILE *out, struct span list, uint64_t indices, int shards);

#endif
