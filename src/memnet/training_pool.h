/* SPDX-License-Identifier: Apache-2.0 */
/* Trains several networks at once, one per thread. The results do not depend on the number of
 * threads. */
#ifndef COLLOC_MEMNET_TRAINING_POOL_H
#define COLLOC_MEMNET_TRAINING_POOL_H

#include "memnet/train.h"

struct training_pool_settings {
    const struct blas *blas;
    const struct dataset *dataset;
    int64_t seed;
    int jobs;         /* threads */
    int epochs_max;   /* 0: TRAIN_EPOCHS_MAX */
    const char *only; /* train plans whose names contain it; NULL: all */

    /* Called by one thread at a time. */
    void (*on_epoch)(void *context, const struct train_progress *progress);
    /*
     * Called with memnet_train's result; `net` is borrowed. A negative result stops the training.
     */
    int (*on_trained)(void *context, const struct net_plan *plan, int r,
        const struct gpumemnet_net *net, struct fault *fault);
    void *context;
};

/* Is the plan selected by settings->only? */
bool training_pool_selects(
    const struct training_pool_settings *settings, const struct net_plan *plan);

/* Trains the selected plans. Returns 0, the first negative result of on_trained with its fault, or
 * -EAGAIN: no thread can be created. */
int training_pool_run(const struct training_pool_settings *settings, struct fault *fault);

#endif
