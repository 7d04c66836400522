/* SPDX-License-Identifier: Apache-2.0 */
/* GPUs and tasks as metrics for Prometheus. */
#ifndef COLLOC_DAEMON_HTTP_PROMETHEUS_H
#define COLLOC_DAEMON_HTTP_PROMETHEUS_H

#include "daemon/exposition.h"
#include "daemon/gpu_report.h"
#include "daemon/http/http_state.h"

/* Returns all metrics, for the caller to free; NULL when memory is out. */
char *prometheus_text(const struct http *http, bool is_openmetrics);

/*
 * Returns them for the readers of the daemon's socket, which may be many: a text that took long
 * to make is used again for so long that the loop spends at most a twentieth of its time on them.
 * Borrowed until the next call; NULL when memory is out.
 */
const char *prometheus_shared_text(struct http *http, bool is_openmetrics);

/* Writes the metrics of tasks (prometheus_tasks.c). Returns 0 or -ENOMEM. */
int prometheus_put_tasks(const struct exposition *to, const struct http *http);

#endif
