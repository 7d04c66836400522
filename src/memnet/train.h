/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trains a network: Adam at 1e-3, batches of 128, cross-entropy, at most 600 epochs. Training stops
 * early when the validation loss has not fallen for 30 epochs; the weights of the best epoch are
 * kept. The same data, plan and seed give the same weights on the same machine and BLAS.
 */
#ifndef COLLOC_MEMNET_TRAIN_H
#define COLLOC_MEMNET_TRAIN_H

#include "base/fault.h"
#include "estimator/gpumemnet/gpumemnet_net.h"
#include "memnet/blas.h"
#include "memnet/dataset.h"
#include "memnet/net_plan.h"

enum { TRAIN_EPOCHS_MAX = 600, TRAIN_PATIENCE = 30, TRAIN_BATCH = 128, TRAIN_EPOCH_ROWS = 2100 };

struct train_progress {
    const struct net_plan *plan;
    int epoch;      /* from 1 */
    int best_epoch; /* with the lowest validation loss so far */
    double training_loss, validation_loss, best_loss;
    int64_t took_us; /* by all epochs so far */
};

struct train_settings {
    const struct blas *blas;
    int64_t seed;
    int epochs_max; /* 0: TRAIN_EPOCHS_MAX */
    /*
     * Called after each epoch; may be NULL. False ends the training with the best epoch's weights.
     */
    bool (*on_epoch)(void *context, const struct train_progress *progress);
    void *context;
};

/*
 * Trains the network of a plan.
 *
 * ret_net: ended by gpumemnet_net_fini
 *
 * Returns 0; or with a fault -ENODATA (too few rows of the plan's family), -ERANGE (more classes
 * than GPUMEMNET_CLASSES_MAX), -ENOMEM.
 */
int memnet_train(const struct dataset *dataset, const struct net_plan *plan,
    const struct train_settings *settings, struct fault *fault, struct gpumemnet_net *ret_net);

#endif
