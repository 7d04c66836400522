/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of a report as JSON, which a report (node_report.c) and changes of one (node_changes.c)
 * have in common. */
#ifndef COLLOC_NODELINK_NODE_REPORT_JSON_H
#define COLLOC_NODELINK_NODE_REPORT_JSON_H

#include "nodelink/json_field.h"
#include "nodelink/node_report.h"

enum { REPORT_VERSION = 1 };

#define BYTES_MAX 1e15 /* chosen: beyond any GPU's memory, exact in a double */
#define POWER_MAX 1e5  /* watts; chosen */

/* Each returns a new object, or NULL when memory is out. A crash or a job whose text is no
 * UTF-8 is left out. */
json_t *node_gpu_json(const struct node_gpu *gpu);
json_t *node_crashes_json(const struct node_report *report);
json_t *node_jobs_json(const struct node_report *report);

/*
 * Writes an object as text, and releases it.
 *
 * object:   taken over; NULL: memory was out
 * ret_text: `ret_size` bytes and a NUL; the caller frees it
 *
 * Returns 0 or -ENOMEM.
 */
int node_json_write(json_t *object, char **ret_text, size_t *ret_size);

/* Reads a GPU of a list; what it allocates is the GPU's, also after an error. Returns 0, or
 * -EINVAL or -ENOMEM with a fault. */
int node_gpu_read(const json_t *object, struct fault *fault, struct node_gpu *gpu);

/* Reads the list "crashes" into a report that has none. Returns as node_gpu_read. */
int node_crashes_read(const json_t *object, struct fault *fault, struct node_report *report);

/* As node_crashes_read, of the list "jobs". */
int node_jobs_read(const json_t *object, struct fault *fault, struct node_report *report);

/* Reads a whole report into `ret_value`, an empty struct node_report. Returns as node_gpu_read. */
int node_report_read(const json_t *object, struct fault *fault, void *ret_value);

#endif
