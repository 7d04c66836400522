/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a long JSON list without holding it in memory. This file finds the start of each object of
 * the list, and lets the JSON parser read that object: so memory is needed for one object only. The
 * parser gets one byte at a time, since it must not read beyond its object.
 */
#include "trace/array_stream.h"

#include <errno.h>
#include <string.h>

static int get_byte(struct array_stream *stream)
{
    int c = getc_unlocked(stream->file);
    stream->line += c == '\n';
    return c;
}

static int get_solid(struct array_stream *stream)
{
    int c;
    do
        c = get_byte(stream);
    while (c == ' ' || c == '\t' || c == '\r' || c == '\n');
    return c;
}

static int report_broken(const struct array_stream *stream, struct fault *fault, const char *what)
{
    if (ferror(stream->file))
        return fault_set(fault, EIO, "%s:%lld: the file cannot be read further", stream->name,
            (long long)stream->line);
    return fault_set(fault, EBADMSG, "%s:%lld: %s", stream->name, (long long)stream->line, what);
}

int array_stream_open(
    struct array_stream *stream, FILE *file, const char *name, struct fault *fault)
{
    *stream = (struct array_stream){.file = file, .name = name, .line = 1};
    int c = get_solid(stream);
    if (c == 0xef && get_byte(stream) == 0xbb && get_byte(stream) == 0xbf) /* a byte order mark */
        c = get_solid(stream);
    return c == '[' ? 0 : report_broken(stream, fault, "the list of jobs must begin with \"[\"");
}

/* A byte at a time, so that the parser never reads beyond the object. */
static size_t feed_parser(void *buffer, size_t size, void *data)
{
    struct array_stream *stream = data;
    int c = stream->first ? stream->first : get_byte(stream);
    stream->first = 0;
    if (size == 0 || c == EOF || ++stream->taken > ARRAY_OBJECT_MAX)
        return 0;
    *(char *)buffer = (char)c;
    return 1;
}

static int read_object(struct array_stream *stream, struct fault *fault, json_t **ret_object)
{
    json_error_t error;
    char what[sizeof error.text + 100];
    stream->first = '{';
    stream->taken = 0;
    stream->begins = stream->line;
    *ret_object = json_load_callback(feed_parser, stream, JSON_DISABLE_EOF_CHECK, &error);
    if (*ret_object) {
        stream->n++;
        return 1;
    }
    if (error.text[0] == '\0') /* the parser's one way of saying so */
        return fault_set(
            fault, ENOMEM, "%s:%lld: out of memory", stream->name, (long long)stream->line);
    if (stream->taken > ARRAY_OBJECT_MAX)
        snprintf(what, sizeof what, "one job of more than %d MiB, from line %lld on",
            ARRAY_OBJECT_MAX >> 20, (long long)stream->begins);
    else if (feof(stream->file))
        snprintf(what, sizeof what, "the log breaks off within job %lld, which begins in line %lld",
            (long long)stream->n + 1, (long long)stream->begins);
    else
        snprintf(what, sizeof what, "no JSON: %s", error.text);
    return report_broken(stream, fault, what);
}

int array_stream_next(struct array_stream *stream, struct fault *fault, json_t **ret_object)
{
    int c = get_solid(stream);
    if (stream->n && c == ',')
        c = get_solid(stream);
    else if (stream->n && c != ']' && c != EOF)
        return report_broken(stream, fault, "a comma or the list's \"]\" is missing behind a job");
    if (c == '{')
        return read_object(stream, fault, ret_object);
    if (c == ']')
        return get_solid(stream) == EOF && !ferror(stream->file)
                   ? 0
                   : report_broken(stream, fault, "there is something behind the list of jobs");
    return report_broken(stream, fault,
        c == EOF ? "the log breaks off: the list has no end" : "a job must begin with \"{\"");
}
