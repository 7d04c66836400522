/* SPDX-License-Identifier: Apache-2.0 */
/* What dcgmi and colloc-dcgm print: however the bytes are cut into pieces, the same rows come out,
 * and none says what cannot be. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "gpu/dcgm_table.h"

static void require(int holds)
{
    if (!holds)
        abort();
}

static void check(const struct dcgm_row *row)
{
    require(row->entity.number <= DCGM_NUMBER_MAX);
    for (int i = 0; i < DCGM_FIELDS; i++)
        if (row->field[i].valid)
            require(row->field[i].value >= 0 && row->field[i].value <= (i <= DCGM_FP16 ? 1 : 1e13));
}

static unsigned long read_in_pieces(const uint8_t *data, size_t size, size_t most)
{
    struct dcgm_lines lines = {0};
    struct dcgm_table table = {0};
    struct dcgm_list list = {0};
    struct dcgm_tree tree = {0};
    unsigned long sum = 0;

    for (size_t at = 0; at < size;) {
        size_t n = size - at < most ? size - at : most;
        struct span piece = {(const char *)data + at, n}, line, uuid, text;
        struct dcgm_row row;
        struct dcgm_instance instance;
        struct dcgm_entity entity;
        while (dcgm_lines_next(&lines, &piece, &line)) {
            require(line.size <= DCGM_LINE_MAX && !memchr(line.at, '\n', line.size));
            if (dcgm_list_take(&list, line, &uuid))
                sum = sum * 31 + list.gpu + uuid.size;
            if (dcgm_tree_take(&tree, line, &instance)) {
                require(*tree.card && instance.gpu_instance <= DCGM_NUMBER_MAX &&
                        instance.card <= DCGM_NUMBER_MAX);
                sum = sum * 31 + instance.number + instance.gpu_instance;
            }
            if (dcgm_source_take(line, &text))
                sum = sum * 31 + text.size;
            if (dcgm_entity_take(line, &text, &entity)) {
                require(text.size > 0 && entity.number <= DCGM_NUMBER_MAX);
                sum = sum * 31 + text.size + entity.number + entity.is_instance;
            }
            if (!dcgm_table_take(&table, line, &row))
                continue;
            check(&row);
            sum = sum * 31 + row.entity.number + row.entity.is_instance +
                  (row.field[DCGM_SMACT].valid ? 7 : 3);
        }
        at += n;
    }
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    unsigned long whole = read_in_pieces(data, size, size);
    require(read_in_pieces(data, size, 1) == whole && read_in_pieces(data, size, 7) == whole);
    return 0;
}
