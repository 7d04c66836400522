/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The estimators gpumemnet-mlp and gpumemnet-transformer: the learned estimator of the RAD thesis
 * (chapter 5), trained on colloc's data (docs/memnet.md). The answer is the upper edge of the most
 * probable bin, as in the thesis; the quantiles follow from the probabilities of the bins.
 */
#include <errno.h>

#include "base/cleanup.h"
#include "base/units.h"
#include "estimator/estimator_table.h"
#include "estimator/gpumemnet/gpumemnet_built_in.h"
#include "estimator/gpumemnet/gpumemnet_net.h"

static const struct gpumemnet_built_in *find_network(
    enum gpumemnet_family family, enum gpumemnet_method method)
{
    const struct gpumemnet_built_in *found;
    for (size_t i = 0; (found = gpumemnet_built_in_at(i)) != NULL; i++)
        if (found->family == family && found->method == method)
            break;
    return found;
}

static int set_answer(const struct gpumemnet_net *net, const struct gpumemnet_features *features,
    struct fault *fault, struct estimate *estimate)
{
    float probability[GPUMEMNET_CLASSES_MAX];
    if (gpumemnet_net_ask(net, features, probability) < 0)
        return fault_set(fault, ENOMEM, "out of memory");
    estimate->bytes = reading_of(gpumemnet_edge_bytes(net, probability));
    estimate->p50_bytes = reading_of(gpumemnet_quantile_bytes(net, probability, 0.5));
    estimate->p90_bytes = reading_of(gpumemnet_quantile_bytes(net, probability, 0.9));
    estimate->p99_bytes = reading_of(gpumemnet_quantile_bytes(net, probability, 0.99));
    if (estimate->bytes.value >= (double)net->n_classes * (double)(net->bin_mib * MIB))
        estimate_note(estimate, 0, "in the last bin, which has no upper edge: it may be more");
    if (net->method == GPUMEMNET_ENCODER && features->n_tokens > (size_t)net->longest)
        estimate_note(estimate, 0, "only the first %lld of %zu layers were used: it may be more",
            (long long)net->longest, features->n_tokens);
    return 0;
}

static bool is_declared(const struct estimate_request *request)
{
    return request->optimizer != OPTIMIZER_NOT_GIVEN && request->precision != PRECISION_NOT_GIVEN;
}

static int run_network(const struct estimate_request *request, enum gpumemnet_method method,
    struct fault *fault, struct estimate *estimate)
{
    CLEANUP(gpumemnet_features_fini) struct gpumemnet_features features = {0};
    CLEANUP(gpumemnet_net_fini) struct gpumemnet_net net = {0};
    const char *why;
    int r = gpumemnet_features_init(request, &features, &why);
    if (r == ESTIMATE_UNKNOWN)
        return estimate_note(estimate, r, "%s", why);
    if (r < 0)
        return fault_set(fault, -r, "out of memory");
    const struct gpumemnet_built_in *built_in = find_network(features.family, method);
    r = gpumemnet_net_parse_built_in(built_in->text, built_in->size, fault, &net);
    if (r == 0)
        r = set_answer(&net, &features, fault, estimate);
    if (r == 0)
        estimate->evidence = request->model->is_suspect ? EVIDENCE_DOUBTFUL
                             : is_declared(request)     ? EVIDENCE_DECLARED
                                                        : EVIDENCE_SUMMARY;
    return r;
}

static int ask_ensemble(
    const struct estimate_request *request, struct fault *fault, struct estimate *ret_estimate)
{
    return run_network(request, GPUMEMNET_ENSEMBLE, fault, ret_estimate);
}

static int ask_encoder(
    const struct estimate_request *request, struct fault *fault, struct estimate *ret_estimate)
{
    return run_network(request, GPUMEMNET_ENCODER, fault, ret_estimate);
}

const struct estimator estimator_gpumemnet_mlp = {
    "gpumemnet-mlp", "the thesis's ensemble of perceptrons: bins of 1 or 8 GiB", ask_ensemble};
const struct estimator estimator_gpumemnet_transformer = {"gpumemnet-transformer",
    "the thesis's encoder over the layers: bins of 1 or 8 GiB", ask_encoder};
