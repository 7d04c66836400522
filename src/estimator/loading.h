/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How fast a training's batches are loaded: as the user says, or as this host decodes what the
 * script was seen to decode. A training whose GPU computes more samples a second waits for them.
 */
#ifndef COLLOC_ESTIMATOR_LOADING_H
#define COLLOC_ESTIMATOR_LOADING_H

#include "estimator/estimator.h"

/* The JPEG by which `colloc calibrate` measures a host: workloads/pictures.py. */
#define LOADING_PIXELS (500.0 * 375)

/*
 * Returns the samples a second that one process of the training gets; not valid where it never
 * waits, or where the rate is not known.
 *
 * ret_why: the reason why it is not known, for the user; "": it is, or the request says nothing of
 *          the loading
 */
struct reading loading_rate(const struct estimate_request *request, const char **ret_why);

#endif
