/* SPDX-License-Identifier: Apache-2.0 */
#ifndef COLLOC_DAEMON_HTTP_PROMETHEUS_H
#define COLLOC_DAEMON_HTTP_PROMETHEUS_H

struct http;

/* Returns GPUs and tasks in Prometheus' text format, which the caller frees; NULL when memory is
 * out. */
char *prometheus_text(const struct http *http);

#endif
