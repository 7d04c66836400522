/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A struct as a JSON object, by a table of its members: the key, the type, where the value is in
 * the struct, and its range. Writing and reading walk the same table, so they cannot disagree, and
 * the order of the rows is the order of the keys.
 *
 *     {"gpus", FIELD_INT, offsetof(struct task_request, gpus), REQUIRED, 0, INT_MAX, NULL}
 */
#ifndef COLLOC_STORE_FIELD_TABLE_H
#define COLLOC_STORE_FIELD_TABLE_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "base/array.h"
#include "base/fault.h"
#include "store/store.h"

/* The names of an enumeration; NULL for a value that is never written. */
struct names {
    const char *(*name)(int value);
    int n;
};

struct field {
    const char *key;
    enum {
        FIELD_BOOL,
        FIELD_INT,
        FIELD_UINT32,
        FIELD_INT64,
        FIELD_TEXT,     /* char[max] */
        FIELD_NAME,     /* an enumeration, by the names */
        FIELD_POLICY,   /* const struct policy * */
        FIELD_FRACTION, /* struct reading from 0 to 1 */
        FIELD_READING,  /* struct reading, any number */
        FIELD_WHOLE     /* struct reading, a whole number */
    } type;
    size_t offset;
    enum { REQUIRED, OPTIONAL } presence; /* OPTIONAL: left out when false, 0, "" or unknown */
    int64_t min, max;                     /* of a whole number; FIELD_TEXT: max is the size */
    const struct names *names;
};

struct fields {
    const struct field *field;
    size_t n;
};

#define FIELDS(table)                                                                              \
    {                                                                                              \
        table, ARRAY_SIZE(table)                                                                   \
    }

/* Writes the members of the struct `from` into the object. Returns 0 or -1: a text is not UTF-8, a
 * value has no name, or memory is out. */
int fields_encode(json_t *object, const struct fields *fields, const void *from);

/* Writes a list of `n` such objects under the key. `list` holds a struct each `size` bytes apart.
 * Returns as fields_encode. */
int fields_encode_list(json_t *object, const char *key, const struct fields *fields,
    const void *list, size_t size, int n);

/* What all reading functions need. */
struct decoding {
    store_find_policy *find_policy;
    struct fault *fault;
};

/* Reads one member. `value`: any JSON; NULL: it is missing, and `ret_value` stays as it is where it
 * is optional. Returns 0 or -EINVAL with a fault. */
int field_decode(const struct decoding *decoding, const struct field *field, const json_t *value,
    void *ret_value);

/* Reads the members of an object into the struct `to`. Returns as field_decode. */
int fields_decode(
    const struct decoding *decoding, const struct fields *fields, const json_t *object, void *to);

/*
 * Allocates zeroed entries for a list.
 *
 * list:        any JSON, or NULL
 * key:         of the list, for the fault
 * ret_entries: one more than the list has, for the caller to free
 *
 * Returns 0, -EINVAL or -ENOMEM with a fault.
 */
int fields_open_list(const struct decoding *decoding, const json_t *list, const char *key,
    size_t size, void **ret_entries, int *ret_n);

/* Reads a list of objects, as fields_encode_list writes it, into entries of `size` bytes. Returns
 * as fields_open_list; after an error there are no entries. */
int fields_decode_list(const struct decoding *decoding, const json_t *list, const char *key,
    const struct fields *fields, size_t size, void **ret_entries, int *ret_n);

#endif
