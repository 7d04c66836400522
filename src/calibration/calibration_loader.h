/* SPDX-License-Identifier: Apache-2.0 */
/* Measures how fast this host decodes pictures for a training: by one process of a data loader, and
 * by as many as there are processors. */
#ifndef COLLOC_CALIBRATION_CALIBRATION_LOADER_H
#define COLLOC_CALIBRATION_CALIBRATION_LOADER_H

#include "base/fault.h"
#include "calibration/calibration_worker.h"

struct calibration_loader {
    double rate, most;    /* pictures a second: of one process, of all; 0: not measured */
    struct fault why_not; /* "": both were measured */
};

/*
 * Starts a process and measures with it.
 *
 * settings:   of the process
 * seconds:    of each of the two measurements
 * ret_loader: also where nothing could be measured, such as without torchvision
 *
 * Returns 0; WORKER_INTERRUPTED; or -errno with a fault: the process does not start or reply.
 */
int calibration_loader_measure(const struct worker_settings *settings, double seconds,
    struct fault *fault, struct calibration_loader *ret_loader);

#endif
