/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fit of scripts/fit-sharing, with the measurements of one host and of two minutes. It
 * minimises the mean error of speeds, SM activity and bandwidth, as logarithms of predicted /
 * measured:
 *
 *     mix                  speeds measured   predicted        error of speed
 *     medium + heavy, MPS  0.91  0.72        0.84  0.75       (0.080 + 0.041) / 2
 *
 * Few mixes determine some constants badly: without DRAM activity, for example, nothing depends on
 * traffic_cost. A small cost for the distance from the value at the beginning holds such a constant
 * there, and moves others by next to nothing.
 */
#include "calibration/calibration_fit.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>

#include "calibration/simplex.h"

#define ACTIVITY_WEIGHT 0.3  /* that of scripts/fit-sharing */
#define DISTANCE_WEIGHT 0.02 /* chosen: a tenth of a constant's range costs 0.2 % of error */

enum { CONSTANTS_MAX = SIMPLEX_VARIABLES_MAX };

static const char *const names[2][CONSTANTS_MAX] = {
    {"switch_cost", "cold_cost"}, {"launch_cost", "cache_cost", "weight_power", "traffic_cost"}};

struct fit {
    const struct calibration_data *data;
    bool mps;
    struct interference_constants constants;
    int n;
    double *values[CONSTANTS_MAX]; /* into `constants` */
    double first[CONSTANTS_MAX];
};

static void predict_mix(const struct interference_constants *constants,
    const struct calibration_mix *mix, struct sharer *ret_sharers)
{
    for (int i = 0; i < mix->n; i++)
        ret_sharers[i] = (struct sharer){.demand = mix->demands[i], .mps = mix->mps};
    interference_solve(constants, 1, 1, ret_sharers, mix->n);
}

static double activity_error(struct reading measured, double predicted)
{
    return measured.valid && measured.value > 0 && predicted > 0
               ? fabs(log(predicted / measured.value))
               : 0;
}

static double mix_error(
    const struct interference_constants *constants, const struct calibration_mix *mix)
{
    struct sharer sharers[CALIBRATION_TASKS_MAX];
    double error = 0;
    predict_mix(constants, mix, sharers);
    for (int i = 0; i < mix->n; i++)
        error += fabs(log(sharers[i].speed / mix->speeds[i])) / mix->n;
    struct demand now = interference_activity(constants, 1, 1, sharers, mix->n);
    return error + ACTIVITY_WEIGHT * (activity_error(mix->smact, now.smact) +
                                         activity_error(mix->dram, now.dram));
}

static bool is_of(const struct calibration_mix *mix, bool mps, bool held_out)
{
    return mix->mps == mps && mix->is_held_out == held_out;
}

static double cost_of(void *context, const double *point)
{
    struct fit *fit = context;
    double sum = 0, distance = 0;
    int count = 0;
    for (int i = 0; i < fit->n; i++) {
        if (!(point[i] >= 0 && point[i] <= 1)) /* as data/gpu-kinds.txt has it */
            return INFINITY;
        *fit->values[i] = point[i];
        distance += fabs(point[i] - fit->first[i]);
    }
    for (int i = 0; i < fit->data->n; i++)
        if (is_of(&fit->data->mixes[i], fit->mps, false)) {
            sum += mix_error(&fit->constants, &fit->data->mixes[i]);
            count++;
        }
    return sum / count + DISTANCE_WEIGHT * distance;
}

static bool has_mixes(const struct calibration_data *data, bool mps)
{
    for (int i = 0; i < data->n; i++)
        if (is_of(&data->mixes[i], mps, false))
            return true;
    return false;
}

bool calibration_fit(
    const struct calibration_data *data, bool mps, struct interference_constants *constants)
{
    struct fit fit = {.data = data, .mps = mps, .constants = *constants};
    double point[CONSTANTS_MAX];
    if (!has_mixes(data, mps))
        return false;
    for (; fit.n < CONSTANTS_MAX && names[mps][fit.n]; fit.n++) {
        fit.values[fit.n] = interference_constant(&fit.constants, names[mps][fit.n]);
        point[fit.n] = fit.first[fit.n] = *fit.values[fit.n];
    }
    simplex_minimise(cost_of, &fit, fit.n, point);
    for (int i = 0; i < fit.n; i++)
        *fit.values[i] = point[i];
    *constants = fit.constants;
    return true;
}

static int compare_doubles(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

struct reading calibration_error(const struct calibration_data *data, bool mps, bool held_out,
    const struct interference_constants *constants)
{
    double errors[CALIBRATION_MIXES_MAX * CALIBRATION_TASKS_MAX];
    size_t n = 0;
    for (int i = 0; i < data->n; i++) {
        const struct calibration_mix *mix = &data->mixes[i];
        struct sharer sharers[CALIBRATION_TASKS_MAX];
        if (!is_of(mix, mps, held_out))
            continue;
        predict_mix(constants, mix, sharers);
        for (int k = 0; k < mix->n; k++)
            errors[n++] = fabs(sharers[k].speed / mix->speeds[k] - 1);
    }
    if (n == 0)
        return READING_NONE;
    qsort(errors, n, sizeof *errors, compare_doubles);
    return reading_of((errors[(n - 1) / 2] + errors[n / 2]) / 2);
}
