/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of a data set as scaled inputs of a network. Internal to the component. */
#ifndef COLLOC_MEMNET_EXAMPLES_H
#define COLLOC_MEMNET_EXAMPLES_H

#include "estimator/gpumemnet/gpumemnet_net.h"
#include "memnet/dataset.h"
#include "memnet/training_step.h"

struct examples {
    struct example *rows;
    size_t n;
};

/* Is the network trained on such rows? */
bool examples_accepts(const struct gpumemnet_net *net, const struct task_row *row);

/* Returns the class of an amount of memory; the last class has no upper end. */
int examples_class_of(const struct gpumemnet_net *net, double bytes);

/* Computes the network's scaling (mean and deviation of the training rows) and its longest
 * sequence. */
void examples_scaling(const struct dataset *dataset, struct gpumemnet_net *net);

/* Makes the examples of one part. Returns 0 or -ENOMEM; ended by examples_fini either way. */
int examples_init(const struct dataset *dataset, const struct gpumemnet_net *net,
    enum dataset_part part, struct examples *ret_examples);
void examples_fini(struct examples *examples);

#endif
