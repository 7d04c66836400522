/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/memnet_run.h"
#include "cli/output.h"

static const struct option_spec options[MEMNET_OPTIONS] = {
    [MEMNET_OUTPUT] = {.name = "output",
        .letter = 'o',
        .kind = OPTION_FILE,
        .argument = "FOLDER",
        .help =
            "train: where the weights go, default: memnet-weights; eval: where answers.csv and the "
            "pictures go, default: nowhere"},
    [MEMNET_SEED] = {.name = "seed",
        .kind = OPTION_INTEGER,
        .argument = "N",
        .max = INT64_MAX,
        .help = "train: decides what it starts from and the order of the rows; default: 1"},
    [MEMNET_JOBS] = {.name = "jobs",
        .letter = 'j',
        .kind = OPTION_INTEGER,
        .argument = "N",
        .min = 1,
        .max = 64,
        .help = "train: networks at a time; default: as many as there are processors"},
    [MEMNET_ONLY] = {.name = "only",
        .kind = OPTION_TEXT,
        .argument = "TEXT",
        .help = "the networks whose names hold this, as \"cnn-\" or \"mlp-transformer-1gib\""},
    [MEMNET_EPOCHS] = {.name = "epochs",
        .kind = OPTION_INTEGER,
        .argument = "N",
        .min = 1,
        .max = 100000,
        .help = "train: at most so many; default: 600"},
    [MEMNET_WEIGHTS] = {.name = "weights",
        .kind = OPTION_FILE,
        .argument = "FOLDER",
        .help = "eval: the weights of an own training; default: those that colloc estimate uses"},
    [MEMNET_PYTHON] = {.name = "python",
        .kind = OPTION_TEXT,
        .argument = "PROGRAM",
        .help = "eval: the interpreter that draws; default: python3"},
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

static int find_action(
    const struct invocation *invocation, struct fault *fault, const struct action **ret_action)
{
    for (size_t i = 0; i < sizeof actions / sizeof *actions; i++)
        if (strcmp(actions[i].name, invocation->operands[0]) == 0)
            *ret_action = &actions[i];
    if (!*ret_action)
        return fault_set(
            fault, EINVAL, "memnet: \"%s\" is neither train nor eval", invocation->operands[0]);
    for (int i = 0; i < MEMNET_OPTIONS; i++)
        if (invocation->values[i].set && !((*ret_action)->takes & BIT(i)))
            return fault_set(
                fault, EINVAL, "memnet %s: takes no --%s", (*ret_action)->name, options[i].name);
    return 0;
}

static void tell_dataset(const struct dataset *dataset)
{
    size_t n[GPUMEMNET_FAMILIES] = {0}, real = 0;
    for (size_t i = 0; i < dataset->n; i++) {
        n[dataset->rows[i].features.family] += !dataset->rows[i].real;
        real += dataset->rows[i].real;
    }
    fprintf(stderr,
        "%zu MLPs, %zu CNNs, %zu Transformers and %zu runs of real networks; left out: %zu failed runs, %zu of "
        "networks that say too little\n",
        n[GPUMEMNET_MLP], n[GPUMEMNET_CNN], n[GPUMEMNET_TRANSFORMER], real, dataset->n_failed,
        dataset->n_strange);
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
        tell_dataset(&memnet.dataset);
        r = action->run(&memnet, &fault);
    }
    if (r < 0)
        complain("%s", fault.text);
    dataset_fini(&memnet.dataset);
    return r < 0 ? EXIT_USAGE : EXIT_OK;
}

const struct command command_memnet = {
    .name = "memnet",
    .usage = "train|eval [OPTION...] DATA",
    .summary = "train the learned estimators of memory, and say how good they are",
    .description =
        "DATA is a folder with measured trainings: runs.csv and layers.jsonl, either of them also as .xz; "
        "docs/memnet.md has the columns.\n\n"
        "`train` makes the networks behind the estimators gpumemnet-mlp and gpumemnet-transformer, with a file of "
        "weights for each. The same data and seed give the same files on the same machine. What colloc estimate uses "
        "is built in from data/memnet of the sources.\n\n"
        "`eval` asks the networks for all rows of DATA and counts the test part, by the classes of the thesis and in "
        "bytes, then the real networks, which none was trained on. With --output it draws the thesis's pictures too.",
    COMMAND_OPTIONS(options),
    .operand = OPERAND_FILE,
    .min_operands = 2,
    .max_operands = 2,
    .common_without = WITHOUT_SOCKET,
    .run = run,
};
