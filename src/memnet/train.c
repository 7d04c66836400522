/* SPDX-License-Identifier: Apache-2.0 */
/* Epochs of shuffled batches, validation after each, early stopping: see train.h. */
#include "memnet/train.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/units.h"
#include "memnet/adam.h"
#include "memnet/examples.h"
#include "memnet/initial_weights.h"

static const double learning_rate = 1e-3; /* as Adam's authors propose (Kingma and Ba, 2015) */
enum { ROWS_LEAST = 20 };                 /* chosen */

struct training {
    struct gpumemnet_net *net;
    const struct train_settings *settings;
    struct train_progress progress;
    struct examples training, validation;
    const struct example **order;
    struct seeded_random random;
    struct adam adam;
    struct scratch scratch;
    float *gradients, *best;
};

/* ---- preparing ---- */

/* Sets the number of classes: up to that of the largest training row. */
static int count_classes(
    const struct dataset *dataset, struct gpumemnet_net *net, struct fault *fault)
{
    size_t n = 0;
    double most = 0;
    for (size_t i = 0; i < dataset->n; i++) {
        const struct task_row *row = &dataset->rows[i];
        if (!examples_accepts(net, row) || row->part != PART_TRAINING)
            continue;
        n++;
        most = fmax(most, row->bytes);
    }
    if (n < ROWS_LEAST)
        return fault_set(fault, ENODATA, "%zu training rows of kind %s: at least %d are needed", n,
            gpumemnet_family_name(net->family), ROWS_LEAST);
    double classes = floor(most / (double)(net->bin_mib * MIB)) + 1;
    if (classes > GPUMEMNET_CLASSES_MAX)
        return fault_set(fault, ERANGE, "%g classes of %lld MiB: at most %d", classes,
            (long long)net->bin_mib, GPUMEMNET_CLASSES_MAX);
    net->n_classes = (int)classes;
    return 0;
}

static int training_init(const struct dataset *dataset, const struct net_plan *plan,
    const struct train_settings *settings, struct fault *fault, struct training *t)
{
    struct gpumemnet_net *net = t->net;
    *net = (struct gpumemnet_net){.family = plan->family,
        .method = plan->method,
        .bin_mib = plan->bin_mib,
        .seed = settings->seed};
    int r = count_classes(dataset, net, fault);
    if (r < 0)
        return r;
    gpumemnet_layout_init(net->family, net->method, net->n_classes, &net->layout);
    examples_scaling(dataset, net);
    size_t size = net->layout.size;
    net->weights = calloc(size, sizeof *net->weights);
    t->gradients = calloc(size, sizeof *t->gradients);
    t->best = calloc(size, sizeof *t->best);
    if (!net->weights || !t->gradients || !t->best || adam_init(&t->adam, size) < 0 ||
        examples_init(dataset, net, PART_TRAINING, &t->training) < 0 ||
        examples_init(dataset, net, PART_VALIDATION, &t->validation) < 0 ||
        !(t->order = calloc(t->training.n, sizeof *t->order)))
        return fault_set(fault, ENOMEM, "out of memory");
    if (t->validation.n == 0)
        return fault_set(
            fault, ENODATA, "no validation rows of kind %s", gpumemnet_family_name(net->family));
    t->random.state = (uint64_t)settings->seed;
    initial_weights_draw(&net->layout, &t->random, net->weights);
    for (size_t i = 0; i < t->training.n; i++)
        t->order[i] = &t->training.rows[i];
    return 0;
}

static void training_fini(struct training *t)
{
    examples_fini(&t->training);
    examples_fini(&t->validation);
    adam_fini(&t->adam);
    scratch_fini(&t->scratch);
    free(t->order);
    free(t->gradients);
    free(t->best);
}

/* ---- epochs ---- */

static void shuffle_order(struct training *t)
{
    for (size_t i = t->training.n; i > 1; i--) {
        size_t other = seeded_random_below(&t->random, i);
        const struct example *swap = t->order[i - 1];
        t->order[i - 1] = t->order[other];
        t->order[other] = swap;
    }
}

/* One pass over the training rows. */
static int train_pass(struct training *t, double *sum, size_t *seen)
{
    shuffle_order(t);
    for (size_t from = 0; from + 2 <= t->training.n; from += TRAIN_BATCH) {
        size_t left = t->training.n - from;
        struct batch batch = {
            .rows = t->order + from, .n = left < TRAIN_BATCH ? left : TRAIN_BATCH};
        double loss;
        int r = training_step_run(
            &t->net->layout, t->net->weights, &batch, &t->scratch, t->gradients, &loss);
        if (r < 0)
            return r;
        adam_step(&t->adam, learning_rate, t->net->weights, t->gradients);
        *sum += loss * (double)batch.n;
        *seen += batch.n;
    }
    return 0;
}

/* An epoch has at least TRAIN_EPOCH_ROWS rows, so that the patience of 30 epochs means as many
 * steps for a small data set as for the thesis's. */
static int train_epoch(struct training *t)
{
    double sum = 0;
    size_t seen = 0;
    int r = 0;
    while (r == 0 && seen < TRAIN_EPOCH_ROWS)
        r = train_pass(t, &sum, &seen);
    t->progress.training_loss = sum / (double)seen;
    return r;
}

/* Computes the validation loss with the code that estimation uses. */
static int compute_validation_loss(struct training *t)
{
    float logits[GPUMEMNET_CLASSES_MAX];
    double sum = 0;
    for (size_t i = 0; i < t->validation.n; i++) {
        const struct example *row = &t->validation.rows[i];
        if (gpumemnet_net_logits(t->net, row->values, row->tokens, row->n_tokens, logits) < 0)
            return -ENOMEM;
        double most = (double)logits[0], powers = 0;
        for (int k = 1; k < t->net->n_classes; k++)
            most = fmax(most, (double)logits[k]);
        for (int k = 0; k < t->net->n_classes; k++)
            powers += exp((double)logits[k] - most);
        sum += log(powers) + most - (double)logits[row->class];
    }
    t->progress.validation_loss = sum / (double)t->validation.n;
    return 0;
}

static void keep_best(struct training *t)
{
    if (t->progress.epoch > 1 && t->progress.validation_loss >= t->progress.best_loss)
        return;
    t->progress.best_loss = t->progress.validation_loss;
    t->progress.best_epoch = t->progress.epoch;
    memcpy(t->best, t->net->weights, t->net->layout.size * sizeof *t->best);
}

static bool may_continue(const struct training *t)
{
    const struct train_settings *settings = t->settings;
    int most = settings->epochs_max ? settings->epochs_max : TRAIN_EPOCHS_MAX;
    if (settings->on_epoch && !settings->on_epoch(settings->context, &t->progress))
        return false;
    return t->progress.epoch < most && t->progress.epoch - t->progress.best_epoch < TRAIN_PATIENCE;
}

static int train_all(struct training *t)
{
    int64_t began_us = clock_monotonic_us();
    int r;
    do {
        t->progress.epoch++;
        r = train_epoch(t);
        if (r == 0)
            r = compute_validation_loss(t);
        if (r == 0)
            keep_best(t);
        t->progress.took_us = clock_monotonic_us() - began_us;
    } while (r == 0 && may_continue(t));
    memcpy(t->net->weights, t->best, t->net->layout.size * sizeof *t->best);
    return r;
}

int memnet_train(const struct dataset *dataset, const struct net_plan *plan,
    const struct train_settings *settings, struct fault *fault, struct gpumemnet_net *ret_net)
{
    struct training training = {.net = ret_net,
        .settings = settings,
        .progress.plan = plan,
        .scratch.blas = settings->blas};
    int r = training_init(dataset, plan, settings, fault, &training);
    if (r == 0 && train_all(&training) < 0)
        r = fault_set(fault, ENOMEM, "out of memory");
    training_fini(&training);
    if (r < 0)
        gpumemnet_net_fini(ret_net);
    return r;
}
