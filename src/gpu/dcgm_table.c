/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses the output of dcgmi and colloc-dcgm. The header names the columns by DCGM's short names:
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

/* DCGM's numbers and short names of the fields. */
static const struct {
    unsigned short id;
    const char *name;
    enum unit unit;
} fields[DCGM_FIELDS] = {
    [DCGM_UTILISATION] = {203, "GPUTL", PER_CENT},
    [DCGM_GRACT] = {1001, "GRACT", FRACTION},
    [DCGM_SMACT] = {1002, "SMACT", FRACTION},
    [DCGM_SMOCC] = {1003, "SMOCC", FRACTION},
    [DCGM_TENSOR] = {1004, "TENSO", FRACTION},
    [DCGM_DRAM] = {1005, "DRAMA", FRACTION},
    [DCGM_FP64] = {1006, "FP64A", FRACTION},
    [DCGM_FP32] = {1007, "FP32A", FRACTION},
    [DCGM_FP16] = {1008, "FP16A", FRACTION},
    [DCGM_PCIE_TX] = {1009, "PCITX", BYTES_PER_S},
    [DCGM_PCIE_RX] = {1010, "PCIRX", BYTES_PER_S},
    [DCGM_NVLINK_TX] = {1011, "NVLTX", BYTES_PER_S},
    [DCGM_NVLINK_RX] = {1012, "NVLRX", BYTES_PER_S},
    [DCGM_POWER] = {155, "POWER", WATT},
    [DCGM_ENERGY] = {156, "TOTEC", MILLIJOULE},
};

unsigned short dcgm_field_id(enum dcgm_field field)
{
    return fields[field].id;
}

const char *dcgm_field_name(enum dcgm_field field)
{
    return fields[field].name;
}

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

static bool next_word_is(struct span *line, const char *expected)
{
    struct span word;
    return next_word(line, &word) && span_is(word, expected);
}

static bool parse_number(struct span word, unsigned *ret_number)
{
    char text[8];
    int64_t number;
    if (!span_copy(word, text, sizeof text) || parse_int64(text, 0, DCGM_NUMBER_MAX, &number) < 0)
        return false;
    *ret_number = (unsigned)number;
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
    case MILLIJOULE: /* dcgmi prints 0 where DCGM has no value: seen with DCGM 3.3.9 */
        return value > 0 ? reading_of(value / 1e3) : READING_NONE;
    }
    return READING_NONE;
}

/* "GPU 0", or "GPU-I 11". */
static bool take_entity(struct span *line, struct dcgm_entity *ret_entity)
{
    struct span word;
    if (!next_word(line, &word))
        return false;
    ret_entity->is_instance = span_is(word, "GPU-I");
    return (ret_entity->is_instance || span_is(word, "GPU")) && next_word(line, &word) &&
           parse_number(word, &ret_entity->number);
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
    if (!take_entity(&rest, &ret_row->entity))
        return false;
    for (i = 0; i < table->columns && next_word(&rest, &word); i++)
        if (table->column[i] >= 0)
            ret_row->field[table->column[i]] = convert_word(word, fields[table->column[i]].unit);
    return i > 0 && i == table->columns && !next_word(&rest, &word);
}

/* ---- the list of GPUs ---- */

/* "| 0      | Name: NVIDIA A100-SXM4-40GB |", then "|        | Device UUID: GPU-... |". */
bool dcgm_list_take(struct dcgm_list *list, struct span line, struct span *ret_uuid)
{
    struct span word;
    if (!next_word_is(&line, "|") || !next_word(&line, &word))
        return false;
    if (!span_is(word, "|")) {
        list->known = parse_number(word, &list->gpu);
        return false;
    }
    return list->known && next_word_is(&line, "Device") && next_word_is(&line, "UUID:") &&
           next_word(&line, ret_uuid);
}

/* ---- the tree of MIG instances ---- */

/* "(EntityID: 11)" */
static bool take_number(struct span *line, unsigned *ret_number)
{
    struct span word;
    if (!next_word_is(line, "(EntityID:") || !next_word(line, &word) ||
        word.at[word.size - 1] != ')')
        return false;
    word.size--;
    return parse_number(word, ret_number);
}

/* "| GPU 0             | GPU GPU-4d75f16a-... (EntityID: 3)  |": the words after the first. */
static void take_card(struct dcgm_tree *tree, struct span line)
{
    struct span word, uuid;
    bool is_whole = next_word(&line, &word) && next_word_is(&line, "|") &&
                    next_word_is(&line, "GPU") && next_word(&line, &uuid) &&
                    span_copy(uuid, tree->card, sizeof tree->card);
    if (!is_whole)
        tree->card[0] = '\0';
}

/* "0/2" */
static bool take_place(struct span *line, struct dcgm_instance *ret_instance)
{
    struct span word;
    if (!next_word(line, &word))
        return false;
    const char *slash = memchr(word.at, '/', word.size);
    if (!slash)
        return false;
    size_t before = (size_t)(slash - word.at);
    return parse_number((struct span){word.at, before}, &ret_instance->card) &&
           parse_number(
               (struct span){slash + 1, word.size - before - 1}, &ret_instance->gpu_instance);
}

/* "| -> I 0/2          | GPU Instance (EntityID: 11)         |": the words after the arrow. */
static bool take_instance(struct span line, struct dcgm_instance *ret_instance)
{
    return next_word_is(&line, "I") && take_place(&line, ret_instance) &&
           next_word_is(&line, "|") && next_word_is(&line, "GPU") &&
           next_word_is(&line, "Instance") && take_number(&line, &ret_instance->number);
}

bool dcgm_tree_take(struct dcgm_tree *tree, struct span line, struct dcgm_instance *ret_instance)
{
    struct span word;
    if (!next_word_is(&line, "|") || !next_word(&line, &word))
        return false;
    if (span_is(word, "GPU"))
        take_card(tree, line);
    return *tree->card && span_is(word, "->") && take_instance(line, ret_instance);
}

/* ---- what colloc-dcgm prints before its table ---- */

bool dcgm_source_take(struct span line, struct span *ret_source)
{
    if (!next_word_is(&line, "source"))
        return false;
    *ret_source = span_trim(line);
    return true;
}

bool dcgm_entity_take(struct span line, struct span *ret_name, struct dcgm_entity *ret_entity)
{
    return next_word_is(&line, "entity") && next_word(&line, ret_name) &&
           take_entity(&line, ret_entity);
}
