/* SPDX-License-Identifier: Apache-2.0 */
/*
 * As text: the line that most users need, what was seen of the training, and a table with a row for
 * each estimator. As JSON: the same numbers, and null for those that are not known.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "api/json_value.h"
#include "base/array.h"
#include "base/units.h"
#include "cli/estimation.h"
#include "cli/print.h"
#include "cli/script_estimate.h"
#include "cli/table.h"
#include "cli/task_view.h"

static const struct table_column columns[] = {
    {"ESTIMATOR", 0},
    {"MEMORY ", TABLE_RIGHT},
    {"P50", TABLE_RIGHT | TABLE_WIDE},
    {"P90 ", TABLE_RIGHT},
    {"P99", TABLE_RIGHT},
    {"FLOOR", TABLE_RIGHT | TABLE_WIDE},
    {"SMACT", TABLE_RIGHT | TABLE_WIDE},
    {"NOTE", TABLE_WRAP},
};

static json_t *mib_json(struct reading bytes)
{
    return json_reading(bytes, (double)MIB);
}

static json_t *count_json(struct count count)
{
    return count.known ? json_integer(count.value) : json_null();
}

/* Estimators without an answer, too: their numbers are null, and their note says why. */
static json_t *estimates_json(const struct estimation *estimation)
{
    json_t *array = json_array();
    for (size_t i = 0; i < estimation->count; i++) {
        const struct estimate *answer = &estimation->answers[i];
        json_t *row = json_pack("{ss,so,so,so,so,so}", "estimator", answer->estimator, "mib",
            mib_json(answer->bytes), "p50_mib", mib_json(answer->p50_bytes), "p90_mib",
            mib_json(answer->p90_bytes), "p99_mib", mib_json(answer->p99_bytes), "floor_mib",
            mib_json(answer->floor_bytes));
        json_object_set_new(
            row, "reserved_mib", mib_json(estimate_reserved(answer, ESTIMATE_RESERVED_QUANTILE)));
        json_object_update_new(row,
            json_pack("{so,so,so,ss,ss}", "smact", json_reading(answer->smact, 1), "dram_active",
                json_reading(answer->dram_active, 1), "step_ms", json_reading(answer->step_us, 1e3),
                "evidence", evidence_name(answer->evidence), "note", answer->note));
        if (*answer->kernels)
            json_object_set_new(row, "kernels", json_string(answer->kernels));
        json_array_append_new(array, row);
    }
    return array;
}

/* A compiled step shows no layers and no parameters. */
static bool is_compiled(const struct network *network)
{
    return network->export && network->export->compiled.is_there;
}

static json_t *model_json(const struct network *network)
{
    const struct model *model = network->model;
    if (!model)
        return json_null();
    bool has_layers = !is_compiled(network);
    char fingerprint[17];
    snprintf(fingerprint, sizeof fingerprint, "%016" PRIx64, model_fingerprint(model));
    return json_pack("{ss,ss,so,so,so,so,so,so,so}", "fingerprint", fingerprint, "format",
        summary_format_name(model->format), "parameters",
        count_json((struct count){model->parameters, has_layers}), "parameters_printed",
        count_json(model->parameters_printed), "trainable_printed",
        count_json(model->trainable_printed), "parameters_trained",
        count_json(model->parameters_trained), "batch", count_json(model->batch),
        "activations_per_sample", count_json(model->activations), "layers",
        count_json((struct count){(int64_t)model->n_layers, has_layers}));
}

static json_t *warnings_json(const struct model *model)
{
    json_t *array = json_array();
    for (size_t i = 0; model && i < model_warnings(model); i++)
        json_array_append_new(array, json_string(model->warnings[i]));
    return array;
}

static struct reading whole_mib(struct reading bytes)
{
    return bytes.valid ? reading_of(ceil(bytes.value / (double)MIB)) : bytes;
}

/* Rounded up to a tenth of a GiB, or to a MiB below one: printed, it is still enough. */
static void format_reserve(double mib, char *text, size_t size)
{
    double gib = mib * (double)MIB / (double)GIB;
    if (gib >= 1)
        snprintf(text, size, "%.1f GiB", ceil(gib * 10 - 1e-9) / 10);
    else
        snprintf(text, size, "%.0f MiB", mib);
}

/* Rounded as in the line "reserve", so that the two agree. */
static void bytes_cell(struct table *table, struct reading bytes, const char *mark)
{
    char size[CELL_SIZE] = "-";
    if (bytes.valid)
        format_reserve(whole_mib(bytes).value, size, sizeof size);
    table_cell(table, NULL, "%s%s", size, mark);
}

/* The star marks the number that the daemon would reserve: the quantile where the estimator's error
 * is calibrated, otherwise the estimate itself. */
static void print_answer(struct table *table, const struct estimate *answer)
{
    bool by_quantile = estimate_quantile(answer, ESTIMATE_RESERVED_QUANTILE).valid;
    table_row(table);
    table_cell(table, NULL, "%s", answer->estimator);
    bytes_cell(table, answer->bytes, answer->bytes.valid && !by_quantile ? "*" : " ");
    bytes_cell(table, answer->p50_bytes, "");
    bytes_cell(table, answer->p90_bytes, by_quantile ? "*" : " ");
    bytes_cell(table, answer->p99_bytes, "");
    bytes_cell(table, answer->floor_bytes, "");
    if (answer->smact.valid)
        table_cell(table, NULL, "%.0f %%", 100 * answer->smact.value);
    else
        table_cell(table, NULL, "-");
    table_cell(table, NULL, "%s", answer->note);
}

static void print_answers(const struct estimation *estimation)
{
    struct table *table = table_create(columns, ARRAY_SIZE(columns));
    bool has_star = false;
    for (size_t i = 0; i < estimation->count; i++) {
        print_answer(table, &estimation->answers[i]);
        has_star = has_star || estimation->answers[i].bytes.valid;
    }
    table_print(table, "No estimators.");
    table_destroy(table);
    if (!has_star)
        return;
    putchar('\n');
    print_wrapped(
        "* the daemon reserves this value by default (reserve-quantile), and its margin in "
        "addition; --memory=SIZE reserves another, such as that of the first line",
        0, output_width());
}

/* Returns the answer for the first line: of the only estimator; with all of them, that of the
 * default one. */
static const struct estimate *main_answer(const struct estimation *estimation)
{
    const char *usual = estimator_choose(NULL, &estimation->request, ESTIMATOR_USUAL);
    for (size_t i = 0; i < estimation->count; i++)
        if (strcmp(estimation->answers[i].estimator, usual) == 0)
            return &estimation->answers[i];
    return &estimation->answers[0];
}

/* Returns P99 in whole MiB, or the estimate if its error is unknown. */
static struct reading reserve_mib(const struct estimate *answer)
{
    return whole_mib(estimate_reserved(answer, QUANTILE_P99));
}

/* Returns the same without the kernels that cuDNN tries. */
static struct reading needs_mib(const struct estimate *answer)
{
    return answer->untried_p99_bytes.valid ? whole_mib(answer->untried_p99_bytes)
                                           : reserve_mib(answer);
}

/* The task runs with what it needs, and trying kernels may leave its neighbours nothing meanwhile:
 * both decide where it can be placed. */
static void print_tried(const struct estimate *answer, const char *size)
{
    char with_tried[32];
    format_reserve(reserve_mib(answer).value, with_tried, sizeof with_tried);
    printf("reserve %s: enough for %d of 100 such tasks that try no kernels\n"
           "While cuDNN tries kernels (cudnn.benchmark), this one may take all memory that is free "
           "(P99 with them: %s). If too little is free for one, PyTorch takes another.\n\n",
        size, quantile_percent(QUANTILE_P99), with_tried);
}

/* The line that most users need; the table below it is for those who want to know why. */
static void print_reserve(const struct estimation *estimation)
{
    const struct estimate *answer = main_answer(estimation);
    struct reading mib = needs_mib(answer);
    char size[32] = "";
    if (mib.valid)
        format_reserve(mib.value, size, sizeof size);
    if (!mib.valid)
        printf("reserve: unknown\n\n");
    else if (answer->untried_p99_bytes.valid)
        print_tried(answer, size);
    else if (estimate_quantile(answer, QUANTILE_P99).valid)
        printf("reserve %s: enough for %d of 100 such tasks\n\n", size,
            quantile_percent(QUANTILE_P99));
    else
        printf("reserve %s: the estimate of %s, whose error is not calibrated\n\n", size,
            answer->estimator);
}

/* What the script's loop does: batch, optimizer, precision, and what is unusual. */
static void print_seen(const json_t *seen)
{
    json_t *value;
    const char *key;
    json_object_foreach((json_t *)(uintptr_t)seen, key, value) {
        if (json_is_string(value))
            printf("%s %s, ", key, json_string_value(value));
        else if (json_is_integer(value) && json_integer_value(value) > 0)
            printf("%s %" JSON_INTEGER_FORMAT ", ", key, json_integer_value(value));
        else if (json_is_true(value))
            printf("%s, ", key);
    }
    puts("as the script ran");
}

static void print_network(const struct network *network)
{
    const struct model *model = network->model;
    if (is_compiled(network))
        printf("a step that JAX compiled, with %zu arguments\n\n",
            network->export->compiled.n_arguments);
    else if (model)
        printf("%lld parameters in %zu layers (%s)\n\n", (long long)model->parameters,
            model->n_layers, summary_format_name(model->format));
}

void estimate_print(const struct invocation *invocation, const struct estimation *estimation)
{
    const struct model *model = estimation->network.model;
    const char *export = estimation->task.summary;
    json_t *seen = invocation->after_dashes ? script_seen(export, strlen(export)) : NULL;
    if (invocation->common[COMMON_JSON].number) {
        const struct estimate *answer = main_answer(estimation);
        json_t *object = json_pack("{so,so,sb,so,so,so}", "reserve_mib",
            json_reading(reserve_mib(answer), 1), "needs_mib", json_reading(needs_mib(answer), 1),
            "tries_kernels", answer->untried_p99_bytes.valid, "estimates",
            estimates_json(estimation), "model", model_json(&estimation->network), "warnings",
            warnings_json(model));
        if (seen) {
            json_object_set_new(object, "evidence", json_string(evidence_name(EVIDENCE_SCRIPT)));
            json_object_update(object, seen);
        }
        print_json(object);
        json_decref(object);
    } else {
        for (size_t i = 0; model && i < model_warnings(model); i++)
            print_error("warning: %s: %s", estimate_source_name(invocation, &estimation->task),
                model->warnings[i]);
        print_reserve(estimation);
        if (seen)
            print_seen(seen);
        print_network(&estimation->network);
        print_answers(estimation);
    }
    json_decref(seen);
}

void estimate_print_not_followed(const struct invocation *invocation, const char *reason)
{
    if (invocation->common[COMMON_JSON].number) {
        json_t *object = json_pack(
            "{ss,ss}", "evidence", evidence_name(EVIDENCE_SCRIPT), "reason", reason);
        print_json(object);
        json_decref(object);
    } else {
        print_error("cannot follow the script: %s", reason);
        print_error("where that is an error of the script, mend it; else give --memory=SIZE at the "
                    "submission, or leave the memory unknown (docs/script-estimate.md)");
    }
}
