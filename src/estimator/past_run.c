/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses a run history: a CSV file with one line for each run. Unknown values are empty. A run that
 * ran out of memory is a lower bound.
 */
#include "estimator/past_run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/span_parts.h"
#include "base/text.h"
#include "base/units.h"

uint64_t model_fingerprint(const struct model *model)
{
    uint64_t hash = HASH_START;
    for (size_t i = 0; i < model->n_layers; i++) {
        const struct layer *layer = &model->layers[i];
        if (!layer->leaf)
            continue;
        hash = hash_bytes(hash, layer->type.at, layer->type.size);
        hash = hash_bytes(hash, layer->shape, (size_t)layer->rank * sizeof layer->shape[0]);
        hash = hash_bytes(hash, &layer->parameters, sizeof layer->parameters);
    }
    return hash;
}

enum cell { FINGERPRINT, BATCH, SEQ, OPTIMIZER, PRECISION, GPU, PEAK, OUTCOME, CELLS };

static const char header[] = "fingerprint,batch,seq,optimizer,precision,gpu,peak_mib,outcome";

static bool split_cells(struct span line, struct span cells[static CELLS])
{
    for (int i = 0; i < CELLS; i++) {
        bool is_last = !memchr(line.at, ',', line.size);
        if (is_last != (i == CELLS - 1))
            return false;
        cells[i] = span_trim(span_take_until(&line, ','));
    }
    return true;
}

static bool whole_number(struct span cell, int64_t min, int64_t max, int64_t *ret)
{
    char text[32];
    return span_copy(cell, text, sizeof text) && parse_int64(text, min, max, ret) == 0;
}

static bool take_training(const struct span *cells, struct past_run *run)
{
    char optimizer[32], precision[16];
    if (!span_copy(cells[OPTIMIZER], optimizer, sizeof optimizer) ||
        !span_copy(cells[PRECISION], precision, sizeof precision))
        return false;
    run->optimizer = optimizer_parse(optimizer);
    return precision_parse("precision", precision, NULL, &run->precision) == 0;
}

static bool take_run(struct span line, struct past_run *run)
{
    struct span cells[CELLS];
    char text[32], *end;
    double peak_mib;
    if (!split_cells(line, cells) || !span_copy(cells[FINGERPRINT], text, sizeof text) || !*text)
        return false;
    run->fingerprint = strtoull(text, &end, 16);
    if (*end || !whole_number(cells[BATCH], 1, INT32_MAX, &run->batch) ||
        (cells[SEQ].size && !whole_number(cells[SEQ], 1, INT32_MAX, &run->sequence_length)) ||
        !take_training(cells, run) || !span_copy(cells[GPU], run->gpu_kind, sizeof run->gpu_kind) ||
        !span_copy(cells[PEAK], text, sizeof text) || parse_double(text, 1, 1e9, &peak_mib) < 0)
        return false;
    run->peak_bytes = (int64_t)(peak_mib * (double)MIB);
    run->lower_bound = span_is(cells[OUTCOME], "oom");
    return run->lower_bound || span_is(cells[OUTCOME], "completed");
}

static size_t count_lines(struct span text)
{
    struct span line;
    size_t n = 0;
    while (span_next_line(&text, &line))
        n++;
    return n;
}

int past_runs_parse(
    const char *text, size_t size, struct fault *fault, struct past_run **ret_runs, size_t *ret_n)
{
    struct span rest = {text, size}, line;
    CLEANUP_FREE struct past_run *runs = calloc(count_lines(rest) + 1, sizeof *runs);
    size_t n = 0;
    if (!runs)
        return fault_set(fault, ENOMEM, "out of memory");
    if (span_trim(rest).size == 0)
        return fault_set(fault, EINVAL, "empty: the first line must be %s", header);
    for (int number = 1; span_next_line(&rest, &line); number++) {
        line = span_trim(line);
        bool wrong = number == 1 ? !span_is(line, header)
                                 : line.size > 0 && !take_run(line, &runs[n]);
        if (wrong)
            return fault_set(fault, EINVAL, "line %d: must be %s%s", number,
                number == 1 ? "" : "a run: ", header);
        n += number > 1 && line.size > 0;
    }
    *ret_runs = TAKE(runs);
    *ret_n = n;
    return 0;
}
