/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file of records, each an `Event` in protobuf's encoding with two checksums:
 *
 *     record   length (8 bytes, little endian), its masked CRC-32C, the event, its masked CRC-32C
 *     event    1: wall_time (double), 2: step (varint), 5: summary
 *     summary  1, repeated: value { 1: tag, 2: simple_value (float), 8: tensor }
 *     tensor   1: dtype, 4: content (bytes), 5: float_val, 6: double_val
 *
 * (tensorflow/core/lib/io/record_writer.cc, tensorflow/core/util/event.proto, summary.proto and
 * tensor.proto). PyTorch and TensorFlow 1 write simple_value, TensorFlow 2 a tensor of one number.
 */
#include "cli/event_records.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/text.h"

#define CASTAGNOLI UINT32_C(0x82f63b78) /* CRC-32C's polynomial, its bits reversed (RFC 3720) */
#define MASK_DELTA UINT32_C(0xa282ead8) /* of record_writer.cc */

/* ---- checksums ---- */

static uint32_t masked_crc(const unsigned char *data, size_t size)
{
    uint32_t crc = UINT32_MAX;
    for (size_t i = 0; i < size; i++) {
        crc ^= data[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? CASTAGNOLI : 0);
    }
    crc = ~crc;
    return (crc >> 15 | crc << 17) + MASK_DELTA;
}

static uint64_t little_endian(const unsigned char *at, int bytes)
{
    uint64_t number = 0;
    for (int i = 0; i < bytes; i++)
        number |= (uint64_t)at[i] << 8 * i;
    return number;
}

static double as_double(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static double as_float(uint64_t bits)
{
    uint32_t low = (uint32_t)bits;
    float value;
    memcpy(&value, &low, sizeof value);
    return value;
}

int event_head_read(const unsigned char head[EVENT_HEAD_SIZE], uint64_t *ret_event_size)
{
    *ret_event_size = little_endian(head, 8);
    return masked_crc(head, 8) == little_endian(head + 8, 4) ? 0 : -EBADMSG;
}

/* ---- protobuf ---- */

enum wire { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };

struct message {
    const unsigned char *at, *end;
};

struct field {
    uint64_t number;
    enum wire wire;
    uint64_t bits;        /* of a number */
    struct message bytes; /* of WIRE_BYTES */
};

static bool take_varint(struct message *message, uint64_t *ret_number)
{
    *ret_number = 0;
    for (int shift = 0; shift < 64 && message->at < message->end; shift += 7) {
        unsigned char byte = *message->at++;
        *ret_number |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return true;
    }
    return false;
}

static bool take_bytes(struct message *message, uint64_t size, struct message *ret_bytes)
{
    if (size > (uint64_t)(message->end - message->at))
        return false;
    *ret_bytes = (struct message){message->at, message->at + size};
    message->at += size;
    return true;
}

/* Returns 1, 0 at the end, or -EBADMSG. */
static int take_field(struct message *message, struct field *ret_field)
{
    uint64_t key, size = 0;
    *ret_field = (struct field){0};
    if (message->at == message->end)
        return 0;
    if (!take_varint(message, &key))
        return -EBADMSG;
    ret_field->number = key >> 3;
    ret_field->wire = (enum wire)(key & 7);
    switch (ret_field->wire) {
    case WIRE_VARINT:
        return take_varint(message, &ret_field->bits) ? 1 : -EBADMSG;
    case WIRE_BYTES:
        return take_varint(message, &size) && take_bytes(message, size, &ret_field->bytes)
                   ? 1
                   : -EBADMSG;
    case WIRE_64:
    case WIRE_32:
        size = ret_field->wire == WIRE_64 ? 8 : 4;
        if (!take_bytes(message, size, &ret_field->bytes))
            return -EBADMSG;
        ret_field->bits = little_endian(ret_field->bytes.at, (int)size);
        return 1;
    default:
        return -EBADMSG; /* groups are not written any more */
    }
}

/* ---- the event ---- */

enum { TYPE_FLOAT = 1, TYPE_DOUBLE = 2 }; /* tensorflow/core/framework/types.proto */

/* The first number of a list that may be packed: its bytes, or a field of each number. */
static bool first_number(const struct field *field, int size, double *ret_value)
{
    uint64_t bits = field->bits;
    if (field->wire == WIRE_BYTES) {
        if (field->bytes.end - field->bytes.at < size)
            return false;
        bits = little_endian(field->bytes.at, size);
    }
    *ret_value = size == 4 ? as_float(bits) : as_double(bits);
    return true;
}

static int read_tensor(struct message tensor, bool *ret_has, double *ret_value)
{
    struct field field, content = {0};
    uint64_t type = 0;
    int r;
    while ((r = take_field(&tensor, &field)) == 1)
        if (field.number == 1 && field.wire == WIRE_VARINT)
            type = field.bits;
        else if (field.number == 4 && field.wire == WIRE_BYTES)
            content = field;
        else if (field.number == 5 && (field.wire == WIRE_32 || field.wire == WIRE_BYTES))
            *ret_has |= first_number(&field, 4, ret_value);
        else if (field.number == 6 && (field.wire == WIRE_64 || field.wire == WIRE_BYTES))
            *ret_has |= first_number(&field, 8, ret_value);
    int size = type == TYPE_FLOAT ? 4 : type == TYPE_DOUBLE ? 8 : 0;
    if (r == 0 && size && !*ret_has && content.wire == WIRE_BYTES)
        *ret_has = first_number(&content, size, ret_value);
    return r;
}

/* Reads one value of the summary. `ret_has`: it is a scalar of that tag. */
static int read_value(struct message value, const char *tag, bool *ret_has, double *ret_value)
{
    struct field field;
    bool is_tag = false, has_number = false;
    int r;
    while ((r = take_field(&value, &field)) == 1) {
        if (field.number == 1 && field.wire == WIRE_BYTES) {
            is_tag = span_is((struct span){(const char *)field.bytes.at,
                                 (size_t)(field.bytes.end - field.bytes.at)},
                tag);
        } else if (field.number == 2 && field.wire == WIRE_32) {
            *ret_value = as_float(field.bits);
            has_number = true;
        } else if (field.number == 8 && field.wire == WIRE_BYTES) {
            r = read_tensor(field.bytes, &has_number, ret_value);
            if (r < 0)
                return r;
        }
    }
    *ret_has = is_tag && has_number;
    return r;
}

static int read_summary(struct message summary, const char *tag, struct event_scalar *scalar,
    const struct event_visitor *visitor)
{
    struct field field;
    bool has;
    int r;
    while ((r = take_field(&summary, &field)) == 1) {
        if (field.number != 1 || field.wire != WIRE_BYTES)
            continue;
        r = read_value(field.bytes, tag, &has, &scalar->value);
        if (r < 0)
            return r;
        if (has)
            visitor->on_scalar(visitor->context, scalar);
    }
    return r;
}

int event_fields_read(
    const unsigned char *data, size_t size, const char *tag, const struct event_visitor *visitor)
{
    struct message event = {data, data + size}, summary = {0};
    struct event_scalar scalar = {0};
    struct field field;
    int r;
    while ((r = take_field(&event, &field)) == 1)
        if (field.number == 1 && field.wire == WIRE_64)
            scalar.time_s = as_double(field.bits);
        else if (field.number == 2 && field.wire == WIRE_VARINT)
            scalar.step = (int64_t)field.bits;
        else if (field.number == 5 && field.wire == WIRE_BYTES)
            summary = field.bytes;
    return r < 0 || !summary.at ? r : read_summary(summary, tag, &scalar, visitor);
}

int event_read(
    const unsigned char *data, size_t size, const char *tag, const struct event_visitor *visitor)
{
    bool is_whole = masked_crc(data, size) == little_endian(data + size, EVENT_TAIL_SIZE);
    return is_whole ? event_fields_read(data, size, tag, visitor) : -EBADMSG;
}
