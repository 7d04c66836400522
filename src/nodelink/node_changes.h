/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A report as what has changed since the one before it, which is a quarter as long and as costly to
 * read (docs/measured/slurm.md). Between two reports of a node mostly some readings change:
 *
 *     {"v": 1, "since": 81, "sequence": 82, "time_us": ..., "memory_used": [1073741824, 0],
 *      "smact": [0.53, null], "power": [310.5, 61.2], "process_memory": [[1073741824], null]}
 *
 * The lists have one value for each GPU of the report, in its order; null is a reading that is not
 * known. A list that is left out has not changed. "process_memory" has a list for each GPU, with
 * one value for each of its processes; null there is a GPU of which none has changed. A GPU of
 * which anything else has changed is in "gpus", whole, and "crashes" and "jobs" are there when they have changed.
 *
 * Contract:
 *   1. What is decoded onto a report is what the whole report would have decoded to.
 *   2. Changes name the report that they were made of, by its sequence ("since"), and fit no other.
 *      The decoder says so, and the report of which it knows stays as it was.
 *   3. Without "since" it is a whole report, which needs no other.
 */
#ifndef COLLOC_NODELINK_NODE_CHANGES_H
#define COLLOC_NODELINK_NODE_CHANGES_H

#include "nodelink/node_report.h"

enum { CHANGES_UNFIT = 1 }; /* the report before is no base for them */

/*
 * Writes what has changed, as JSON.
 *
 * base:     the report that the reader has
 * now:      within the bounds
 * ret_text: `ret_size` bytes and a NUL; the caller frees it
 *
 * Returns 0; CHANGES_UNFIT: other GPUs, another node or boot, so send the whole report; or -ENOMEM.
 */
int node_changes_encode(const struct node_report *base, const struct node_report *now,
    char **ret_text, size_t *ret_size);

/*
 * Reads changes or a whole report from any bytes.
 *
 * base:       the last report of the connection; its `node` is "": there was none
 * ret_report: the whole report now, to be released with node_report_fini, also after an error
 *
 * Returns 0; CHANGES_UNFIT with a fault: changes of another report than `base`; or what
 * node_report_decode does.
 */
int node_changes_decode(const struct node_report *base, const char *text, size_t size,
    struct fault *fault, struct node_report *ret_report);

#endif
