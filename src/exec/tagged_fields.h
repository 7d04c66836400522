/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tagged fields: the form of the files between the daemon and a shim. A record is a list of fields,
 * each written as "KEY SIZE VALUE\n" with SIZE the number of bytes of VALUE, so that a value may
 * hold anything and `cat` still shows it. The first field names the kind of record and its version.
 * Keys may repeat (lists).
 */
#ifndef COLLOC_EXEC_TAGGED_FIELDS_H
#define COLLOC_EXEC_TAGGED_FIELDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

/* A record that is being written; zeroed, it is empty. tagged_fields_finish reports errors. */
struct tagged_fields {
    char *data;
    size_t size, capacity;
    bool failed;
};

/* Appends a field, whose value may have any bytes. */
void tagged_fields_put_text(
    struct tagged_fields *record, const char *key, const char *value); /* NULL writes nothing */
void tagged_fields_put_int(struct tagged_fields *record, const char *key, int64_t value);

/* Returns 0, or -ENOMEM if any field could not be added. tagged_fields_fini must follow. */
int tagged_fields_finish(const struct tagged_fields *record);
void tagged_fields_fini(struct tagged_fields *record);

/* Reads the first field of `rest` and removes it there. Returns 1; 0 at the end; -EBADMSG for bytes
 * that are no field. */
int tagged_fields_next(struct span *rest, struct span *ret_key, struct span *ret_value);

/* Reads a value as an integer within [min, max]. Returns 0 or -EBADMSG. */
int tagged_fields_int(struct span value, int64_t min, int64_t max, int64_t *ret);

#endif
