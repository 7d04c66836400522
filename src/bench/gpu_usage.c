/* SPDX-License-Identifier: Apache-2.0 */
/* Each value of a sample counts for itself: an empty field is unknown and changes no mean. */
#include "bench/gpu_usage.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/columns.h"

const char *const gpu_activities[GPU_ACTIVITIES] = {"smact", "smocc", "dram_active", "gract",
    "power_w", "mem_used_mib", "pcie_rx_mib_per_s", "pcie_tx_mib_per_s"};

static bool is_within(double at_s, struct interval span)
{
    return span.from_s <= at_s && at_s <= span.to_s;
}

/* Adds the columns `at` of a sample: all to the means if it is `measured`, memory to the peak. */
static void add_sample(
    struct columns *columns, const int *at, bool measured, struct gpu_usage *usage)
{
    for (int i = 0; i < GPU_ACTIVITIES; i++) {
        double value;
        if (columns_number(columns, at[i], -MEASURED_MAX, MEASURED_MAX, NULL, &value) != 1)
            continue;
        if (i == GPU_MEMORY)
            usage->peak_mib = reading_of(
                usage->peak_mib.valid ? fmax(usage->peak_mib.value, value) : value);
        if (measured) {
            usage->sums[i] += value;
            usage->counts[i]++;
        }
    }
}

struct gpu_usage gpu_usage_read(const char *path, const struct measured_group *group)
{
    struct columns columns;
    struct interval whole = measured_group_whole(group), measured = measured_group_span(group);
    struct gpu_usage usage = {.peak_mib = READING_NONE};
    double time_s;
    int at[GPU_ACTIVITIES];
    if (columns_open(&columns, path, NULL) == 0) {
        int time = columns_find(&columns, (const char *const[]){"time_s", NULL});
        for (int i = 0; i < GPU_ACTIVITIES; i++)
            at[i] = columns_find(&columns, (const char *const[]){gpu_activities[i], NULL});
        while (columns_next(&columns, NULL) == 1)
            if (columns_number(&columns, time, 0, MEASURED_MAX, NULL, &time_s) == 1 &&
                is_within(group->began_s + time_s, whole))
                add_sample(&columns, at, is_within(group->began_s + time_s, measured), &usage);
    }
    columns_close(&columns);
    return usage;
}

struct reading gpu_usage_mean(const struct gpu_usage *usage, int activity)
{
    int count = usage->counts[activity];
    return count ? reading_of(usage->sums[activity] / count) : READING_NONE;
}
