/* SPDX-License-Identifier: Apache-2.0 */
/* Several networks trained at once, a thread for each; what comes out does not depend on how many
 * there are. */
#ifndef COLLOC_MEMNET_CREW_H
#define COLLOC_MEMNET_CREW_H

#include "memnet/train.h"

struct crew_settings {
    const struct blas *blas;
    const struct dataset *dataset;
    int64_t seed;
    int jobs;         /* threads */
    int epochs_max;   /* 0: TRAIN_EPOCHS_MAX */
    const char *only; /* a part of the plans' names; NULL: all of them */

    /* Called by one thread at a time. */
    void (*on_epoch)(void *context, const struct train_progress *progress);
    /* r and fault as memnet_train gives them; the network is the crew's. Negative ends the crew. */
    int (*on_trained)(void *context, const struct net_plan *plan, int r,
        const struct gpumemnet_net *net, struct fault *fault);
    void *context;
};

/* Whether `only` (of the settings) names the plan. */
bool crew_wants(const struct crew_settings *settings, const struct net_plan *plan);

/* 0, or the first negative value of on_trained with its fault, or -EAGAIN (no thread can be made).
 */
int crew_run(const struct crew_settings *settings, struct fault *fault);

#endif
