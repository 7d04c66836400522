/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `colloc memnet`: trains and evaluates the GPUMemNet networks; memnet_train.c and memnet_eval.c
 * are its two actions.
 *
 * docs/memnet.md has what the networks are, and how well they estimate.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "cli/memnet_run.h"
#include "cli/print.h"

static const struct option_spec options[MEMNET_OPTIONS] = {
    [MEMNET_OUTPUT] = {.name = "output",
        .letter = 'o',
        .kind = OPTION_FILE,
        .argument = "FOLDER",
        .help = "train: folder for the weights, default: memnet-weights; eval: folder "
                "for answers.csv and the figures, default: write none"},
    [MEMNET_SEED] = {.name = "seed",
        .kind = OPTION_INTEGER,
        .argument = "N",
        .max = INT64_MAX,
        .help = "train: seed of the initial weights and of the order of the rows; default: 1"},
    [MEMNET_JOBS] = {.name = "jobs",
        .letter = 'j',
        .kind = OPTION_INTEGER,
        .argument = "N",
        .min = 1,
        .max = 64,
        .help = "train: number of networks that are trained at the same time; default: the "
                "number of processors"},
    [MEMNET_ONLY] = {.name = "only",
        .kind = OPTION_TEXT,
        .argument = "TEXT",
        .help = "only the networks whose names contain this, such as \"cnn-\" or "
                "\"mlp-transformer-1gib\"; default: all"},
    [MEMNET_EPOCHS] = {.name = "epochs",
        .kind = OPTION_INTEGER,
        .argument = "N",
        .min = 1,
        .max = 100000,
        .help = "train: largest number of epochs; default: 600"},
    [MEMNET_WEIGHTS] = {.name = "weights",
        .kind = OPTION_FILE,
        .argument = "FOLDER",
        .help = "eval: folder with the weights to evaluate; default: the weights built into "
                "`colloc estimate`"},
    [MEMNET_PYTHON] = {.name = "python",
        .kind = OPTION_TEXT,
        .argument = "PROGRAM",
        .help = "eval: Python interpreter that draws the figures; default: python3"},
};

#define BIT(option) (1u << (option))

static const struct action {
    const char *name;
    unsigned takes;
    int (*run)(struct memnet_run *run, struct fault *fault);
} actions[] = {
    {"train",
        BIT(MEMNET_OUTPUT) | BIT(MEMNET_SEED) | BIT(MEMNET_JOBS) | BIT(MEMNET_ONLY) |
            BIT(MEMNET_EPOCHS),
        memnet_run_train},
    {"eval", BIT(MEMNET_OUTPUT) | BIT(MEMNET_ONLY) | BIT(MEMNET_WEIGHTS) | BIT(MEMNET_PYTHON),
        memnet_run_eval},
};

/* The actions share one table of options; each says by a set of bits which of them it takes. */
static int find_action(
    const struct invocation *invocation, struct fault *fault, const struct action **ret_action)
{
    for (size_t i = 0; i < ARRAY_SIZE(actions); i++)
        if (strcmp(actions[i].name, invocation->operands[0]) == 0)
            *ret_action = &actions[i];
    if (!*ret_action)
        return fault_set(fault, EINVAL, "memnet: unknown action \"%s\": give train or eval",
            invocation->operands[0]);
    for (int i = 0; i < MEMNET_OPTIONS; i++)
        if (invocation->values[i].set && !((*ret_action)->takes & BIT(i)))
            return fault_set(fault, EINVAL, "memnet %s: --%s is not an option of this action",
                (*ret_action)->name, options[i].name);
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

static int run(const struct invocation *invocation)
{
    struct memnet_run memnet = {.invocation = invocation};
    const struct action *action = NULL;
    struct fault fault = {""};
    int r = find_action(invocation, &fault, &action);
    if (r == 0)
        r = dataset_read(invocation->operands[1], &fault, &memnet.dataset);
    if (r == 0) {
        print_dataset(&memnet.dataset);
        r = action->run(&memnet, &fault);
    }
    if (r < 0)
        print_error("%s", fault.text);
    dataset_fini(&memnet.dataset);
    return r < 0 ? EXIT_USAGE : EXIT_OK;
}

const struct command command_memnet = {
    .name = "memnet",
    .usage = "train|eval [OPTION...] DATA",
    .summary = "train and evaluate the learned memory estimators (GPUMemNet)",
    .description = "DATA is a folder of measured trainings: runs.csv and layers.jsonl, or the "
                   "same files with .xz; docs/memnet.md describes the columns.\n\n"
                   "`train` trains the networks of the estimators gpumemnet-mlp and "
                   "gpumemnet-transformer and writes one file of weights for each. The same "
                   "data and seed give the same files on the same machine. The weights that "
                   "colloc estimate uses are built in from data/memnet of the source tree.\n\n"
                   "`eval` runs the networks on all rows of DATA and prints their error on the "
                   "test part, by the classes of the thesis and in bytes, then on the real "
                   "networks, which are in no training set. With --output it draws the figures "
                   "of the thesis too.",
    COMMAND_OPTIONS(options),
    .operand = OPERAND_FILE,
    .min_operands = 2,
    .max_operands = 2,
    .common_without = WITHOUT_SOCKET,
    .run = run,
};
