/* A request's summary or export, played: the footprint, and what the residual and the quantiles are told by. */
#ifndef COLLOC_ESTIMATOR_PHYSICS_H
#define COLLOC_ESTIMATOR_PHYSICS_H

#include "estimator/activity.h"
#include "estimator/estimator.h"
#include "estimator/replay.h"
#include "estimator/tape.h"

struct physics {
    double context_bytes;
    struct footprint footprint;
    struct tape_doubts doubts;
    struct activity activity;
    double parameters, macs, depth, conv_share, sequence; /* of the tape */
    bool autocast, is_export;
};

/*
 * 0, ESTIMATE_UNKNOWN with a note, or a fault as estimate_run has them. Remarks go to the note of `estimate`, whose
 * evidence is set.
 */
int physics_run(const struct estimate_request *request, struct fault *fault, struct estimate *estimate,
                struct physics *ret_physics);

#endif
