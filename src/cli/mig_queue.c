/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `colloc mig plan` without a GPU.
 *
 *     what the daemon shows      GPUs without tasks (GET /v1/gpus), tasks that wait (GET /v1/tasks)
 *     sim/mig_advice.h           the division that has these tasks done first
 *     cli/mig_change.h           with --apply: each GPU that would be divided differently
 *
 * Of a task whose memory, activity or time the daemon does not know, something is assumed; the
 * first line of the output says of how many.
 */
#include "cli/mig_queue.h"

#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/units.h"
#include "cli/mig_change.h"
#include "cli/mig_inputs.h"
#include "cli/print.h"
#include "cli/session_once.h"
#include "cli/table.h"
#include "gpu/gpu.h"

/* ---- output ---- */

static void print_assumptions(const struct mig_inputs *inputs)
{
    printf("%zu task%s", inputs->queue.n, inputs->queue.n == 1 ? "" : "s");
    if (inputs->n_without_memory)
        printf("; %d of unknown memory, assumed 5 GiB", inputs->n_without_memory);
    if (inputs->n_without_smact)
        printf("; %d of unknown SM activity, assumed 50 %%", inputs->n_without_smact);
    if (inputs->n_without_time)
        printf("; %d of unknown time, assumed 1 h", inputs->n_without_time);
    printf("\n\n");
}

static void add_outcome(struct table *table, const char *name, const struct mig_outcome *outcome)
{
    char total[32], mean[32];
    table_row(table);
    table_cell(table, NULL, "%s", name);
    if (!outcome->is_known) {
        for (int i = 0; i < 3; i++)
            table_cell(table, NULL, "-");
        return;
    }
    table_cell(
        table, NULL, "%s", format_elapsed((int64_t)(outcome->total_s * 1e6), total, sizeof total));
    table_cell(
        table, NULL, "%s", format_elapsed((int64_t)(outcome->avg_jct_s * 1e6), mean, sizeof mean));
    table_cell(table, NULL, "%lld", (long long)outcome->left_out);
}

static void print_outcomes(const struct mig_advice *advice)
{
    static const struct table_column columns[] = {{"GPUS", 0}, {"TOTAL", TABLE_RIGHT},
        {"MEAN COMPLETION", TABLE_RIGHT}, {"FIT NOWHERE", TABLE_RIGHT}};
    struct table *table = table_create(columns, ARRAY_SIZE(columns));
    add_outcome(table, "whole, one task each", &advice->exclusive);
    add_outcome(table, "whole, shared by MPS", &advice->mps);
    add_outcome(table, "divided as now", &advice->now);
    add_outcome(table, "divided as proposed", &advice->best);
    table_print(table, "");
    table_destroy(table);
}

static void print_layouts(const struct mig_inputs *inputs, const struct mig_advice *advice)
{
    static const struct table_column columns[] = {{"GPU", 0}, {"NOW", 0}, {"PROPOSED", 0}};
    struct table *table = table_create(columns, ARRAY_SIZE(columns));
    for (int i = 0; i < inputs->n_gpus; i++) {
        const char *none = inputs->gpus[i].can_change ? "no instances" : "whole";
        const char *now = inputs->gpus[i].now.text, *proposed = advice->layouts[i].text;
        table_row(table);
        table_cell(table, NULL, "%s", inputs->labels[i]);
        table_cell(table, NULL, "%s", *now ? now : none);
        table_cell(table, NULL, "%s", *proposed ? proposed : none);
    }
    printf("\n");
    table_print(table, "");
    table_destroy(table);
}

static void print_verdict(const struct mig_advice *advice)
{
    const struct mig_outcome *whole = advice->mps.total_s < advice->exclusive.total_s
                                          ? &advice->mps
                                          : &advice->exclusive;
    printf("\n");
    if (!advice->best.is_known)
        printf("No division could be simulated.\n");
    else if (!advice->is_worth_it)
        printf("The proposal is not 5 %% shorter than the present division: it is not worth a "
               "change.\n");
    else
        printf("The proposal is worth a change.\n");
    if (advice->best.is_known && whole->is_known && whole->left_out <= advice->best.left_out &&
        whole->total_s < advice->best.total_s)
        printf("Whole GPUs, with MIG off, are predicted to be faster still: %.0f %%.\n",
            100 * (1 - whole->total_s / advice->best.total_s));
}

static json_t *outcome_json(const struct mig_outcome *outcome)
{
    if (!outcome->is_known)
        return json_null();
    return json_pack("{s:f, s:f, s:I}", "total_s", outcome->total_s, "avg_jct_s",
        outcome->avg_jct_s, "left_out", (json_int_t)outcome->left_out);
}

static void print_advice_json(const struct mig_inputs *inputs, const struct mig_advice *advice)
{
    json_t *gpus = json_array();
    for (int i = 0; i < inputs->n_gpus; i++)
        json_array_append_new(
            gpus, json_pack("{s:s, s:s, s:s, s:b}", "index", inputs->labels[i], "now",
                      inputs->gpus[i].now.text, "proposed", advice->layouts[i].text, "can_change",
                      inputs->gpus[i].can_change));
    json_t *object = json_pack("{s:I, s:i, s:i, s:i, s:o, s:o, s:o, s:o, s:o, s:b}", "tasks",
        (json_int_t)inputs->queue.n, "without_memory", inputs->n_without_memory, "without_smact",
        inputs->n_without_smact, "without_time", inputs->n_without_time, "gpus", gpus, "exclusive",
        outcome_json(&advice->exclusive), "mps", outcome_json(&advice->mps), "now",
        outcome_json(&advice->now), "proposed", outcome_json(&advice->best), "worth_it",
        advice->is_worth_it);
    print_json(object);
    json_decref(object);
}

/* ---- applying ---- */

/* A GPU that has a new task meanwhile is not changed; the others are. */
static int apply_advice(const struct invocation *invocation, const char *nvml_library,
    const struct mig_inputs *inputs, const struct mig_advice *advice)
{
    struct fault fault = {0};
    struct gpu_set *set;
    int failed = 0;
    if (gpu_set_open(nvml_library, &fault, &set) < 0) {
        print_error("%s", fault.text);
        return EXIT_REFUSED;
    }
    for (int i = 0; i < inputs->n_gpus; i++) {
        const struct mig_layout *layout = &advice->layouts[i];
        if (strcmp(layout->text, inputs->gpus[i].now.text) == 0)
            continue;
        int r = mig_change_layout(invocation, set, inputs->labels[i], layout->text, &fault);
        failed += r < 0;
        if (r < 0)
            print_error("GPU %s: %s", inputs->labels[i], fault.text);
        else
            printf("GPU %s has %s now.\n", inputs->labels[i], layout->text);
    }
    gpu_set_close(set);
    return failed ? EXIT_REFUSED : EXIT_OK;
}

/* ---- the command ---- */

static int make_plan(const struct invocation *invocation, const struct mig_queue_options *options,
    const struct mig_inputs *inputs)
{
    const struct mig_question question = {.kinds = &inputs->kinds,
        .gpus = inputs->gpus,
        .n_gpus = inputs->n_gpus,
        .queue = &inputs->queue,
        .policy = inputs->policy,
        .sharing = inputs->sharing};
    struct mig_advice advice;
    struct fault fault = {0};
    if (mig_advise(&question, &fault, &advice) < 0) {
        print_error("%s", fault.text);
        return EXIT_REFUSED;
    }
    if (invocation->common[COMMON_JSON].number) {
        print_advice_json(inputs, &advice);
    } else {
        print_assumptions(inputs);
        print_outcomes(&advice);
        print_layouts(inputs, &advice);
        print_verdict(&advice);
    }
    if (!options->apply || !advice.is_worth_it)
        return EXIT_OK;
    return apply_advice(invocation, options->nvml_library, inputs, &advice);
}

int mig_plan_queue(const struct invocation *invocation, const struct mig_queue_options *options)
{
    json_auto_t *gpus = NULL, *tasks = NULL;
    CLEANUP(mig_inputs_fini) struct mig_inputs inputs = {0};
    struct fault fault = {0};
    if (options->apply && (options->what_if || invocation->common[COMMON_JSON].number)) {
        print_error("mig plan: --apply cannot be combined with --what-if or --json");
        return EXIT_USAGE;
    }
    int code = session_get(invocation, "/v1/gpus", &gpus);
    if (code == EXIT_OK)
        code = session_get(invocation, "/v1/tasks?state=live", &tasks);
    if (code == EXIT_OK && mig_inputs_read(gpus, tasks, options->what_if, &fault, &inputs) < 0) {
        print_error("%s", fault.text);
        code = EXIT_REFUSED;
    }
    if (code == EXIT_OK && inputs.queue.n == 0)
        puts("No task waits: there is nothing to plan for.");
    else if (code == EXIT_OK && !inputs.any_can_change)
        puts(options->what_if ? "No GPU has MIG."
                              : "No GPU that has MIG enabled is free of tasks: nothing can be "
                                "divided now (--what-if plans for all GPUs).");
    else if (code == EXIT_OK)
        code = make_plan(invocation, options, &inputs);
    return code;
}
