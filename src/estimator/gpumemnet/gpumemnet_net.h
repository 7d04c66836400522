/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A trained network of GPUMemNet: its weights, read from a text, and its answer. No matrix is
 * larger than 24 by 6, so plain C is fast enough: an ensemble takes about 60 us, most of which
 * parses the weights; an encoder takes 5 ns more for each pair of layers.
 */
#ifndef COLLOC_GPUMEMNET_GPUMEMNET_NET_H
#define COLLOC_GPUMEMNET_GPUMEMNET_NET_H

#include <stddef.h>
#include <stdint.h>

#include "base/fault.h"
#include "estimator/gpumemnet/gpumemnet_layout.h"

#define GPUMEMNET_VERSION 1 /* of the text of weights */

/* The scaling of the inputs: the mean is subtracted, and the difference multiplied by the factor.
 * The training data then have mean 0 and standard deviation 1. */
struct gpumemnet_scaling {
    float mean[GPUMEMNET_VALUES], factor[GPUMEMNET_VALUES]; /* by the layout's order */
    float token_mean[TOKEN_SIZE], token_factor[TOKEN_SIZE];
};

struct gpumemnet_net {
    enum gpumemnet_family family;
    enum gpumemnet_method method;
    int64_t bin_mib; /* class k is [k, k + 1) bins; the last class has no upper edge */
    int n_classes;
    int64_t longest; /* layers of the longest sequence in training */
    int64_t seed;    /* of the training */
    struct gpumemnet_layout layout;
    struct gpumemnet_scaling scaling;
    float *weights; /* layout.size of them */
};

/*
 * Parses the text of a network.
 *
 * Returns 0, and gpumemnet_net_fini must follow; or with a fault: -EINVAL (no network, damaged, or
 * of other sizes), -EPROTO (another version) or -ENOMEM.
 */
int gpumemnet_net_parse(
    const char *text, size_t size, struct fault *fault, struct gpumemnet_net *ret_net);

/*
 * Parses the text of a network that is part of the program, without its checksum, which takes most
 * of the time. A test compares these.
 *
 * Returns as gpumemnet_net_parse.
 */
int gpumemnet_net_parse_built_in(
    const char *text, size_t size, struct fault *fault, struct gpumemnet_net *ret_net);
void gpumemnet_net_fini(struct gpumemnet_net *net);

/* Returns how many tokens the network uses: one per layer, at most net->longest. */
size_t gpumemnet_net_tokens(
    const struct gpumemnet_net *net, const struct gpumemnet_features *features);

/* Calculates the probability of each class for a task of the net's family. Returns 0 or -ENOMEM. */
int gpumemnet_net_ask(const struct gpumemnet_net *net, const struct gpumemnet_features *features,
    float ret_probability[GPUMEMNET_CLASSES_MAX]);

/* Returns the thesis's answer: the upper edge of the most probable bin. */
double gpumemnet_edge_bytes(const struct gpumemnet_net *net, const float *probability);

/* Returns quantile `q` (0 to 1) of the memory, which is taken as evenly distributed within a
 * bin. */
double gpumemnet_quantile_bytes(
    const struct gpumemnet_net *net, const float *probability, double q);

#endif
