/* SPDX-License-Identifier: Apache-2.0 */
/* Reads runs.csv row by row, finds the network of each run by its key, and computes the features
 * that an estimate of that run would have. So training sees exactly the inputs that estimation sees
 * later. */
#include "memnet/dataset.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/columns.h"
#include "base/units.h"
#include "memnet/archive.h"
#include "memnet/networks.h"

enum column {
    COLUMN_ID,
    COLUMN_KIND,
    COLUMN_FAMILY,
    COLUMN_SPLIT,
    COLUMN_NETWORK,
    COLUMN_BATCH,
    COLUMN_OPTIMIZER,
    COLUMN_PRECISION,
    COLUMN_STATUS,
    COLUMN_MEMORY,
    COLUMNS
};

static const char *const names[COLUMNS] = {"id", "kind", "family", "split", "model", "batch",
    "optimizer", "precision", "status", "driver_mib"};

static int find_columns(const struct columns *table, struct fault *fault, int ret_at[COLUMNS])
{
    for (int i = 0; i < COLUMNS; i++) {
        ret_at[i] = columns_find(table, (const char *const[]){names[i], NULL});
        if (ret_at[i] < 0)
            return fault_set(fault, EINVAL, "%s: no column \"%s\"", table->name, names[i]);
    }
    return 0;
}

static int read_text(const struct columns *table, const int *at, enum column column,
    struct fault *fault, char *buffer, size_t size)
{
    const char *text = columns_get(table, at[column]);
    if (!text)
        return columns_wrong(table, fault, "no %s", names[column]);
    return span_copy(span_of(text), buffer, size)
               ? 0
               : columns_wrong(
                     table, fault, "%s: longer than %zu characters", names[column], size - 1);
}

static int read_number(const struct columns *table, const int *at, enum column column, double max,
    struct fault *fault, double *ret)
{
    int r = columns_number(table, at[column], 1, max, fault, ret);
    return r < 0 ? r : r == 1 ? 0 : columns_wrong(table, fault, "no %s", names[column]);
}

static int read_part(
    const struct columns *table, const int *at, struct fault *fault, enum dataset_part *ret)
{
    static const char *const parts[PARTS] = {"train", "validation", "test"};
    char text[16];
    int r = read_text(table, at, COLUMN_SPLIT, fault, text, sizeof text);
    if (r < 0)
        return r;
    for (*ret = 0; *ret < PARTS; (*ret)++)
        if (strcmp(parts[*ret], text) == 0)
            return 0;
    *ret = PART_TEST;
    return strcmp(text, "held-out") == 0
               ? 0
               : columns_wrong(table, fault, "split: unknown value \"%s\"", text);
}

static int read_training(
    const struct columns *table, const int *at, struct fault *fault, struct task_row *row)
{
    char optimizer[32] = "", precision[16] = "";
    struct fault wrong;
    int r = read_text(table, at, COLUMN_OPTIMIZER, fault, optimizer, sizeof optimizer);
    row->optimizer = optimizer_parse(optimizer);
    if (r == 0)
        r = read_text(table, at, COLUMN_PRECISION, fault, precision, sizeof precision);
    if (r == 0 && precision_parse("precision", precision, &wrong, &row->precision) < 0)
        r = columns_wrong(table, fault, "%s", wrong.text);
    return r;
}

static int read_row(
    const struct columns *table, const int *at, struct fault *fault, struct task_row *row)
{
    char kind[16];
    double batch = 0, mib = 0;
    int r = read_text(table, at, COLUMN_ID, fault, row->id, sizeof row->id);
    if (r == 0)
        r = read_text(table, at, COLUMN_KIND, fault, kind, sizeof kind);
    if (r == 0)
        r = read_text(table, at, COLUMN_FAMILY, fault, row->family, sizeof row->family);
    if (r == 0)
        r = read_part(table, at, fault, &row->part);
    if (r == 0)
        r = read_text(table, at, COLUMN_NETWORK, fault, row->network, sizeof row->network);
    if (r == 0)
        r = read_training(table, at, fault, row);
    if (r == 0)
        r = read_number(table, at, COLUMN_BATCH, (double)ESTIMATE_BATCH_MAX, fault, &batch);
    if (r == 0)
        r = read_number(table, at, COLUMN_MEMORY, 1e8, fault, &mib);
    if (r == 0 && batch != (double)(int64_t)batch)
        r = columns_wrong(table, fault, "batch: %g is not a whole number", batch);
    row->real = r == 0 && strcmp(kind, "real") == 0;
    row->batch = (int64_t)batch;
    row->bytes = mib * (double)MIB;
    return r;
}

/* 0, ESTIMATE_UNKNOWN or -ENOMEM. */
static int read_features(const struct networks *networks, struct task_row *row)
{
    const struct estimate_request request = {.model = networks_find(networks, row->network),
        .batch = row->batch,
        .optimizer = row->optimizer,
        .precision = row->precision};
    const char *why;
    return gpumemnet_features_init(&request, &row->features, &why);
}

static int add_row(struct dataset *dataset, const struct columns *table, const int *at,
    const struct networks *networks, struct fault *fault)
{
    const char *status = columns_get(table, at[COLUMN_STATUS]);
    if (!status || strcmp(status, "ok") != 0) {
        dataset->n_failed++;
        return 0;
    }
    if (ARRAY_RESERVE(dataset->rows, dataset->capacity, dataset->n + 1) < 0)
        return fault_set(fault, ENOMEM, "out of memory");
    struct task_row *row = &dataset->rows[dataset->n];
    *row = (struct task_row){0};
    int r = read_row(table, at, fault, row);
    if (r < 0)
        return r;
    r = read_features(networks, row);
    dataset->n += r == 0;
    dataset->n_unsupported += r == ESTIMATE_UNKNOWN;
    return r < 0 ? fault_set(fault, ENOMEM, "out of memory") : 0;
}

static int read_runs(
    const char *text, const struct networks *networks, struct fault *fault, struct dataset *dataset)
{
    struct columns table;
    int at[COLUMNS], r = columns_open_text(&table, text, "runs.csv", fault);
    if (r == 0)
        r = find_columns(&table, fault, at);
    while (r == 0 && (r = columns_next(&table, fault)) == 1)
        r = add_row(dataset, &table, at, networks, fault);
    columns_close(&table);
    return r;
}

int dataset_parse(const char *runs, const char *layers, size_t layers_size, struct fault *fault,
    struct dataset *ret_dataset)
{
    struct networks networks;
    *ret_dataset = (struct dataset){0};
    int r = networks_parse(layers, layers_size, fault, &networks);
    r = r < 0 ? fault_prefix(fault, r, "layers.jsonl")
              : read_runs(runs, &networks, fault, ret_dataset);
    networks_fini(&networks);
    return r;
}

int dataset_read(const char *folder, struct fault *fault, struct dataset *ret_dataset)
{
    CLEANUP_FREE char *runs = NULL, *layers = NULL;
    size_t runs_size, layers_size;
    *ret_dataset = (struct dataset){0};
    int r = archive_read(folder, "runs.csv", fault, &runs, &runs_size);
    if (r == 0)
        r = archive_read(folder, "layers.jsonl", fault, &layers, &layers_size);
    if (r == 0) {
        r = dataset_parse(runs, layers, layers_size, fault, ret_dataset);
        r = r < 0 ? fault_prefix(fault, r, "%s", folder) : 0;
    }
    return r;
}

void dataset_fini(struct dataset *dataset)
{
    for (size_t i = 0; i < dataset->n; i++)
        gpumemnet_features_fini(&dataset->rows[i].features);
    free(dataset->rows);
    *dataset = (struct dataset){0};
}
