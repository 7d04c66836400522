/* SPDX-License-Identifier: Apache-2.0 */
/* The objects of one JSON list, one at a time, whatever the size of the file. */
#ifndef COLLOC_TRACE_ARRAY_STREAM_H
#define COLLOC_TRACE_ARRAY_STREAM_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/fault.h"

enum { ARRAY_OBJECT_MAX = 1 << 24 }; /* bytes of one object */

struct array_stream {
    FILE *file;       /* borrowed */
    const char *name; /* of the file, for faults; borrowed */
    int64_t line;     /* of the next byte */
    int64_t begins;   /* the line in which the last object begins */
    int64_t n;        /* objects so far */
    size_t taken;     /* bytes of the present object */
    int first;        /* its first byte, put back, or 0 */
};

/* Reads up to the first object. 0 or -EBADMSG with the line in the fault. */
int array_stream_open(
    struct array_stream *stream, FILE *file, const char *name, struct fault *fault);

/* 1: an object, for the caller to release; 0: the list has ended; -EBADMSG, -EIO or -ENOMEM with
 * the line in the fault.
 */
int array_stream_next(struct array_stream *stream, struct fault *fault, json_t **ret_object);

#endif
