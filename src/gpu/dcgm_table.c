/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses dcgmi's output. The header names the columns by DCGM's short names:
 *
 *     #Entity   GPUTL  GRACT  SMACT
 *     ID
 *     GPU 0     98     0.97   0.61
 */
#include "gpu/dcgm_table.h"

#include <math.h>
#include <string.h>

#include "base/units.h"

enum unit { FRACTION, PER_CENT, BYTES_PER_S, WATT, MILLIJOULE };

/* DCGM's short names of the fields. */
static const struct {
    const char *name;
    enum unit unit;
} fields[DCGM_FIELDS] = {
    [DCGM_UTILISATION] = {"GPUTL", PER_CENT},
    [DCGM_GRACT] = {"GRACT", FRACTION},
    [DCGM_SMACT] = {"SMACT", FRACTION},
    [DCGM_SMOCC] = {"SMOCC", FRACTION},
    [DCGM_TENSOR] = {"TENSO", FRACTION},
    [DCGM_DRAM] = {"DRAMA", FRACTION},
    [DCGM_FP64] = {"FP64A", FRACTION},
    [DCGM_FP32] = {"FP32A", FRACTION},
    [DCGM_FP16] = {"FP16A", FRACTION},
    [DCGM_PCIE_TX] = {"PCITX", BYTES_PER_S},
    [DCGM_PCIE_RX] = {"PCIRX", BYTES_PER_S},
    [DCGM_NVLINK_TX] = {"NVLTX", BYTES_PER_S},
    [DCGM_NVLINK_RX] = {"NVLRX", BYTES_PER_S},
    [DCGM_POWER] = {"POWER", WATT},
    [DCGM_ENERGY] = {"TOTEC", MILLIJOULE},
};

/* ---- lines and words ---- */

static void append_piece(struct dcgm_lines *lines, const char *at, size_t size)
{
    if (lines->used + size > sizeof lines->text)
        lines->too_long = true;
    if (lines->too_long)
        return;
    memcpy(lines->text + lines->used, at, size);
    lines->used += size;
}

bool dcgm_lines_next(struct dcgm_lines *lines, struct span *piece, struct span *ret_line)
{
    while (piece->size > 0) {
        const char *end = memchr(piece->at, '\n', piece->size);
        size_t size = end ? (size_t)(end - piece->at) : piece->size;
        append_piece(lines, piece->at, size);
        piece->at += size + (end != NULL);
        piece->size -= size + (end != NULL);
        bool whole = end && !lines->too_long;
        *ret_line = (struct span){lines->text, lines->used};
        if (end) {
            lines->used = 0;
            lines->too_long = false;
        }
        if (whole)
            return true;
    }
    return false;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static bool next_word(struct span *line, struct span *ret_word)
{
    while (line->size > 0 && is_blank(*line->at)) {
        line->at++;
        line->size--;
    }
    *ret_word = (struct span){line->at, 0};
    while (line->size > 0 && !is_blank(*line->at)) {
        line->at++;
        line->size--;
        ret_word->size++;
    }
    return ret_word->size > 0;
}

static bool parse_gpu(struct span word, unsigned *ret_gpu)
{
    char text[8];
    int64_t number;
    if (!span_copy(word, text, sizeof text) || parse_int64(text, 0, DCGM_GPUS_MAX - 1, &number) < 0)
        return false;
    *ret_gpu = (unsigned)number;
    return true;
}

/* ---- the table ---- */

static signed char find_field(struct span name)
{
    for (int i = 0; i < DCGM_FIELDS; i++)
        if (span_is(name, fields[i].name))
            return (signed char)i;
    return -1;
}

/* "#Entity  SMACT ..."; older ones write "# Entity". */
static bool starts_header(struct span *line)
{
    struct span word;
    if (!next_word(line, &word))
        return false;
    return span_is(word, "#Entity") ||
           (span_is(word, "#") && next_word(line, &word) && span_is(word, "Entity"));
}

/* A header with too many columns leaves none, so that no row is accepted. */
static void take_header(struct dcgm_table *table, struct span line)
{
    struct span word;
    for (table->columns = 0; next_word(&line, &word); table->columns++) {
        if (table->columns == DCGM_COLUMNS_MAX) {
            table->columns = 0;
            return;
        }
        table->column[table->columns] = find_field(word);
    }
}

/* DCGM marks unknown values by impossibly large numbers, which some versions print. */
static struct reading convert_word(struct span word, enum unit unit)
{
    const double rounding = 0.005, bytes_max = 1e13, watt_max = 1e4, millijoule_max = 1e15;
    char text[32];
    double value;
    if (!span_copy(word, text, sizeof text) || parse_double(text, 0, millijoule_max, &value) < 0)
        return READING_NONE;
    switch (unit) {
    case PER_CENT:
        return value <= 100 ? reading_of(value / 100) : READING_NONE;
    case FRACTION:
        return value <= 1 + rounding ? reading_of(fmin(value, 1)) : READING_NONE;
    case BYTES_PER_S:
        return value <= bytes_max ? reading_of(value) : READING_NONE;
    case WATT:
        return value <= watt_max ? reading_of(value) : READING_NONE;
    case MILLIJOULE:
        return reading_of(value / 1e3);
    }
    return READING_NONE;
}

bool dcgm_table_take(struct dcgm_table *table, struct span line, struct dcgm_row *ret_row)
{
    struct span rest = line, word;
    size_t i;
    if (starts_header(&rest)) {
        take_header(table, rest);
        return false;
    }
    *ret_row = (struct dcgm_row){0};
    rest = line;
    if (!next_word(&rest, &word) || !span_is(word, "GPU") || !next_word(&rest, &word) ||
        !parse_gpu(word, &ret_row->gpu))
        return false;
    for (i = 0; i < table->columns && next_word(&rest, &word); i++)
        if (table->column[i] >= 0)
            ret_row->field[table->column[i]] = convert_word(word, fields[table->column[i]].unit);
    return i > 0 && i == table->columns && !next_word(&rest, &word);
}

/* ---- the list ---- */

/* "| 0      | Name: NVIDIA A100-SXM4-40GB |", then "|        | Device UUID: GPU-... |". */
bool dcgm_list_take(struct dcgm_list *list, struct span line, struct span *ret_uuid)
{
    struct span word;
    if (!next_word(&line, &word) || !span_is(word, "|") || !next_word(&line, &word))
        return false;
    if (!span_is(word, "|")) {
        list->known = parse_gpu(word, &list->gpu);
        return false;
    }
    return list->known && next_word(&line, &word) && span_is(word, "Device") &&
           next_word(&line, &word) && span_is(word, "UUID:") && next_word(&line, ret_uuid);
}
