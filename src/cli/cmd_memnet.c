/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `colloc memnet`: trains and evaluates the GPUMemNet networks.
 *
 * The inputs and the answers of the networks are computed here, as `colloc estimate` computes them
 * (memnet_feed.c). Training with PyTorch, the metrics and the figures are python/colloc_memnet,
 * which this program becomes. docs/memnet.md has what the networks are, and how well they estimate.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "cli/command.h"
#include "cli/memnet_feed.h"
#include "cli/print.h"
#include "cli/python.h"

enum {
    MEMNET_OUTPUT,
    MEMNET_SEED,
    MEMNET_JOBS,
    MEMNET_ONLY,
    MEMNET_EPOCHS,
    MEMNET_WEIGHTS,
    MEMNET_PYTHON,
    MEMNET_OPTIONS
};

static const struct option_spec options[MEMNET_OPTIONS] = {
    [MEMNET_OUTPUT] = OPTION("output", FILE, "FOLDER", .letter = 'o',
        .help = "train: folder for the weights, default: memnet-weights; eval: folder "
                "for answers.csv and the figures, default: write none"),
    [MEMNET_SEED] = OPTION("seed", INTEGER, "N", .max = INT64_MAX,
        .help = "train: seed of the initial weights and of the order of the rows; default: 1"),
    [MEMNET_JOBS] = OPTION("jobs", INTEGER, "N", .letter = 'j', .min = 1, .max = 64,
        .help = "train: number of networks that are trained at the same time; default: the "
                "number of processors"),
    [MEMNET_ONLY] = OPTION("only", TEXT, "TEXT",
        .help = "only the networks whose names contain this, such as \"cnn-\" or "
                "\"mlp-transformer-1gib\"; default: all"),
    [MEMNET_EPOCHS] = OPTION("epochs", INTEGER, "N", .min = 1, .max = 100000,
        .help = "train: largest number of epochs; default: 600"),
    [MEMNET_WEIGHTS] = OPTION("weights", FILE, "FOLDER",
        .help = "eval: folder with the weights to evaluate; default: the weights built into "
                "`colloc estimate`"),
    [MEMNET_PYTHON] = OPTION("python", TEXT, "PROGRAM",
        .help = "Python interpreter; train needs its PyTorch, the figures of eval need its "
                "matplotlib; default: python3"),
};

#define BIT(option) (1u << (option))

static const struct action {
    const char *name;
    unsigned takes;
    bool trains;
} actions[] = {
    {"train",
        BIT(MEMNET_OUTPUT) | BIT(MEMNET_SEED) | BIT(MEMNET_JOBS) | BIT(MEMNET_ONLY) |
            BIT(MEMNET_EPOCHS) | BIT(MEMNET_PYTHON),
        true},
    {"eval", BIT(MEMNET_OUTPUT) | BIT(MEMNET_ONLY) | BIT(MEMNET_WEIGHTS) | BIT(MEMNET_PYTHON),
        false},
};

/* The actions share one table of options; each says by a set of bits which of them it takes. */
static int find_action(
    const struct invocation *invocation, struct fault *fault, const struct action **ret_action)
{
    const struct action *action = NULL;
    for (size_t i = 0; i < ARRAY_SIZE(actions); i++)
        if (strcmp(actions[i].name, invocation->operands[0]) == 0)
            action = &actions[i];
    if (!action)
        return fault_set(fault, EINVAL, "memnet: unknown action \"%s\": give train or eval",
            invocation->operands[0]);
    for (int i = 0; i < MEMNET_OPTIONS; i++)
        if (invocation->values[i].set && !(action->takes & BIT(i)))
            return fault_set(fault, EINVAL, "memnet %s: --%s is not an option of this action",
                action->name, options[i].name);
    *ret_action = action;
    return 0;
}

static void print_dataset(const struct dataset *dataset)
{
    size_t n[GPUMEMNET_FAMILIES] = {0}, real = 0;
    for (size_t i = 0; i < dataset->n; i++) {
        n[dataset->rows[i].features.family] += !dataset->rows[i].real;
        real += dataset->rows[i].real;
    }
    fprintf(stderr,
        "%zu MLPs, %zu CNNs, %zu Transformers and %zu runs of real networks; "
        "skipped: %zu failed runs, %zu with incomplete data\n",
        n[GPUMEMNET_MLP], n[GPUMEMNET_CNN], n[GPUMEMNET_TRANSFORMER], real, dataset->n_failed,
        dataset->n_unsupported);
}

static int become_trainer(const struct option_value *values, struct fault *fault)
{
    const char *folder = option_text_or(&values[MEMNET_OUTPUT], "memnet-weights");
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    char seed[32], jobs[32], epochs[32];
    snprintf(seed, sizeof seed, "%" PRId64, option_number_or(&values[MEMNET_SEED], 1));
    snprintf(jobs, sizeof jobs, "%" PRId64,
        option_number_or(&values[MEMNET_JOBS], processors > 0 ? processors : 1));
    snprintf(epochs, sizeof epochs, "%" PRId64, values[MEMNET_EPOCHS].number);
    const char *const words[] = {"colloc_memnet", "train", "--output", folder, "--seed", seed,
        "--jobs", jobs, values[MEMNET_EPOCHS].set ? "--epochs" : NULL, epochs, NULL};
    return python_become(values[MEMNET_PYTHON].text, words, fault);
}

static int become_evaluator(const struct invocation *invocation, struct fault *fault)
{
    const struct option_value *values = invocation->values;
    const char *words[6] = {"colloc_memnet", "eval"};
    int n = 2;
    if (invocation->common[COMMON_JSON].number)
        words[n++] = "--json";
    if (values[MEMNET_OUTPUT].set) {
        words[n++] = "--output";
        words[n++] = values[MEMNET_OUTPUT].text;
    }
    return python_become(values[MEMNET_PYTHON].text, words, fault);
}

/* Returns only with a fault. */
static int run_action(const struct invocation *invocation, const struct action *action,
    const struct dataset *dataset, struct fault *fault)
{
    const struct memnet_feed feed = {.dataset = dataset,
        .only = invocation->values[MEMNET_ONLY].text,
        .answers = !action->trains,
        .weights = invocation->values[MEMNET_WEIGHTS].text};
    int fd, r = memnet_feed_open(&feed, fault, &fd);
    if (r < 0)
        return r;
    if (dup2(fd, STDIN_FILENO) < 0)
        r = fault_set(fault, errno, "standard input: %s", strerror(errno));
    close(fd);
    if (r == 0)
        r = action->trains ? become_trainer(invocation->values, fault)
                           : become_evaluator(invocation, fault);
    return r;
}

static int run(const struct invocation *invocation)
{
    struct dataset dataset = {0};
    const struct action *action = NULL;
    struct fault fault = {""};
    int r = find_action(invocation, &fault, &action);
    if (r == 0)
        r = dataset_read(invocation->operands[1], &fault, &dataset);
    if (r == 0) {
        print_dataset(&dataset);
        r = run_action(invocation, action, &dataset, &fault);
    }
    print_error("%s", fault.text);
    dataset_fini(&dataset);
    return EXIT_USAGE;
}

const struct command command_memnet = {
    .name = "memnet",
    .usage = "train|eval [OPTION...] DATA",
    .summary = "train and evaluate the learned memory estimators (GPUMemNet)",
    .description = "DATA is a folder of measured trainings: runs.csv and layers.jsonl, or the "
                   "same files with .xz; docs/memnet.md describes the columns.\n\n"
                   "`train` trains the networks of the estimators gpumemnet-mlp and "
                   "gpumemnet-transformer with PyTorch and writes one file of weights for each. "
                   "The same data and seed give the same files on the same machine and PyTorch. "
                   "The weights that colloc estimate uses are built in from data/memnet of the "
                   "source tree.\n\n"
                   "`eval` runs the networks on all rows of DATA and prints their error on the "
                   "test part, by the classes of the thesis and in bytes, then on the real "
                   "networks, which are in no training set. With --output it draws the figures "
                   "of the thesis too.",
    COMMAND_OPTIONS(options),
    .operand = OPERAND_FILE,
    .actions = (const char *const[]){"train", "eval", NULL},
    .min_operands = 2,
    .max_operands = 2,
    .common_without = WITHOUT_SOCKET,
    .run = run,
};
