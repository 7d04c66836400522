/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records: what the daemon and a shim tell each other in files. A record is a list of fields, each
 * written as "KEY SIZE VALUE\n" with SIZE the number of bytes of VALUE, so that a value may hold
 * anything and `cat` still shows it. The first field names the kind of record and its version. Keys
 * may repeat (lists).
 */
#ifndef COLLOC_EXEC_RECORD_H
#define COLLOC_EXEC_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

/* A record being written. Running out of memory is remembered and told once, by record_finish. */
struct record {
    char *data;
    size_t size, room;
    bool failed;
};

void record_put(struct record *record, const char *key, struct span value);
void record_put_text(
    struct record *record, const char *key, const char *value); /* NULL writes nothing */
void record_put_int(struct record *record, const char *key, int64_t value);

/* 0, or -ENOMEM when any put failed. record_fini frees the data either way. */
int record_finish(const struct record *record);
void record_fini(struct record *record);

/* Takes one field off the front. 1 when there was one, 0 at the end, -EBADMSG for anything that is
 * not a record. */
int record_next(struct span *rest, struct span *ret_key, struct span *ret_value);

/* Value as an integer within [min, max]. 0 or -EBADMSG. */
int record_int(struct span value, int64_t min, int64_t max, int64_t *ret);

#endif
