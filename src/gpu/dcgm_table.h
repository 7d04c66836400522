/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parser of what dcgmi prints, a line at a time: the table of `dcgmi dmon`, the list of GPUs of
 * `dcgmi discovery -l` and the tree of MIG instances of `dcgmi discovery -c`; and of what
 * colloc-dcgm prints: its source, its entities, and the same table. Accepts any bytes and allocates
 * nothing. Columns are found by the names in the header, so their order and further columns do not
 * matter.
 */
#ifndef COLLOC_GPU_DCGM_TABLE_H
#define COLLOC_GPU_DCGM_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/reading.h"
#include "base/text.h"

enum { DCGM_LINE_MAX = 1024, DCGM_COLUMNS_MAX = 48, DCGM_NUMBER_MAX = 999999 };

/* GPUs and MIG instances that are watched. Chosen: 16 cards with 7 instances each are 128. */
enum { DCGM_WATCHED_MAX = 256 };

/* Assembles lines from the pieces that read() returns. Start with {0}. */
struct dcgm_lines {
    char text[DCGM_LINE_MAX];
    size_t used;
    bool too_long; /* the line being assembled is dropped */
};

/*
 * Removes bytes from the front of `piece` up to the end of a line.
 *
 * Returns true with the line, valid until the next call; false when the piece is used up before the
 * line is complete.
 */
bool dcgm_lines_next(struct dcgm_lines *lines, struct span *piece, struct span *ret_line);

enum dcgm_field {
    DCGM_UTILISATION,
    DCGM_GRACT,
    DCGM_SMACT,
    DCGM_SMOCC,
    DCGM_TENSOR,
    DCGM_DRAM,
    DCGM_FP64,
    DCGM_FP32,
    DCGM_FP16,
    DCGM_PCIE_TX,
    DCGM_PCIE_RX,
    DCGM_NVLINK_TX,
    DCGM_NVLINK_RX,
    DCGM_POWER,
    DCGM_ENERGY,
    DCGM_FIELDS
};

/* DCGM's number and short name of a field. */
unsigned short dcgm_field_id(enum dcgm_field field);
const char *dcgm_field_name(enum dcgm_field field);

/* DCGM's number of a GPU or a MIG instance: the two are counted apart. */
struct dcgm_entity {
    bool is_instance;
    unsigned number;
};

/* One row: fractions 0..1, bytes per second, watts, joules. N/A and impossible values are invalid
 * readings. */
struct dcgm_row {
    struct dcgm_entity entity;
    struct reading field[DCGM_FIELDS];
};

/* The columns of the latest header. Start with {0}: before a header there are no rows. */
struct dcgm_table {
    signed char column[DCGM_COLUMNS_MAX]; /* enum dcgm_field, -1: another */
    size_t columns;
};

/*
 * Parses one line. Returns true with a row; false for headers, units, empty lines, entities that
 * are neither GPUs nor MIG instances, and rows with another number of columns than the header (half
 * of a line).
 */
bool dcgm_table_take(struct dcgm_table *table, struct span line, struct dcgm_row *ret_row);

/* The list of GPUs: the GPU number that the following lines belong to. Start with {0}. */
struct dcgm_list {
    bool known;
    unsigned gpu;
};

/* Parses one line. Returns true with the UUID (within the line) of GPU list->gpu. */
bool dcgm_list_take(struct dcgm_list *list, struct span line, struct span *ret_uuid);

/* The tree of MIG instances: the card that the following lines belong to. Start with {0}. */
struct dcgm_tree {
    char card[96]; /* its UUID; "": not known */
};

struct dcgm_instance {
    unsigned card, gpu_instance; /* NVML's numbers: `dcgmi dmon -i` takes "0/2" */
    unsigned number;             /* DCGM's */
};

/* Parses one line. Returns true with an instance of tree->card; compute instances are left out. */
bool dcgm_tree_take(struct dcgm_tree *tree, struct span line, struct dcgm_instance *ret_instance);

/* Parse one line of colloc-dcgm. Return true with where it gets its values from; with the name (as
 * it was called with) and the number of an entity that the table is about. */
bool dcgm_source_take(struct span line, struct span *ret_source);
bool dcgm_entity_take(struct span line, struct span *ret_name, struct dcgm_entity *ret_entity);

#endif
