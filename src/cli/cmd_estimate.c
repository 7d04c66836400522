/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `colloc estimate`: the GPU memory requirement of a training, without a daemon.
 *
 * In order: read FILE (a task file, a summary or an export), lay the command line's options over
 * it, run the user's PyTorch model if --pytorch names one or the command after "--", parse the
 * network, read the run history, run one estimator or all, print.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/estimate_history.h"
#include "cli/print.h"
#include "cli/pytorch.h"
#include "cli/script_estimate.h"
#include "cli/table.h"
#include "cli/task_view.h"
#include "estimator/estimator.h"
#include "estimator/physics/gpu_traits.h"
#include "model/network.h"
#include "taskfile/estimate_options.h"
#include "taskfile/taskfile.h"
#include "training/name_list.h"

enum {
    ESTIMATE_EXPORT,
    ESTIMATE_PYTORCH,
    ESTIMATE_CLASSES,
    ESTIMATE_LABELS,
    ESTIMATE_KERNELS,
    ESTIMATE_PYTHON,
    ESTIMATE_LIMIT,
    ESTIMATE_GPU,
    ESTIMATE_HISTORY
};

enum { EXIT_NOT_FOLLOWED = 3 }; /* a command was run, but no training was seen */

enum { ESTIMATORS_MOST = 32, HISTORY_MAX_BYTES = 64 << 20 };

/* Chosen: a large network is followed in minutes. */
static const int64_t limit_usual_us = 600 * SECOND_US;

static const struct option_spec options[] = {
    [ESTIMATE_EXPORT] = {.name = "export",
        .kind = OPTION_FILE,
        .argument = "FILE",
        .help = "export of the model, as `colloc-export` writes it; gives a nearly exact "
                "estimate"},
    [ESTIMATE_PYTORCH] = {.name = "pytorch",
        .kind = OPTION_TEXT,
        .argument = "SOURCE",
        .help = "export this PyTorch model (its code runs as you, on fake tensors, without a "
                "GPU) and estimate from that: FILE.py:FUNCTION or MODULE:FUNCTION that "
                "returns the model; timm:NAME, torchvision:NAME, transformers:CLASS"},
    [ESTIMATE_CLASSES] = {.name = "classes",
        .kind = OPTION_INTEGER,
        .argument = "N",
        .max = INT32_MAX,
        .help = "with --pytorch: number of classes of the target; 0: the loss is the "
                "mean of the output; default: 1000"},
    [ESTIMATE_LABELS] = {.name = "labels",
        .kind = OPTION_FLAG,
        .help = "with --pytorch: the model takes labels like its first input and returns its loss"},
    [ESTIMATE_KERNELS] = {.name = "kernels",
        .kind = OPTION_FLAG,
        .help = "with --pytorch: measure the cuDNN workspace of each convolution on a GPU of "
                "this machine; takes seconds, and the GPU memory of one convolution"},
    [ESTIMATE_PYTHON] = {.name = "python",
        .kind = OPTION_TEXT,
        .argument = "PROGRAM",
        .help = "with --pytorch: Python interpreter that has PyTorch; default: python3; with a "
                "command: the interpreter that runs in place of its first word"},
    [ESTIMATE_LIMIT] = {.name = "limit",
        .kind = OPTION_DURATION,
        .argument = "TIME",
        .min = SECOND_US,
        .max = 86400 * SECOND_US,
        .help = "with --pytorch: time limit of the export; default: 10m; with a command: the "
                "time until its second optimizer step; default: 5m"},
    [ESTIMATE_GPU] = {.name = "gpu",
        .kind = OPTION_TEXT,
        .argument = "NAME",
        .help = "GPU model, as nvidia-smi names it: H200, H100, A100 or V100; default: "
                "the GPU on which the export's kernels were measured, otherwise A100"},
    [ESTIMATE_HISTORY] = {.name = "history",
        .kind = OPTION_FILE,
        .argument = "FILE",
        .is_optional = true,
        .help = "run history for the estimator history: a CSV file with the columns "
                "fingerprint, batch, seq, optimizer, precision, gpu, peak_mib, outcome "
                "(completed or oom); without FILE: print how good the daemon's estimates were"},
};

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

/* The inputs and the answers of one or all estimators. */
struct estimation {
    struct task_description task;
    struct network network; /* empty without a summary or an export */
    struct past_run *history;
    size_t n_history;
    struct estimate_request request;
    struct estimate answers[ESTIMATORS_MOST];
    size_t count;
};

/* An export is accepted in place of a summary: the content shows which it is. */
static int take_export(
    const struct invocation *invocation, struct task_description *task, struct fault *fault)
{
    const struct option_value *export = &invocation->values[ESTIMATE_EXPORT];
    if (!export->set)
        return 0;
    if (task->values[TASK_SUMMARY].set)
        return fault_set(
            fault, EINVAL, "estimate: --summary and --export exclude each other: give one of them");
    struct option_value given[TASK_OPTION_MAX] = {[TASK_SUMMARY] = *export};
    return option_values_overlay(task->values, given, TASK_OPTION_MAX) < 0
               ? fault_set(fault, ENOMEM, "out of memory")
               : 0;
}

/* A command shows its batch size and all else. */
static int check_command(
    const struct invocation *invocation, const struct task_description *task, struct fault *fault)
{
    static const int of_task[] = {TASK_SUMMARY, TASK_BATCH, TASK_OPTIMIZER, TASK_PRECISION,
        TASK_SEQ, TASK_INPUT, TASK_MEMORY, TASK_GPUS, TASK_PARALLEL, TASK_MICRO_BATCHES,
        TASK_OFFLOAD};
    static const int of_pytorch[] = {
        ESTIMATE_EXPORT, ESTIMATE_PYTORCH, ESTIMATE_CLASSES, ESTIMATE_LABELS, ESTIMATE_KERNELS};
    const char *name = NULL;
    for (size_t i = 0; !name && i < ARRAY_SIZE(of_task); i++)
        if (task->values[of_task[i]].set)
            name = task_options[of_task[i]].name;
    for (size_t i = 0; !name && i < ARRAY_SIZE(of_pytorch); i++)
        if (invocation->values[of_pytorch[i]].set)
            name = options[of_pytorch[i]].name;
    return name ? fault_set(fault, EINVAL,
                      "estimate: --%s excludes a command: the training itself shows what it does",
                      name)
                : 0;
}

/* The network comes from exactly one of these. */
static int check_source(
    const struct invocation *invocation, const struct task_description *task, struct fault *fault)
{
    if (invocation->after_dashes)
        return check_command(invocation, task, fault);
    const struct option_value *values = invocation->values;
    static const int of_pytorch[] = {
        ESTIMATE_CLASSES, ESTIMATE_LABELS, ESTIMATE_KERNELS, ESTIMATE_PYTHON, ESTIMATE_LIMIT};
    bool runs = values[ESTIMATE_PYTORCH].set;
    for (size_t i = 0; !runs && i < ARRAY_SIZE(of_pytorch); i++)
        if (values[of_pytorch[i]].set)
            return fault_set(
                fault, EINVAL, "estimate: --%s needs --pytorch", options[of_pytorch[i]].name);
    if (runs && task->values[TASK_SUMMARY].set)
        return fault_set(
            fault, EINVAL, "estimate: --pytorch excludes --summary and --export: give one of them");
    if (runs && !task->values[TASK_BATCH].set)
        return fault_set(fault, EINVAL, "estimate: --pytorch needs the batch size: add --batch=N");
    if (!runs && !task->values[TASK_SUMMARY].set && !task->values[TASK_MEMORY].set)
        return fault_set(fault, EINVAL,
            "estimate: no model given: give a model summary, an export, a training command after "
            "--, --pytorch=SOURCE or --memory=SIZE");
    return 0;
}

/* Is FILE a summary or an export, by its content? False if it cannot be read: the reader of task
 * files then reports why. */
static bool is_network(const char *path)
{
    char *text;
    size_t size;
    if (strcmp(path, "-") == 0 || file_read(path, SUMMARY_MAX_BYTES, NULL, &text, &size) < 0)
        return false;
    bool found = !taskfile_is_script(text, size) && network_detect(text, size);
    free(text);
    return found;
}

/* FILE is a task file, or what --summary or --export would name. */
static int read_operand(
    const struct invocation *invocation, struct task_description *task, struct fault *fault)
{
    const char *path = invocation->operands[0];
    if (!is_network(path))
        return taskfile_read(path, fault, task);
    if (invocation->task_values[TASK_SUMMARY].set || invocation->values[ESTIMATE_EXPORT].set)
        return fault_set(fault, EINVAL,
            "estimate: %.200s is a model description already: leave out --summary "
            "and --export",
            path);
    return option_set_text(
        &task_options[TASK_SUMMARY], "FILE", path, &task->values[TASK_SUMMARY], fault);
}

static int check_gpu(const struct invocation *invocation, struct fault *fault)
{
    char all[NAME_LIST_MAX_SIZE];
    const struct option_value *gpu = &invocation->values[ESTIMATE_GPU];
    if (!gpu->set || gpu_traits_find(gpu->text))
        return 0;
    return fault_set(fault, EINVAL,
        "--gpu=%.60s: unknown GPU model: give one of %s, or a name that contains one "
        "of them",
        gpu->text, name_list_join(gpu_traits_kinds, all));
}

/*
 * Lays the sources of a task's description over each other; the later one wins:
 *
 *     FILE  <  the task's options on the command line  <  --export
 */
static int gather_task(
    const struct invocation *invocation, struct task_description *task, struct fault *fault)
{
    int r = check_gpu(invocation, fault);
    if (r == 0 && invocation->operand_count > 1 && !invocation->after_dashes)
        r = fault_set(fault, EINVAL,
            "estimate: unexpected argument '%.80s': a command follows --: colloc estimate -- "
            "python train.py",
            invocation->operands[1]);
    if (r == 0 && invocation->operand_count && !invocation->after_dashes)
        r = read_operand(invocation, task, fault);
    if (r == 0 && option_values_overlay(task->values, invocation->task_values, TASK_OPTION_MAX) < 0)
        r = fault_set(fault, ENOMEM, "out of memory");
    if (r == 0)
        r = take_export(invocation, task, fault);
    if (r == 0)
        r = check_source(invocation, task, fault);
    return r < 0 ? r : taskfile_read_summary(task, fault);
}

static bool wants_fake_peak(const struct task_description *task)
{
    const char *named = task->values[TASK_ESTIMATOR].text;
    return named && (strcmp(named, "all") == 0 || strcmp(named, "faketensor") == 0);
}

/* The option's parser has checked it. */
static enum precision precision_of(const struct option_value *values)
{
    enum precision precision;
    precision_parse("precision", values[TASK_PRECISION].text, NULL, &precision);
    return precision;
}

/* Exports the user's model, and takes the export in place of a file. */
static int run_pytorch(
    const struct invocation *invocation, struct task_description *task, struct fault *fault)
{
    const struct option_value *own = invocation->values, *values = task->values;
    enum precision precision = precision_of(values);
    const struct pytorch_model model = {
        .source = own[ESTIMATE_PYTORCH].text,
        .inputs = values[TASK_INPUT].text,
        .classes = option_number_or(&own[ESTIMATE_CLASSES], -1),
        .labels = own[ESTIMATE_LABELS].number,
        .kernels = own[ESTIMATE_KERNELS].number,
        .batch = values[TASK_BATCH].number,
        .optimizer = values[TASK_OPTIMIZER].text,
        .precision = precision == PRECISION_NOT_GIVEN   ? NULL
                     : precision_is_autocast(precision) ? "amp"
                                                        : "fp32",
        .sequence_length = values[TASK_SEQ].number,
        .with_fake = wants_fake_peak(task),
        .interpreter = own[ESTIMATE_PYTHON].text,
        .limit_us = option_number_or(&own[ESTIMATE_LIMIT], limit_usual_us),
    };
    size_t size;
    int r = model.source ? pytorch_export(&model, fault, &task->summary, &size) : 0;
    return fault_prefix(r < 0 ? fault : NULL, r, "--pytorch=%.100s", model.source);
}

/* Follows the command after "--", and takes its export in place of a file. */
static int run_script(
    const struct invocation *invocation, struct task_description *task, struct fault *fault)
{
    if (!invocation->after_dashes)
        return 0;
    const struct script_command command = {.words = invocation->operands,
        .interpreter = invocation->values[ESTIMATE_PYTHON].text,
        .limit_us = invocation->values[ESTIMATE_LIMIT].number};
    size_t size;
    return script_export(&command, fault, &task->summary, &size);
}

/* Returns what the network was read from, as the user named it. */
static const char *source_of(
    const struct invocation *invocation, const struct task_description *task)
{
    const struct option_value *pytorch = &invocation->values[ESTIMATE_PYTORCH];
    if (invocation->after_dashes)
        return "the script";
    return pytorch->set ? pytorch->text : task->values[TASK_SUMMARY].text;
}

/* What --export names must be an export. A FILE without an option is what its content shows. */
static int parse_summary(
    const struct invocation *invocation, struct estimation *estimation, struct fault *fault)
{
    const struct task_description *task = &estimation->task;
    if (!task->summary)
        return 0;
    size_t size = strlen(task->summary);
    bool is_export = export_detect(task->summary, size);
    int r = 0;
    if (invocation->values[ESTIMATE_EXPORT].set && !is_export)
        r = fault_set(fault, EINVAL,
            "not an export (colloc-export writes one): give a model summary with "
            "--summary");
    if (invocation->values[ESTIMATE_PYTORCH].set && !is_export)
        r = fault_set(fault, EINVAL, "the exporter wrote something that is not an export");
    if (r == 0)
        r = network_parse(task->summary, size, fault, &estimation->network);
    if (r == 0)
        r = network_set_input(&estimation->network, task->values[TASK_INPUT].text, fault);
    return fault_prefix(r < 0 ? fault : NULL, r, "%s", source_of(invocation, task));
}

/* Without --history the estimator `history` has nothing to go by: the runs of this machine are the
 * daemon's. */
static int read_history(
    const struct invocation *invocation, struct estimation *estimation, struct fault *fault)
{
    const struct option_value *file = &invocation->values[ESTIMATE_HISTORY];
    char *text;
    size_t size;
    if (!file->set)
        return 0;
    int r = file_read(file->text, HISTORY_MAX_BYTES, fault, &text, &size);
    if (r < 0)
        return r;
    r = past_runs_parse(text, size, fault, &estimation->history, &estimation->n_history);
    free(text);
    return fault_prefix(r < 0 ? fault : NULL, r, "%s", file->text);
}

/* Returns the GPU of --gpu; else the one on which the export's kernels were measured; else NULL. */
static const char *gpu_kind_of(const struct invocation *invocation, const struct export *export)
{
    const char *named = invocation->values[ESTIMATE_GPU].text;
    return named || !export || export->measured.batch == 0 ? named : export->measured.gpu;
}

static int fill_request(
    const struct invocation *invocation, struct estimation *estimation, struct fault *fault)
{
    estimation->request = (struct estimate_request){
        .model = estimation->network.model,
        .export = estimation->network.export,
        .gpu_kind = gpu_kind_of(invocation, estimation->network.export),
        .history = estimation->history,
        .n_history = estimation->n_history,
    };
    return estimate_options_apply(estimation->task.values, fault, &estimation->request);
}

static int run_estimator(struct estimation *estimation, const char *name, struct fault *fault)
{
    struct estimate *answer = &estimation->answers[estimation->count];
    int r = estimate_run(name, &estimation->request, fault, answer);
    if (r < 0)
        return r;
    estimation->count++;
    return 0;
}

static int run_estimators(struct estimation *estimation, struct fault *fault)
{
    const char *named = estimation->task.values[TASK_ESTIMATOR].text;
    const char *wanted = estimator_choose(named, &estimation->request, ESTIMATOR_USUAL);
    if (strcmp(wanted, "all") != 0)
        return run_estimator(estimation, wanted, fault);
    int r = 0;
    for (size_t i = 0; r == 0 && i < ESTIMATORS_MOST && estimator_at(i); i++)
        r = run_estimator(estimation, estimator_at(i)->name, fault);
    return r;
}

static json_t *scaled_json(struct reading reading, double unit)
{
    return reading.valid ? json_real(reading.value / unit) : json_null();
}

static json_t *mib_json(struct reading bytes)
{
    return scaled_json(bytes, (double)MIB);
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
            json_pack("{so,so,so,ss,ss}", "smact", scaled_json(answer->smact, 1), "dram_active",
                scaled_json(answer->dram_active, 1), "step_ms", scaled_json(answer->step_us, 1e3),
                "evidence", evidence_name(answer->evidence), "note", answer->note));
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
    return json_pack("{ss,ss,so,so,so,so,so,so}", "fingerprint", fingerprint, "format",
        summary_format_name(model->format), "parameters",
        count_json((struct count){model->parameters, has_layers}), "parameters_printed",
        count_json(model->parameters_printed), "trainable_printed",
        count_json(model->trainable_printed), "batch", count_json(model->batch),
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

static void bytes_cell(struct table *table, struct reading bytes, const char *mark)
{
    char size[CELL_SIZE];
    table_cell(table, NULL, "%s%s",
        bytes.valid ? format_size((int64_t)bytes.value, size, sizeof size) : "-", mark);
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
    if (has_star)
        puts("\n* the daemon reserves this value by default, and its margin in "
             "addition, unless --memory is given");
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

static struct reading whole_mib(struct reading bytes)
{
    return bytes.valid ? reading_of(ceil(bytes.value / (double)MIB)) : bytes;
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

/* Rounded up to a tenth of a GiB, or to a MiB below one: printed, it is still enough. */
static void format_reserve(double mib, char *text, size_t size)
{
    double gib = mib * (double)MIB / (double)GIB;
    if (gib >= 1)
        snprintf(text, size, "%.1f GiB", ceil(gib * 10 - 1e-9) / 10);
    else
        snprintf(text, size, "%.0f MiB", mib);
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

/* Warnings go to standard error, so that a script reads the JSON alone. */
static void print_all(const struct invocation *invocation, const struct estimation *estimation)
{
    const struct model *model = estimation->network.model;
    const char *export = estimation->task.summary;
    json_t *seen = invocation->after_dashes ? script_seen(export, strlen(export)) : NULL;
    if (invocation->common[COMMON_JSON].number) {
        const struct estimate *answer = main_answer(estimation);
        json_t *object = json_pack("{so,so,sb,so,so,so}", "reserve_mib",
            scaled_json(reserve_mib(answer), 1), "needs_mib", scaled_json(needs_mib(answer), 1),
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
            print_error(
                "warning: %s: %s", source_of(invocation, &estimation->task), model->warnings[i]);
        print_reserve(estimation);
        if (seen)
            print_seen(seen);
        print_network(&estimation->network);
        print_answers(estimation);
    }
    json_decref(seen);
}

/* The script ran, but no training was seen. Returns the exit status. */
static int print_not_followed(const struct invocation *invocation, const struct fault *fault)
{
    if (invocation->common[COMMON_JSON].number) {
        json_t *object = json_pack(
            "{ss,ss}", "evidence", evidence_name(EVIDENCE_SCRIPT), "reason", fault->text);
        print_json(object);
        json_decref(object);
    } else {
        print_error("cannot follow the script: %s", fault->text);
    }
    return EXIT_NOT_FOLLOWED;
}

/* --history without a file. */
static bool asks_for_errors(const struct invocation *invocation)
{
    const struct option_value *history = &invocation->values[ESTIMATE_HISTORY];
    return history->set && !*history->text;
}

/* Each step needs what the one before it found; the first fault ends the chain. */
static int run(const struct invocation *invocation)
{
    if (asks_for_errors(invocation) && invocation->operand_count > 0) {
        print_error("estimate: --history without a file prints how good the daemon's estimates "
                    "were: leave out the other arguments, or give --history=FILE");
        return EXIT_USAGE;
    }
    if (asks_for_errors(invocation))
        return estimate_history_print(invocation);
    struct estimation estimation = {0};
    struct fault fault = {0};
    int r = gather_task(invocation, &estimation.task, &fault);
    if (r == 0)
        r = run_pytorch(invocation, &estimation.task, &fault);
    if (r == 0)
        r = run_script(invocation, &estimation.task, &fault);
    if (r == 0)
        r = parse_summary(invocation, &estimation, &fault);
    if (r == 0)
        r = read_history(invocation, &estimation, &fault);
    if (r == 0)
        r = fill_request(invocation, &estimation, &fault);
    if (r == 0)
        r = run_estimators(&estimation, &fault);
    int code = r == 0 ? EXIT_OK : EXIT_USAGE;
    if (r == 0)
        print_all(invocation, &estimation);
    else if (r == SCRIPT_NOT_FOLLOWED)
        code = print_not_followed(invocation, &fault);
    else
        print_error("%s", fault.text);
    network_fini(&estimation.network);
    free(estimation.history);
    task_description_fini(&estimation.task);
    return code;
}

#if HAVE_GPUMEMNET
#define GPUMEMNET "gpumemnet-mlp, gpumemnet-transformer, "
#else
#define GPUMEMNET ""
#endif

const struct command command_estimate = {
    .name = "estimate",
    .usage = "[OPTION...] [FILE | -- COMMAND [ARGUMENT...]]",
    .summary = "estimate the GPU memory requirement of a task, without a daemon",
    .description = "FILE is a model summary, an export or a task file; colloc detects which. "
                   "Options on the command line override those in a task file. --estimator "
                   "selects the estimator: graph, history, summary, horus, faketensor, " GPUMEMNET
                   "declared, none, or all of them; the default is declared with --memory, "
                   "otherwise graph. An estimator without an answer prints a note; that is "
                   "not an error.\n\n"
                   "COMMAND is a training as it would be submitted, such as python train.py "
                   "--batch-size 64. It runs unmodified and without a GPU: CUDA appears to be "
                   "there, tensors on it have shapes and no data, and the run ends after the "
                   "second optimizer step. It has no network and no standard input, and what it "
                   "writes or deletes vanishes, where the machine allows namespaces; a warning "
                   "says what was not protected. Exit status 3: it could not be followed; the "
                   "message, or the member reason, says why.\n\n"
                   "The first line is the value to give to --memory: P99, rounded up to "
                   "whole MiB; of a network of convolutions whose kernels cuDNN tries "
                   "(cudnn.benchmark), P99 without them, and a second line says what they may "
                   "take. Memory is per GPU, as nvidia-smi shows it. P50, P90 and P99 "
                   "were enough memory for 50, 90 and 99 % of comparable training runs; "
                   "only a calibrated estimator has them. Without --memory the daemon "
                   "reserves the starred value, and its margin in addition; the daemon's "
                   "setting reserve-quantile selects the quantile. FLOOR is the least "
                   "memory with which the task can run, SMACT its SM activity alone on the "
                   "GPU. A narrow terminal does not show FLOOR, SMACT and P50.\n\n"
                   "--history alone asks the daemon for the estimates of completed tasks and "
                   "prints their median error and how many tasks took more than P99.",
    COMMAND_OPTIONS(options),
    .task_options = TASK_OPTION_BIT(TASK_SUMMARY) | TASK_OPTION_BIT(TASK_BATCH) |
                    TASK_OPTION_BIT(TASK_ESTIMATOR) | TASK_OPTION_BIT(TASK_MEMORY) |
                    TASK_OPTION_BIT(TASK_OPTIMIZER) | TASK_OPTION_BIT(TASK_PRECISION) |
                    TASK_OPTION_BIT(TASK_SEQ) | TASK_OPTION_BIT(TASK_INPUT) |
                    TASK_OPTION_BIT(TASK_GPUS) | TASK_OPTION_BIT(TASK_PARALLEL) |
                    TASK_OPTION_BIT(TASK_MICRO_BATCHES) | TASK_OPTION_BIT(TASK_OFFLOAD),
    .operand = OPERAND_FILE,
    .max_operands = -1,
    .run = run,
};
