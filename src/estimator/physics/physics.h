/* SPDX-License-Identifier: Apache-2.0 */
/* The physical estimate of a request's summary or export: the footprint, and the properties on
 * which the residual and the quantiles depend. */
#ifndef COLLOC_PHYSICS_PHYSICS_H
#define COLLOC_PHYSICS_PHYSICS_H

#include "estimator/estimator.h"
#include "estimator/physics/allocator_replay.h"
#include "estimator/physics/roofline.h"
#include "estimator/physics/tape.h"
#include "estimator/physics/tried_kernels.h"

struct physics {
    double context_bytes;
    struct footprint footprint;
    struct tape_doubts doubts;
    struct activity activity;
    double parameters, macs, depth, conv_share, sequence; /* of the tape */
    double unaligned; /* share of convolutions' maps with channels that tensor cores cannot use */
    double fourier_bytes;              /* the largest workspace that one of these may take */
    double guess_reserved, guess_live; /* of the footprint, for a loss at the image's size, which is
                                        * a guess: the network may do without */
    double replay_range;               /* allocator_replay_range of an export; else 0 */
    bool convolves;                    /* an export with convolutions */
    bool tries_kernels;           /* by cudnn.benchmark: workspaces are unknown, and may be large */
    struct tried_workspace tried; /* if it tries them */
    bool autocast, is_export, knows_kernels;
    bool is_foreign_gpu; /* cuDNN's workspaces were fitted to other chips */
};

/* The constants of the physical estimate. */
struct physics_constants {
    const struct gpu_traits *gpu;
    struct activity_rates rates;
};

/* Returns the fitted constants of this kind of GPU; those of an A100 for an unknown one. */
struct physics_constants physics_constants_of(const char *gpu_kind);

/* Does what physics_run does with other constants than those of the request's kind of GPU: to fit
 * them. */
int physics_run_with(const struct physics_constants *constants,
    const struct estimate_request *request, struct fault *fault, struct estimate *estimate,
    struct physics *ret_physics);

/*
 * Calculates the footprint.
 *
 * estimate: gets notes and the kind of evidence.
 *
 * Returns 0; ESTIMATE_UNKNOWN with a note; or a fault as estimate_run.
 */
int physics_run(const struct estimate_request *request, struct fault *fault,
    struct estimate *estimate, struct physics *ret_physics);

/* Does the type of the weights, which the request does not say, decide the estimate? The request
 * has a model. */
bool physics_asks_for_type(const struct estimate_request *request);

#endif
