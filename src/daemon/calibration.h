/* SPDX-License-Identifier: Apache-2.0 */
/* The setting `calibration`: the constants of this host's interference model. */
#ifndef COLLOC_DAEMON_CALIBRATION_H
#define COLLOC_DAEMON_CALIBRATION_H

#include "base/fault.h"
#include "core/core.h"

/*
 * Reads a file that `colloc calibrate` wrote into the core's settings.
 *
 * path: "": the constants that are built in hold
 *
 * Returns 0, or -errno with a fault; the settings are not changed then.
 */
int calibration_read(const char *path, struct fault *fault, struct core_settings *settings);

#endif
