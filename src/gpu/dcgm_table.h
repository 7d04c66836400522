/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `dcgmi` prints, line by line: the table of `dcgmi dmon` and the list of `dcgmi discovery
 * -l`. Takes no memory and any bytes. Columns are found by the names in the header, so their order
 * and any further ones do not matter.
 */
#ifndef COLLOC_GPU_DCGM_TABLE_H
#define COLLOC_GPU_DCGM_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/reading.h"
#include "base/text.h"

enum { DCGM_LINE_MAX = 1024, DCGM_COLUMNS_MAX = 48, DCGM_GPUS_MAX = 64 };

/* Puts lines together from the pieces that arrive. Start with {0}. */
struct dcgm_lines {
    char text[DCGM_LINE_MAX];
    size_t used;
    bool too_long; /* the line under way is dropped */
};

/*
 * Takes bytes off the front of `piece` up to the end of a line. True with the line (valid until the
 * next call), false when the piece is used up and the line is not whole yet.
 */
bool dcgm_lines_next(struct dcgm_lines *lines, struct span *piece, struct span *ret_line);

enum dcgm_field { /* in the order of DCGM_FIELD_IDS */
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

#define DCGM_FIELD_IDS "203,1001,1002,1003,1004,1005,1006,1007,1008,1009,1010,1011,1012,155,156"

/* One line of the table: fractions 0..1, bytes per second, watts, joules. What is N/A or not
 * possible is not valid. */
struct dcgm_row {
    unsigned gpu; /* DCGM's number */
    struct reading field[DCGM_FIELDS];
};

/* The columns of the latest header. Start with {0}: before a header there are no rows. */
struct dcgm_table {
    signed char column[DCGM_COLUMNS_MAX]; /* enum dcgm_field, -1: another */
    size_t columns;
};

/*
 * Takes one line. True with a row; false for headers, units, empty lines, other entities than whole
 * GPUs and rows that have not exactly the header's columns (half of a line).
 */
bool dcgm_table_take(struct dcgm_table *table, struct span line, struct dcgm_row *ret_row);

/* The list of GPUs: remembers the number that the following lines are about. Start with {0}. */
struct dcgm_list {
    bool known;
    unsigned gpu;
};

/* Takes one line. True with *ret_uuid (within the line) of GPU list->gpu. */
bool dcgm_list_take(struct dcgm_list *list, struct span line, struct span *ret_uuid);

#endif
