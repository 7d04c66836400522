/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes lines that gpu_kinds_read reads: a comment that says where the constants are from and how
 * well they hold, and a line for each. What was not measured has no line, so that the built-in
 * value holds.
 */
#include "calibration/calibration_file.h"

#include "base/array.h"

static const struct {
    const char *name;
    bool mps;
} constants[] = {{"switch_cost", false}, {"cold_cost", false}, {"launch_cost", true},
    {"cache_cost", true}, {"weight_power", true}, {"traffic_cost", true}};

void calibration_result_fit(struct calibration_result *result, const struct calibration_data *data)
{
    result->constants = interference_measured;
    for (int mps = 0; mps < 2; mps++) {
        calibration_fit(data, mps, &result->constants);
        result->error[mps] = calibration_error(data, mps, true, &result->constants);
        result->error_built_in[mps] = calibration_error(data, mps, true, &interference_measured);
    }
}

static void print_error(FILE *out, const char *way, struct reading now, struct reading built_in)
{
    if (now.valid)
        fprintf(out, "#   %-18s %5.1f %%   with the built-in constants %5.1f %%\n", way,
            100 * now.value, 100 * built_in.value);
}

static void print_loader(FILE *out, const struct calibration_loader *loader)
{
    if (*loader->why_not.text) {
        fprintf(
            out, "# How fast pictures are decoded was not measured: %s\n", loader->why_not.text);
        return;
    }
    fprintf(out,
        "# Pictures of ImageNet's size that a data loader decodes a second: one process, and all.\n"
        "constant decode_rate  %.1f\nconstant decode_most  %.1f\n",
        loader->rate, loader->most);
}

void calibration_print(FILE *out, const struct calibration_result *result)
{
    struct interference_constants values = result->constants;
    bool has_mps = *result->why_no_mps == '\0';
    fprintf(out,
        "# Constants of the interference model on this host: written by `colloc calibrate` on %s.\n"
        "# %s, driver %s; trainings: %s.\n"
        "# Median error of the predicted speeds, in mixes that were not used for the fit:\n",
        result->date, result->gpu_name, result->driver_version, result->trainings);
    print_error(out, "time-sliced", result->error[0], result->error_built_in[0]);
    print_error(out, "MPS", result->error[1], result->error_built_in[1]);
    if (!has_mps)
        fprintf(out, "# MPS was not measured, its constants stay as they are built in: %s\n",
            result->why_no_mps);
    for (size_t i = 0; i < ARRAY_SIZE(constants); i++)
        if (!constants[i].mps || has_mps)
            fprintf(out, "constant %-12s %.3f\n", constants[i].name,
                *interference_constant(&values, constants[i].name));
    print_loader(out, &result->loader);
}
