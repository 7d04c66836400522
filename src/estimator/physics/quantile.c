/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Quantiles of an estimate: estimate * exp(q * scale), where q is from calibration.inc. Errors are
 * those of the whole process: what its context takes differs between drivers, too.
 *
 * Example: with q = 0.12 for the p99 of declared summaries, whose scale is 1, p99 lies 12.7 % above
 * the estimate. With an export whose replays differ by 4 %, the scale is 0.1; with q = 0.4 p99 lies
 * 4.1 % above it.
 */
#include "estimator/physics/quantile.h"

#include <math.h>

struct row {
    double p50, p90, p99; /* logarithm of measured to estimated, in units of the scale */
    int n;                /* errors of this kind of network; 0: not calibrated */
};

static const struct row rows[EVIDENCE_KINDS][NETWORK_KINDS] = {
#include "estimator/physics/calibration.inc"
};

/* The scale of an export where changed replays are all the same. Chosen on families left out: 0.05
 * to 0.1 do as well. */
static const double steady_scale = 0.06;

/* The scale of an export without convolutions, whose replays cannot differ. Chosen on families left
 * out: 0.1 to 0.2 do as well. */
static const double products_scale = 0.1;

/* The least scale of a doubtful summary. Chosen: then it reserves no less than a sound one. */
static const double doubtful_least = 0.2;

/* The least scale of an export whose few convolutions are tried. Chosen: a vision transformer took
 * 7 % more than estimated, and 20 % above is within P99. */
static const double tried_least = 0.3;

/* The least scale of a script whose network is mostly convolutions. Chosen: then P99 is enough for
 * 38 of 41 scripts of other authors with convolutions, and P90 for 33. With the scale of other
 * exports, whose errors are those of networks for pictures of 224 x 224, they were for 36 and 31
 * (docs/measured/script-estimate.md). */
static const double script_least = 0.25;

/* The least scales of an export for a chip whose kernels were not measured: networks that are
 * mostly convolutions, and others. Chosen with 35 networks of a table of runs on an A100 in view,
 * which tried kernels, as was found since (docs/measured/timm.md): so they are rather too wide. */
static const double foreign_convolutions_least = 0.45, foreign_products_least = 0.16;

/* P90 of a compiled step whose pool is known, as a part of the pool. 18 of 20 took 0.1 to 1.1 %
 * more than estimated, one took less, and one half as much again (docs/measured/jax.md). */
static const double compiled_p90 = 0.02;

/* The part of a network's work that is in convolutions. Chosen: the larger part decides. */
static const double conv_share_least = 0.5;

enum network_kind network_kind_of(const struct physics *physics)
{
    return physics->conv_share > conv_share_least ? NETWORK_CONVOLUTIONS : NETWORK_PRODUCTS;
}

const char *network_kind_name(enum network_kind kind)
{
    return kind == NETWORK_CONVOLUTIONS ? "convolutions" : "products";
}

/* Does most of the memory perhaps consist of workspaces that cuDNN tries? Not in a network of
 * products, such as a vision transformer, which has one convolution. */
static bool may_be_workspaces(const struct physics *physics)
{
    bool is_of_products = physics->macs > 0 && network_kind_of(physics) == NETWORK_PRODUCTS;
    return physics->tries_kernels && !is_of_products;
}

/* The evidence whose errors are taken for those of an estimate. A script's export knows as much of
 * the kernels as any export; where cuDNN tries kernels, most of the memory may be missing. A step
 * that JAX compiled is doubtful where the pool that the compiler left is not known. */
static enum evidence calibrated_as(const struct physics *physics, enum evidence evidence)
{
    bool of_export = evidence == EVIDENCE_SCRIPT || evidence == EVIDENCE_EXPORT;
    if ((of_export && may_be_workspaces(physics)) || evidence == EVIDENCE_COMPILED)
        return EVIDENCE_DOUBTFUL;
    return of_export ? EVIDENCE_EXPORT : evidence;
}

static double export_scale(const struct physics *physics, bool is_script)
{
    double scale = physics->convolves ? steady_scale + physics->replay_range : products_scale;
    bool is_of_convolutions = network_kind_of(physics) == NETWORK_CONVOLUTIONS;
    if (is_script && is_of_convolutions)
        scale = fmax(scale, script_least);
    if (physics->is_foreign_gpu)
        scale = fmax(
            scale, is_of_convolutions ? foreign_convolutions_least : foreign_products_least);
    return physics->tries_kernels ? fmax(scale, tried_least) : scale;
}

double quantile_scale(const struct physics *physics, enum evidence evidence)
{
    double above_context = physics->footprint.reserved;
    switch (calibrated_as(physics, evidence)) {
    case EVIDENCE_KERNELS:
        return steady_scale + physics->replay_range;
    case EVIDENCE_EXPORT:
        return export_scale(physics, evidence == EVIDENCE_SCRIPT);
    case EVIDENCE_DOUBTFUL:
        return above_context > 0
                   ? fmax(above_context / (above_context + physics->context_bytes), doubtful_least)
                   : 1;
    default:
        return 1;
    }
}

/* No process takes less than its context. */
static struct reading quantile_at(double bytes, double log_ratio, double context_bytes)
{
    return reading_of(fmax(bytes * exp(log_ratio), context_bytes));
}

/* What may be a guess counts for P90 and P99 only. */
static double without_guess(double bytes, const struct physics *physics)
{
    double context = physics->context_bytes, all = physics->footprint.reserved;
    return all > 0 ? bytes - fmax(0, bytes - context) * physics->guess_reserved / all : bytes;
}

/*
 * While cuDNN tries kernels, a training takes what memory is free, and the next kernel if that is
 * too little (PyTorch's Conv_v7.cpp: AlgoIterator): so P99, which is of whole GPUs, says little
 * about what it needs. That is P99 of the same export where no kernels are tried, and with the
 * largest kernel beside it P99 of a whole GPU.
 */
static struct reading untried_p99(const struct estimate *estimate, const struct physics *physics)
{
    struct physics untried = *physics;
    untried.tries_kernels = false;
    enum evidence evidence = calibrated_as(&untried, estimate->evidence);
    const struct row *row = &rows[evidence][network_kind_of(physics)];
    if (evidence == calibrated_as(physics, estimate->evidence) || row->n == 0)
        return (struct reading){0};
    return quantile_at(estimate->bytes.value,
        row->p99 * quantile_scale(&untried, estimate->evidence), physics->context_bytes);
}

/* Where it is not known that the kernels take so much, P99 is no wider than that of a doubtful
 * summary. */
static void set_tried(struct estimate *estimate, const struct tried_workspace *tried)
{
    struct reading *p90 = &estimate->p90_bytes, *p99 = &estimate->p99_bytes;
    double with_it = estimate->untried_p99_bytes.value + tried->bytes.value;
    if (!estimate->untried_p99_bytes.valid || !tried->bytes.valid)
        return;
    *p99 = reading_of(tried->is_seen ? with_it : fmin(with_it, p99->value));
    *p90 = reading_of(fmin(p90->value, p99->value));
}

/*
 * Of a compiled step whose pool is known. The training compiles the step again and tries kernels
 * again, mostly with the same result. Where they take more than in the export, the pool grows once
 * more: so P99 is with one more region.
 */
static void set_compiled(struct estimate *estimate, const struct physics *physics)
{
    double bytes = estimate->bytes.value;
    estimate->p50_bytes = reading_of(bytes);
    estimate->p90_bytes = reading_of(bytes + compiled_p90 * physics->footprint.reserved);
    estimate->p99_bytes = reading_of(bytes + physics->footprint.next_region);
}

void quantiles_set(struct estimate *estimate, const struct physics *physics)
{
    if (estimate->bytes.valid && physics->footprint.next_region > 0) {
        set_compiled(estimate, physics);
        return;
    }
    const struct row *row =
        &rows[calibrated_as(physics, estimate->evidence)][network_kind_of(physics)];
    double bytes = estimate->bytes.value, scale = quantile_scale(physics, estimate->evidence);
    if (row->n == 0 || !estimate->bytes.valid)
        return;
    double context = physics->context_bytes;
    estimate->p50_bytes = quantile_at(without_guess(bytes, physics), row->p50 * scale, context);
    estimate->p90_bytes = quantile_at(bytes, row->p90 * scale, context);
    estimate->p99_bytes = quantile_at(bytes, row->p99 * scale, context);
    estimate->untried_p99_bytes = untried_p99(estimate, physics);
    set_tried(estimate, &physics->tried);
}
