/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the summary of a bench: what measured_group.h and gpu_usage.h say of each group of the
 * journal. Unknown values are empty fields.
 */
#include "bench/bench_summary.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/columns.h"
#include "base/file.h"
#include "bench/gpu_usage.h"
#include "bench/journal_read.h"

struct summary {
    const char *folder;
    FILE *out;
};

static void print_reading(FILE *out, struct reading value)
{
    if (value.valid)
        fprintf(out, ",%.6g", value.value);
    else
        fputc(',', out);
}

static void print_header(FILE *out)
{
    fputs("group,repeat,mix,sharing,tasks,failed,total_s,epoch_s,samples_per_s", out);
    for (int i = 0; i < GPU_ACTIVITIES; i++)
        fprintf(out, ",%s", gpu_activities[i]);
    fputs(",energy_j,joule_per_sample,mem_peak_mib\n", out);
}

static void print_group(const struct measured_group *group, void *data)
{
    const struct summary *summary = data;
    FILE *out = summary->out;
    char path[PATH_MAX];
    struct reading rate = measured_group_samples_per_s(group), joule = READING_NONE;
    snprintf(
        path, sizeof path, "%s/looks/%d-%d.csv", summary->folder, group->number, group->repeat);
    struct gpu_usage usage = gpu_usage_read(path, group);
    struct reading power_w = gpu_usage_mean(&usage, GPU_POWER);
    if (power_w.valid && rate.valid && rate.value > 0)
        joule = reading_of(power_w.value / rate.value);
    columns_print(out, group->name);
    fprintf(out, ",%d,", group->repeat);
    columns_print(out, group->mix);
    fprintf(out, ",%s,%d,%d,%.6g", group->sharing, group->n_tasks, group->failed, group->total_s);
    print_reading(out, measured_group_epoch_s(group));
    print_reading(out, rate);
    for (int i = 0; i < GPU_ACTIVITIES; i++)
        print_reading(out, gpu_usage_mean(&usage, i));
    fprintf(out, ",%.6g", group->energy_j);
    print_reading(out, joule);
    print_reading(out, usage.peak_mib);
    fputc('\n', out);
}

static int write_file(const char *folder, const char *lines, size_t size, struct fault *fault)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/summary.csv", folder);
    int r = file_write_atomic(path, lines, size, 0644);
    return r < 0 ? fault_set(fault, -r, "%s: %s", path, strerror(-r)) : 0;
}

int bench_summary_write(const char *folder, struct fault *fault)
{
    char *lines = NULL;
    size_t size = 0;
    struct summary summary = {folder, open_memstream(&lines, &size)};
    if (!summary.out)
        return fault_set(fault, ENOMEM, "out of memory");
    print_header(summary.out);
    int r = journal_read(folder, print_group, &summary, fault);
    if (fclose(summary.out) != 0 && r == 0)
        r = fault_set(fault, ENOMEM, "out of memory");
    if (r == 0)
        r = write_file(folder, lines, size, fault);
    free(lines);
    return r;
}
