/* SPDX-License-Identifier: Apache-2.0 */
/* Writes and reads the files between the daemon and a shim. Writing grows one buffer; reading walks
 * through the bytes and copies nothing. */
#include "exec/tagged_fields.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/units.h"

static bool reserve_bytes(struct tagged_fields *record, size_t more)
{
    if (!record->failed && ARRAY_RESERVE(record->data, record->capacity, record->size + more) < 0)
        record->failed = true;
    return !record->failed;
}

static void tagged_fields_put(struct tagged_fields *record, const char *key, struct span value)
{
    if (!reserve_bytes(record, strlen(key) + value.size + 32))
        return;
    char *at = record->data + record->size;
    at += sprintf(at, "%s %zu ", key, value.size);
    if (value.size)
        at = mempcpy(at, value.at, value.size);
    *at++ = '\n';
    record->size = (size_t)(at - record->data);
}

void tagged_fields_put_text(struct tagged_fields *record, const char *key, const char *value)
{
    if (value)
        tagged_fields_put(record, key, span_of(value));
}

void tagged_fields_put_int(struct tagged_fields *record, const char *key, int64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRId64, value);
    tagged_fields_put_text(record, key, text);
}

int tagged_fields_finish(const struct tagged_fields *record)
{
    return record->failed ? -ENOMEM : 0;
}

void tagged_fields_fini(struct tagged_fields *record)
{
    free(record->data);
    *record = (struct tagged_fields){0};
}

/* Removes the bytes before the next blank from `rest`. */
static bool take_word(struct span *rest, struct span *ret_word)
{
    const char *blank = rest->size ? memchr(rest->at, ' ', rest->size) : NULL;
    if (!blank || blank == rest->at)
        return false;
    *ret_word = (struct span){rest->at, (size_t)(blank - rest->at)};
    rest->size -= ret_word->size + 1;
    rest->at = blank + 1;
    return true;
}

int tagged_fields_next(struct span *rest, struct span *ret_key, struct span *ret_value)
{
    if (rest->size == 0)
        return 0;
    struct span size_text;
    int64_t size;
    if (!take_word(rest, ret_key) || !take_word(rest, &size_text) ||
        tagged_fields_int(size_text, 0, INT32_MAX, &size) < 0 || rest->size <= (size_t)size ||
        rest->at[size] != '\n')
        return -EBADMSG;
    *ret_value = (struct span){rest->at, (size_t)size};
    rest->at += size + 1;
    rest->size -= (size_t)size + 1;
    return 1;
}

int tagged_fields_int(struct span value, int64_t min, int64_t max, int64_t *ret)
{
    char text[24];
    if (value.size == 0 || !span_copy(value, text, sizeof text) ||
        parse_int64(text, min, max, ret) < 0)
        return -EBADMSG;
    return 0;
}
