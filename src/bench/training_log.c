/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the events begin, ready, epoch and end. A training writes them to a pipe in pieces of any
 * size, so lines are assembled first; a line that is no JSON object is the training's own output
 * and is ignored. */
#include "bench/training_log.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

static struct reading number_of(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    return json_is_number(value) && isfinite(json_number_value(value))
               ? reading_of(json_number_value(value))
               : READING_NONE;
}

static void add_epoch(struct training_report *report, const json_t *object)
{
    struct reading seconds = number_of(object, "seconds"), from = number_of(object, "from");
    struct reading to = number_of(object, "to"), samples = number_of(object, "samples");
    if (!seconds.valid || seconds.value <= 0 || !from.valid || !to.valid)
        return;
    if (report->n_epochs < TRAINING_EPOCHS_MAX)
        report->epochs[report->n_epochs] = (struct training_epoch){
            report->n_epochs + 1,
            seconds.value,
            from.value,
            to.value,
            reading_or(samples, 0),
        };
    report->n_epochs += report->n_epochs < TRAINING_EPOCHS_MAX;
}

void training_log_parse_line(struct training_report *report, const char *line, size_t size)
{
    if (size == 0 || line[0] != '{')
        return;
    json_t *object = json_loadb(line, size, 0, NULL);
    const char *event = json_string_value(json_object_get(object, "event"));
    if (event && strcmp(event, "begin") == 0)
        report->began_unix_s = number_of(object, "at");
    else if (event && strcmp(event, "ready") == 0)
        report->ready_unix_s = number_of(object, "at");
    else if (event && strcmp(event, "epoch") == 0)
        add_epoch(report, object);
    else if (event && strcmp(event, "end") == 0) {
        report->ended_unix_s = number_of(object, "at");
        report->reserved_mib = number_of(object, "reserved_mib");
    }
    json_decref(object);
}

void training_log_feed(
    struct training_log *log, struct training_report *report, const char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (bytes[i] == '\n') {
            if (!log->too_long)
                training_log_parse_line(report, log->line, log->size);
            log->size = 0;
            log->too_long = false;
        } else if (log->size < sizeof log->line)
            log->line[log->size++] = bytes[i];
        else
            log->too_long = true;
    }
}
