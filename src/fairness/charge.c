/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Computes the charge for the use of a GPU. A task keeps others off its GPU in one of two ways: by
 * its activity, since the SMs are busy, or by its memory, since no further task fits. Others cannot
 * have the larger of the two, so that is the charge. A task that waits for its data in 60 of 80 GiB
 * is charged 0.75 of a GPU, one that computes at 90 % in 10 GiB is charged 0.9.
 */
#include "fairness/charge.h"

#include <math.h>

double charge_decay(double charge, int64_t elapsed_us, int64_t half_life_us)
{
    return elapsed_us > 0 ? charge * exp2(-(double)elapsed_us / (double)half_life_us) : charge;
}
