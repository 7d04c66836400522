/* SPDX-License-Identifier: Apache-2.0 */
/* The file of `colloc calibrate`: the constants of a host, in the form of data/gpu-kinds.txt. */
#ifndef COLLOC_CALIBRATION_CALIBRATION_FILE_H
#define COLLOC_CALIBRATION_CALIBRATION_FILE_H

#include <stdio.h>

#include "calibration/calibration_fit.h"
#include "calibration/calibration_loader.h"

struct calibration_result {
    const char *gpu_name, *driver_version, *date; /* "2026-11-22" */
    const char *trainings;                        /* "medium, resnet18, heavy" */
    const char *why_no_mps;                       /* "": MPS was measured */
    struct calibration_loader loader;
    struct interference_constants constants;
    /* Errors of speeds in mixes that were not fitted to; [0]: plain processes, [1]: MPS. */
    struct reading error[2], error_built_in[2];
};

/* Fits the constants to the measurements, from those that are built in, and judges both. Sets
 * `constants` and the errors. */
void calibration_result_fit(struct calibration_result *result, const struct calibration_data *data);

/* Writes the file's text. Constants that were not measured are not in it. */
void calibration_print(FILE *out, const struct calibration_result *result);

#endif
