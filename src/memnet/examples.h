/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of a data set as a network sees them. Internal to the room. */
#ifndef COLLOC_MEMNET_EXAMPLES_H
#define COLLOC_MEMNET_EXAMPLES_H

#include "estimator/gpumemnet/gpumemnet_net.h"
#include "memnet/dataset.h"
#include "memnet/step.h"

struct examples {
    struct example *rows;
    size_t n;
};

/* Whether the network learns from such rows. */
bool examples_wants(const struct gpumemnet_net *net, const struct task_row *row);

/* The class of so much memory: the last one has no upper end. */
int examples_class_of(const struct gpumemnet_net *net, double bytes);

/* Mean and deviation over the training rows; also the longest sequence. */
void examples_scaling(const struct dataset *dataset, struct gpumemnet_net *net);

/* The rows of one part. 0 or -ENOMEM; ended by examples_fini either way. */
int examples_init(const struct dataset *dataset, const struct gpumemnet_net *net,
    enum dataset_part part, struct examples *ret_examples);
void examples_fini(struct examples *examples);

#endif
