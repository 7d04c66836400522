/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `colloc estimate`: the GPU memory requirement of a training, without a daemon.
 *
 * In order: read the task and its network (estimate_source.c), read the run history, run one
 * estimator or all, print (estimate_print.c).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "cli/estimate_history.h"
#include "cli/estimation.h"
#include "cli/print.h"
#include "cli/script_estimate.h"
#include "cli/simulating.h"
#include "taskfile/estimate_options.h"

enum { EXIT_NOT_FOLLOWED = 3 }; /* a command was run, but no training was seen */

enum { HISTORY_MAX_BYTES = 64 << 20 };

/* Where docs/calibrate.md has the file. */
#define CALIBRATION_USUAL "/etc/colloc/host.txt"

static const struct option_spec options[] = {
    [ESTIMATE_EXPORT] = OPTION("export", FILE, "FILE",
        .help = "export of the model, as `colloc-export` writes it; gives a nearly exact "
                "estimate"),
    [ESTIMATE_PYTORCH] = OPTION("pytorch", TEXT, "SOURCE",
        .help = "export this PyTorch model (its code runs as you, on fake tensors, without a "
                "GPU) and estimate from that: FILE.py:FUNCTION or MODULE:FUNCTION that "
                "returns the model; timm:NAME, torchvision:NAME, transformers:CLASS"),
    [ESTIMATE_CLASSES] = OPTION("classes", INTEGER, "N", .max = INT32_MAX,
        .help = "with --pytorch: number of classes of the target; 0: the loss is the "
                "mean of the output; default: 1000"),
    [ESTIMATE_LABELS] = FLAG_OPTION("labels",
        .help = "with --pytorch: the model takes labels like its first input and returns its loss"),
    [ESTIMATE_KERNELS] = FLAG_OPTION("kernels",
        .help = "with --pytorch or a command: measure the cuDNN workspace of each convolution on a "
                "GPU of this machine; takes seconds, and the GPU memory of one convolution; "
                "answers are kept, and serve without a GPU for the one that --gpu names"),
    [ESTIMATE_PYTHON] = OPTION("python", TEXT, "PROGRAM",
        .help = "with --pytorch: Python interpreter that has PyTorch; default: python3; with a "
                "command: the interpreter that runs in place of its first word"),
    [ESTIMATE_LIMIT] = OPTION("limit", DURATION, "TIME", .min = SECOND_US, .max = DAY_US,
        .help = "with --pytorch: time limit of the export; default: 10m; with a command: the "
                "time until its second optimizer step; default: 5m"),
    [ESTIMATE_GPU] = OPTION("gpu", TEXT, "NAME",
        .help =
            "GPU model, as nvidia-smi names it, or a kind of the emulator: A100, L40S, RTX-3090 ...; default: "
            "the GPU on which the export's kernels were measured, otherwise A100"),
    [ESTIMATE_HISTORY] = OPTION("history", FILE, "FILE", .is_optional = true,
        .help = "run history for the estimator history: a CSV file with the columns "
                "fingerprint, batch, seq, optimizer, precision, gpu, peak_mib, outcome "
                "(completed or oom); without FILE: print how good the daemon's estimates were"),
    [ESTIMATE_CALIBRATION] = OPTION("calibration", FILE, "FILE",
        .help = "file that `colloc calibrate` wrote on the host of the training: how fast it "
                "decodes pictures, for SM activity; default: " CALIBRATION_USUAL ", if it exists"),
};

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

/* A host that was not calibrated is not known; a file that was named has to be there. What is wrong
 * with the other one is no reason to estimate no memory. */
static int read_decoding(
    const struct invocation *invocation, struct fault *fault, struct host_decoding *ret_decoding)
{
    const char *named = invocation->values[ESTIMATE_CALIBRATION].text,
               *path = named ? named : CALIBRATION_USUAL;
    CLEANUP_FREE struct gpu_kinds *kinds = malloc(sizeof *kinds);
    if (!named && access(path, R_OK) < 0)
        return 0;
    int r = kinds ? simulating_kinds(path, fault, kinds)
                  : fault_set(fault, ENOMEM, "out of memory");
    if (r < 0 && !named) {
        print_error("warning: %s: SMACT is without a wait for data", fault->text);
        return 0;
    }
    if (r < 0)
        return fault_prefix(fault, r, "--calibration");
    *ret_decoding = (struct host_decoding){
        kinds->constants.decode_rate, kinds->constants.decode_most};
    return 0;
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
    int r = read_decoding(invocation, fault, &estimation->request.decoding);
    return r < 0 ? r : estimate_options_apply(estimation->task.values, fault, &estimation->request);
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
    int r = estimate_source_read(invocation, &estimation, &fault);
    if (r == 0)
        r = read_history(invocation, &estimation, &fault);
    if (r == 0)
        r = fill_request(invocation, &estimation, &fault);
    if (r == 0)
        r = run_estimators(&estimation, &fault);
    int code = r == 0 ? EXIT_OK : r == SCRIPT_NOT_FOLLOWED ? EXIT_NOT_FOLLOWED : EXIT_USAGE;
    if (r == 0)
        estimate_print(invocation, &estimation);
    else if (r == SCRIPT_NOT_FOLLOWED)
        estimate_print_not_followed(invocation, fault.text);
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
                   "only a calibrated estimator has them. A task that takes more than its "
                   "--memory is at fault, so that should be P99. Without --memory the daemon "
                   "reserves the starred value, P90 unless its setting reserve-quantile says "
                   "otherwise, and lets an allocation that needs more wait. It adds its margin to "
                   "either. FLOOR is the least "
                   "memory with which the task can run, SMACT its SM activity alone on the "
                   "GPU. A narrow terminal does not show FLOOR, SMACT and P50.\n\n"
                   "--history alone asks the daemon for the estimates of completed tasks and "
                   "prints their median error and how many tasks took more than P99.",
    COMMAND_OPTIONS(options),
    .task_options = TASK_OPTION_BIT(TASK_SUMMARY) | TASK_OPTION_BIT(TASK_BATCH) |
                    TASK_OPTION_BIT(TASK_ESTIMATOR) | TASK_OPTION_BIT(TASK_MEMORY) |
                    TASK_OPTION_BIT(TASK_OPTIMIZER) | TASK_OPTION_BIT(TASK_PRECISION) |
                    TASK_OPTION_BIT(TASK_CHECKPOINTING) | TASK_OPTION_BIT(TASK_SEQ) |
                    TASK_OPTION_BIT(TASK_INPUT) | TASK_OPTION_BIT(TASK_GPUS) |
                    TASK_OPTION_BIT(TASK_PARALLEL) | TASK_OPTION_BIT(TASK_MICRO_BATCHES) |
                    TASK_OPTION_BIT(TASK_OFFLOAD) | TASK_OPTION_BIT(TASK_LOADER_RATE),
    .operand = OPERAND_FILE,
    .max_operands = -1,
    .run = run,
};
