/* SPDX-License-Identifier: Apache-2.0 */
/* Fits the constants of the interference model to mixes that were measured on a host. Pure. */
#ifndef COLLOC_CALIBRATION_CALIBRATION_FIT_H
#define COLLOC_CALIBRATION_CALIBRATION_FIT_H

#include "base/reading.h"
#include "sharing/interference.h"

enum { CALIBRATION_TASKS_MAX = 8, CALIBRATION_MIXES_MAX = 64 };

/* Trainings that ran together on a whole GPU. */
struct calibration_mix {
    bool mps;         /* clients of MPS; otherwise plain processes */
    bool is_held_out; /* not fitted to: it judges the fit */
    int n;
    struct demand demands[CALIBRATION_TASKS_MAX]; /* of each alone, as a plain process; complete */
    double speeds[CALIBRATION_TASKS_MAX];         /* of each; 1: as alone */
    struct reading smact, dram;                   /* of the GPU meanwhile */
};

struct calibration_data {
    struct calibration_mix mixes[CALIBRATION_MIXES_MAX];
    int n;
};

/*
 * Fits the constants of one way of sharing to its mixes that are not held out. A constant that the
 * mixes do not determine stays near the value that it has.
 *
 * constants: those of the other way stay as they are
 *
 * Returns false, with nothing changed, when there are no such mixes.
 */
bool calibration_fit(
    const struct calibration_data *data, bool mps, struct interference_constants *constants);

/*
 * Judges constants by the speeds of trainings in mixes of one way of sharing.
 *
 * held_out: take the mixes that were not fitted to; otherwise those that were
 *
 * Returns the median of |predicted / measured - 1|; not valid when there are no such mixes.
 */
struct reading calibration_error(const struct calibration_data *data, bool mps, bool held_out,
    const struct interference_constants *constants);

#endif
