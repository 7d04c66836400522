/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the objects of a JSON list one at a time, so that a file of any size needs little
 * memory. */
#ifndef COLLOC_TRACE_ARRAY_STREAM_H
#define COLLOC_TRACE_ARRAY_STREAM_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/fault.h"

enum { ARRAY_OBJECT_MAX = 1 << 24 }; /* bytes of one object; chosen: far above any job */

struct array_stream {
    FILE *file;       /* borrowed */
    const char *name; /* of the file, for faults; borrowed */
    int64_t line;     /* of the next byte */
    int64_t begins;   /* the line in which the last object begins */
    int64_t n;        /* objects so far */
    size_t taken;     /* bytes of the present object */
    int first;        /* its first byte, put back, or 0 */
};

/* Reads up to the first object. `file` and `name` are borrowed. Returns 0, or -EBADMSG with the
 * line in the fault. */
int array_stream_open(
    struct array_stream *stream, FILE *file, const char *name, struct fault *fault);

/* Reads the next object, for the caller to release. Returns 1; 0 at the end of the list; -EBADMSG,
 * -EIO or -ENOMEM with the line in the fault. */
int array_stream_next(struct array_stream *stream, struct fault *fault, json_t **ret_object);

#endif
