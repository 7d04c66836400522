/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How metrics are written for Prometheus: its text format 0.0.4 and OpenMetrics 1.0.0.
 *
 *     text                                        OpenMetrics
 *     # HELP colloc_gpu_energy_joules_total ...   # HELP colloc_gpu_energy_joules ...
 *     # TYPE colloc_gpu_energy_joules_total ...   # TYPE colloc_gpu_energy_joules counter
 *     colloc_gpu_energy_joules_total{...} 12      colloc_gpu_energy_joules_total{...} 12
 *                                                 # EOF
 */
#ifndef COLLOC_DAEMON_EXPOSITION_H
#define COLLOC_DAEMON_EXPOSITION_H

#include <stdbool.h>
#include <stdio.h>

#include "base/reading.h"

struct exposition {
    FILE *out;
    bool is_openmetrics;
};

/* A name of samples and what they mean. */
struct metric_family {
    const char
        *name; /* as of its samples: of a counter it ends with _total, of an info with _info */
    const char *type; /* "gauge", "counter" or "info" */
    const char *help; /* without a quote, a backslash or a new line */
};

/* Writes the lines before a family's samples. */
void exposition_begin(const struct exposition *to, const struct metric_family *family);

/*
 * Writes a label and its value, as the format escapes it. Control characters, which the format
 * allows, become '?': a terminal would obey them.
 *
 * before: "{" or ","
 */
void exposition_label(
    const struct exposition *to, const char *before, const char *name, const char *value);

/* Writes a value behind the labels, multiplied by `unit`. */
void exposition_reading(const struct exposition *to, struct reading reading, double unit);

/* Ends the text. */
void exposition_end(const struct exposition *to);

/* Returns the Content-Type. */
const char *exposition_type(bool is_openmetrics);

/* Does a request with this Accept header want OpenMetrics? NULL: it has none. */
bool exposition_wants_openmetrics(const char *accept);

#endif
