/* SPDX-License-Identifier: Apache-2.0 */
/*
 * In order: read FILE (a task file, a summary or an export), lay the command line's options over
 * it, run the user's PyTorch model if --pytorch names one, or the command after "--", parse the
 * network. Each step needs what the one before it found; the first fault ends the chain.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "cli/estimation.h"
#include "cli/export_kernels.h"
#include "cli/pytorch.h"
#include "cli/script_estimate.h"
#include "cli/submit_check.h"
#include "estimator/physics/gpu_traits.h"

/* Chosen: a large network is followed in minutes. */
static const int64_t limit_usual_us = 600 * SECOND_US;

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
        TASK_CHECKPOINTING, TASK_SEQ, TASK_INPUT, TASK_MEMORY, TASK_GPUS, TASK_PARALLEL,
        TASK_MICRO_BATCHES, TASK_OFFLOAD, TASK_LOADER_RATE};
    static const int of_pytorch[] = {
        ESTIMATE_EXPORT, ESTIMATE_PYTORCH, ESTIMATE_CLASSES, ESTIMATE_LABELS};
    const char *name = NULL;
    for (size_t i = 0; !name && i < ARRAY_SIZE(of_task); i++)
        if (task->values[of_task[i]].set)
            name = task_options[of_task[i]].name;
    for (size_t i = 0; !name && i < ARRAY_SIZE(of_pytorch); i++)
        if (invocation->values[of_pytorch[i]].set)
            name = invocation->command->options[of_pytorch[i]].name;
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
            return fault_set(fault, EINVAL, "estimate: --%s needs --pytorch",
                invocation->command->options[of_pytorch[i]].name);
    if (runs && task->values[TASK_SUMMARY].set)
        return fault_set(
            fault, EINVAL, "estimate: --pytorch excludes --summary and --export: give one of them");
    if (runs && !task->values[TASK_BATCH].set)
        return fault_set(fault, EINVAL, "estimate: --pytorch needs the batch size: add --batch=N");
    if (runs || task->values[TASK_SUMMARY].set || task->values[TASK_MEMORY].set)
        return 0;
    const char *file = invocation->operand_count ? invocation->operands[0] : "";
    if (strlen(file) > 3 && strcmp(file + strlen(file) - 3, ".py") == 0)
        return fault_set(fault, EINVAL,
            "estimate: %.200s is a script, not a model: did you mean `colloc estimate -- python "
            "%.200s`?",
            file, file);
    if (*file)
        return fault_set(fault, EINVAL,
            "estimate: %.200s: no model summary in it, none of torchsummary, torchinfo, a printed "
            "module or Keras, and no task file that names one",
            file);
    return fault_set(fault, EINVAL,
        "estimate: no model given: give a model summary, an export, a training command after "
        "--, --pytorch=SOURCE or --memory=SIZE");
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
    char all[GPU_TRAITS_NAMES_SIZE];
    const struct option_value *gpu = &invocation->values[ESTIMATE_GPU];
    if (!gpu->set || gpu_traits_find(gpu->text))
        return 0;
    return fault_set(fault, EINVAL,
        "--gpu=%.60s: unknown GPU model: give one of %s, or a name that contains one "
        "of them",
        gpu->text, gpu_traits_names(all, sizeof all));
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
    if (r == 0)
        r = taskfile_read_summary(task, fault);
    return r < 0 ? r : submit_take_arguments(task, NULL, fault);
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

/* The command's own Python has the PyTorch, and so the cuDNN, of the training. */
static int add_kernels(const struct invocation *invocation, struct task_description *task,
    size_t size, struct fault *fault)
{
    const char *named = invocation->values[ESTIMATE_PYTHON].text, *first = invocation->operands[0];
    bool is_python = strncmp(path_name(first), "python", strlen("python")) == 0;
    const struct kernel_source source = {.interpreter = named       ? named
                                                        : is_python ? first
                                                                    : NULL,
        .gpu = invocation->values[ESTIMATE_GPU].text,
        .limit_us = option_number_or(&invocation->values[ESTIMATE_LIMIT], limit_usual_us)};
    int r = export_kernels_add(&source, fault, &task->summary, &size);
    return fault_prefix(r < 0 ? fault : NULL, r, "--kernels");
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
    int r = script_export(&command, fault, &task->summary, &size);
    return r == 0 && invocation->values[ESTIMATE_KERNELS].number
               ? add_kernels(invocation, task, size, fault)
               : r;
}

const char *estimate_source_name(
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
    return fault_prefix(r < 0 ? fault : NULL, r, "%s", estimate_source_name(invocation, task));
}

int estimate_source_read(
    const struct invocation *invocation, struct estimation *estimation, struct fault *fault)
{
    int r = gather_task(invocation, &estimation->task, fault);
    if (r == 0)
        r = run_pytorch(invocation, &estimation->task, fault);
    if (r == 0)
        r = run_script(invocation, &estimation->task, fault);
    return r == 0 ? parse_summary(invocation, estimation, fault) : r;
}
