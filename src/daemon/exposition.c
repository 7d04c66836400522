/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes metrics in the forms of Prometheus and OpenMetrics. The two formats differ in what
 * surrounds the samples: OpenMetrics names a family without the suffix of its samples, knows the
 * type info, and ends with a line that shows that nothing was cut off.
 */
#include "daemon/exposition.h"

#include <string.h>

#include "base/text.h"

/* The length of a family's name in OpenMetrics. */
static int family_size(const struct metric_family *family)
{
    const char *suffix = strcmp(family->type, "counter") == 0 ? "_total"
                         : strcmp(family->type, "info") == 0  ? "_info"
                                                              : "";
    return (int)(strlen(family->name) - strlen(suffix));
}

void exposition_begin(const struct exposition *to, const struct metric_family *family)
{
    int size = to->is_openmetrics ? family_size(family) : (int)strlen(family->name);
    bool is_gauge = !to->is_openmetrics && strcmp(family->type, "info") == 0;
    fprintf(to->out, "# HELP %.*s %s\n# TYPE %.*s %s\n", size, family->name, family->help, size,
        family->name, is_gauge ? "gauge" : family->type);
}

void exposition_label(
    const struct exposition *to, const char *before, const char *name, const char *value)
{
    unsigned number;
    fprintf(to->out, "%s%s=\"", before, name);
    for (; *value; value++) {
        size_t control = *value == '\n' ? 0 : text_control(value, &number);
        if (control) {
            fputc('?', to->out);
            value += control - 1;
        } else if (*value == '\n')
            fputs("\\n", to->out);
        else if (*value == '"' || *value == '\\')
            fprintf(to->out, "\\%c", *value);
        else
            fputc(*value, to->out);
    }
    fputc('"', to->out);
}

void exposition_reading(const struct exposition *to, struct reading reading, double unit)
{
    fprintf(to->out, "} %.15g\n", reading.value * unit);
}

void exposition_end(const struct exposition *to)
{
    if (to->is_openmetrics)
        fputs("# EOF\n", to->out);
}

const char *exposition_type(bool is_openmetrics)
{
    return is_openmetrics ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                          : "text/plain; version=0.0.4; charset=utf-8";
}

/* Prometheus lists it first where it wants it at all; weights (q=) are not compared. */
bool exposition_wants_openmetrics(const char *accept)
{
    return accept && strstr(accept, "application/openmetrics-text");
}
