/* SPDX-License-Identifier: Apache-2.0 */
/* The stored metrics of tasks and GPUs over time, as the JSON of docs/protocol.md. */
#ifndef COLLOC_DAEMON_METRIC_QUERY_H
#define COLLOC_DAEMON_METRIC_QUERY_H

#include <stdbool.h>

#include "store/metric_db.h"

/* A GPU as the asker may name it. */
struct metric_gpu {
    char uuid[METRIC_GPU_SIZE];
    char index[24];
};

struct metric_query {
    bool as_rows;      /* the GPUs' own, as GET /v1/samples has them; `with_...` do not count */
    uint64_t task;     /* 0: the GPUs of the list that are `wanted` */
    bool with_tasks;   /* of a GPU: its tasks' series, too */
    bool with_range;   /* minimum and maximum beside the mean */
    char metrics[256]; /* names, comma-separated; "": all */
    int64_t since_ms;  /* wall clock; 0: of a task: its first sample */
    int64_t until_ms;
    int64_t step_ms; /* 0: METRIC_POINTS_USUAL buckets */
    size_t n_gpus;   /* all that have an index now, */
    size_t only_gpu; /* of which this one is requested; n_gpus: all */
    struct metric_gpu gpus[];
};

enum { METRIC_POINTS_USUAL = 500, METRIC_POINTS_MAX = 5000 }; /* chosen: a graph has fewer pixels */

/*
 * Receives an answer.
 *
 * text: JSON, which the receiver frees; NULL: `fault` says why there is none
 */
typedef void metric_on_answer(void *context, char *text, const struct fault *fault);

/*
 * Answers a query.
 *
 * head: further members of the answer's object, such as "\"task\":12"; not empty
 *
 * Returns the answer as JSON, for the caller to free; NULL with a fault.
 */
char *metric_query_run(
    struct metric_db *db, const struct metric_query *query, const char *head, struct fault *fault);

/* The same for a query with `as_rows` (metric_rows.c); without GPUs `db` may be NULL. */
char *metric_rows_run(struct metric_db *db, const struct metric_query *query, struct fault *fault);

/* The length of buckets for a span: at least `wanted_ms` (0: as METRIC_POINTS_USUAL asks), and so
 * that there are at most METRIC_POINTS_MAX. */
int64_t metric_query_step(int64_t span_ms, int64_t wanted_ms);

#endif
