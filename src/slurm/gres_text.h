/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slurm's texts of generic resources: "gres:gpu:2", "gres/shard:i0:20,gres/shard:i3:10" of a job,
 * "gpu:i0:1(S:0-1),shard:i0:80(S:0-1)" of a node. 22.05 writes "gres:", 24.11 "gres/"; both read
 * "gres:". The type iK stands for the GPU of index K.
 */
#ifndef COLLOC_SLURM_GRES_TEXT_H
#define COLLOC_SLURM_GRES_TEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"

enum { GRES_INDEX_MAX = 64 }; /* GPUs of one node */

struct gres_item {
    char name[32]; /* "gpu" */
    char type[32]; /* "i2", "a100"; "": none given */
    int64_t count;
};

/*
 * Removes the next item from the front of `text`. Any bytes are accepted; what is no item is
 * skipped.
 *
 * Returns false at the end.
 */
bool gres_next(struct span *text, struct gres_item *ret_item);

/* Returns K of a type "iK", or -1. */
int gres_type_index(const char *type);

/* Sums the counts of all items of this name, whatever their type. `text` may be NULL. */
int64_t gres_count(const char *text, const char *name);

/* Writes the counts of the items `name:iK` by K; others stay 0. Returns how many indices have a
 * count. `text` may be NULL. */
int gres_counts_by_index(
    const char *text, const char *name, int64_t ret_counts[static GRES_INDEX_MAX]);

/*
 * Writes a request for `shards` of each GPU in `indices`: "gres:shard:i0:20,gres:shard:i3:20".
 *
 * indices: a bit for each GPU
 *
 * Returns false when the text was cut.
 */
bool gres_format_shards(uint64_t indices, int64_t shards, char *text, size_t size);

#endif
