/* SPDX-License-Identifier: Apache-2.0 */
/* GPUs and tasks as metrics for Prometheus. */
#ifndef COLLOC_DAEMON_HTTP_PROMETHEUS_H
#define COLLOC_DAEMON_HTTP_PROMETHEUS_H

#include "daemon/exposition.h"
#include "daemon/gpu_report.h"
#include "daemon/http/http_state.h"

/* Returns all metrics, for the caller to free; NULL when memory is out. */
char *prometheus_text(const struct http *http, bool is_openmetrics);

/* Writes the metrics of tasks (prometheus_tasks.c). */
void prometheus_put_tasks(const struct exposition *to, const struct http *http);

#endif
