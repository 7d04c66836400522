/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/told.h"

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

static void tell_epoch(struct told *told, const json_t *object)
{
    struct reading seconds = number_of(object, "seconds"), from = number_of(object, "from");
    struct reading to = number_of(object, "to"), samples = number_of(object, "samples");
    if (!seconds.valid || seconds.value <= 0 || !from.valid || !to.valid)
        return;
    if (told->n_epochs < TOLD_EPOCHS_MAX)
        told->epochs[told->n_epochs] = (struct told_epoch){
            told->n_epochs + 1,
            seconds.value,
            from.value,
            to.value,
            reading_or(samples, 0),
        };
    told->n_epochs += told->n_epochs < TOLD_EPOCHS_MAX;
}

void told_line(struct told *told, const char *line, size_t size)
{
    if (size == 0 || line[0] != '{')
        return;
    json_t *object = json_loadb(line, size, 0, NULL);
    const char *event = json_string_value(json_object_get(object, "event"));
    if (event && strcmp(event, "begin") == 0)
        told->began_unix_s = number_of(object, "at");
    else if (event && strcmp(event, "ready") == 0)
        told->ready_unix_s = number_of(object, "at");
    else if (event && strcmp(event, "epoch") == 0)
        tell_epoch(told, object);
    else if (event && strcmp(event, "end") == 0) {
        told->ended_unix_s = number_of(object, "at");
        told->reserved_mib = number_of(object, "reserved_mib");
    }
    json_decref(object);
}

void told_bytes(struct told_stream *stream, struct told *told, const char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (bytes[i] == '\n') {
            if (!stream->too_long)
                told_line(told, stream->line, stream->size);
            stream->size = 0;
            stream->too_long = false;
        } else if (stream->size < sizeof stream->line)
            stream->line[stream->size++] = bytes[i];
        else
            stream->too_long = true;
    }
}
