/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Training a network: Adam at 1e-3, batches of 128, cross-entropy, at most 600 epochs, and the end
 * when the loss on the validation rows has not come down for 30 epochs; the weights of the best
 * epoch are kept. The same data, plan and seed give the same weights on the same machine and BLAS
 * (run with one thread).
 */
#ifndef COLLOC_MEMNET_TRAIN_H
#define COLLOC_MEMNET_TRAIN_H

#include "base/fault.h"
#include "estimator/gpumemnet/gpumemnet_net.h"
#include "memnet/blas.h"
#include "memnet/dataset.h"
#include "memnet/plan.h"

enum { TRAIN_EPOCHS_MAX = 600, TRAIN_PATIENCE = 30, TRAIN_BATCH = 128, TRAIN_EPOCH_ROWS = 2100 };

struct train_progress {
    const struct net_plan *plan;
    int epoch;      /* from 1 */
    int best_epoch; /* its validation loss is the lowest so far */
    double training_loss, validation_loss, best_loss;
    int64_t took_us; /* all epochs together */
};

struct train_settings {
    const struct blas *blas;
    int64_t seed;
    int epochs_max; /* 0: TRAIN_EPOCHS_MAX */
    /* After each epoch; NULL: nobody wants to know. False ends the training, with the weights of
     * the best epoch. */
    bool (*on_epoch)(void *context, const struct train_progress *progress);
    void *context;
};

/* 0, or with a fault -ENODATA (too few rows of the plan's set), -ERANGE (more classes than there is
 * room for), -ENOMEM. Ended by gpumemnet_net_fini after 0. */
int memnet_train(const struct dataset *dataset, const struct net_plan *plan,
    const struct train_settings *settings, struct fault *fault, struct gpumemnet_net *ret_net);

#endif
