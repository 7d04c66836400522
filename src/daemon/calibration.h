/* SPDX-License-Identifier: Apache-2.0 */
/* The setting `calibration`: the constants of this host's interference model. */
#ifndef COLLOC_DAEMON_CALIBRATION_H
#define COLLOC_DAEMON_CALIBRATION_H

#include "base/fault.h"
#include "core/core.h"
#include "estimator/estimator.h"

/*
 * Reads a file that `colloc calibrate` wrote into the core's settings.
 *
 * path:         "": the constants that are built in hold
 * ret_decoding: how fast the host decodes pictures, if the file says so
 *
 * Returns 0, or -errno with a fault; the settings and ret_decoding are not changed then.
 */
int calibration_read(const char *path, struct fault *fault, struct core_settings *settings,
    struct host_decoding *ret_decoding);

#endif
