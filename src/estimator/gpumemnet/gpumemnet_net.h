/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A trained network of GPUMemNet: its numbers, read from a text, and its answer. Plain C, no
 * matrices larger than 24 by 6. An ensemble takes some 60 us, most of them to read its numbers; an
 * encoder 5 ns more for each pair of layers.
 */
#ifndef COLLOC_GPUMEMNET_GPUMEMNET_NET_H
#define COLLOC_GPUMEMNET_GPUMEMNET_NET_H

#include <stddef.h>
#include <stdint.h>

#include "base/fault.h"
#include "estimator/gpumemnet/gpumemnet_layout.h"

#define GPUMEMNET_VERSION 1

/* What is taken off and what it is multiplied by, so that the inputs have mean 0 and deviation 1 in
 * training. */
struct gpumemnet_scaling {
    float mean[GPUMEMNET_VALUES], factor[GPUMEMNET_VALUES]; /* by the layout's order */
    float token_mean[TOKEN_SIZE], token_factor[TOKEN_SIZE];
};

struct gpumemnet_net {
    enum gpumemnet_family family;
    enum gpumemnet_method method;
    int64_t bin_mib; /* class k is [k, k + 1) bins; the last has no end */
    int n_classes;
    int64_t longest; /* sequence in training */
    int64_t seed;    /* of the training */
    struct gpumemnet_layout layout;
    struct gpumemnet_scaling scaling;
    float *weights; /* layout.size of them */
};

/*
 * Reads what gpumemnet_net_format writes. 0, or with a fault -EINVAL (no such file, damaged, sizes
 * that do not fit the layout), -EPROTO (another version), -ENOMEM. Ended by gpumemnet_net_fini
 * after 0.
 */
int gpumemnet_net_parse(
    const char *text, size_t size, struct fault *fault, struct gpumemnet_net *ret_net);
void gpumemnet_net_fini(struct gpumemnet_net *net);

/* On the heap, ended by NUL; NULL without memory. */
char *gpumemnet_net_format(const struct gpumemnet_net *net);

/* Inputs as the network takes them: layout.n_values numbers, and TOKEN_SIZE for each of the first
 * net->longest layers.
 */
void gpumemnet_net_scale(const struct gpumemnet_net *net, const struct gpumemnet_features *features,
    float *ret_values, float *ret_tokens);
size_t gpumemnet_net_tokens(
    const struct gpumemnet_net *net, const struct gpumemnet_features *features);

/* From scaled inputs, n_classes numbers. 0 or -ENOMEM. */
int gpumemnet_net_logits(const struct gpumemnet_net *net, const float *values, const float *tokens,
    size_t n_tokens, float *ret_logits);

/* Probabilities of the classes for a task of the net's family. 0 or -ENOMEM. */
int gpumemnet_net_ask(const struct gpumemnet_net *net, const struct gpumemnet_features *features,
    float ret_probability[GPUMEMNET_CLASSES_MAX]);

/* The thesis's answer, the upper edge of the likeliest bin; and a quantile with memory spread
 * evenly over each bin. */
double gpumemnet_edge_bytes(const struct gpumemnet_net *net, const float *probability);
double gpumemnet_quantile_bytes(
    const struct gpumemnet_net *net, const float *probability, double q);

#endif
