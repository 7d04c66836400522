/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The samples of each managed GPU, stored in a file of fixed size below STATE_DIR/samples
 * (store/series.h), and as JSON for `colloc top` and reports. The setting `samples` gives the
 * rings: with 1s:1h,10s:1d each second of the last hour and each ten seconds of the last day.
 */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/units.h"
#include "daemon/gpus/gpus_query.h"
#include "daemon/gpus/gpus_state.h"

#define SUFFIX ".series"

/* ---- what is kept ---- */

enum value {
    VALUE_MEM_USED,
    VALUE_MEM_USED_MAX,
    VALUE_UTILISATION,
    VALUE_SMACT,
    VALUE_SMACT_MAX,
    VALUE_SMOCC,
    VALUE_GRACT,
    VALUE_DRAM,
    VALUE_POWER,
    VALUE_TEMPERATURE,
    VALUE_SM_CLOCK,
    VALUE_TASKS,
    VALUE_FOREIGN,
    VALUES
};

static const char *const columns[VALUES] = {
    "mem_used_mib",
    "mem_used_max_mib",
    "utilisation",
    "smact",
    "smact_max",
    "smocc",
    "gract",
    "dram_active",
    "power_w",
    "temperature_c",
    "sm_clock_mhz",
    "tasks",
    "foreign_processes",
};

static const enum series_figure figures[VALUES] = {
    [VALUE_MEM_USED_MAX] = SERIES_MAX,
    [VALUE_SMACT_MAX] = SERIES_MAX,
};

static struct reading in_mib(struct reading bytes)
{
    return bytes.valid ? reading_of(bytes.value / (double)MIB) : READING_NONE;
}

void history_add(struct gpus *gpus, size_t i)
{
    struct gpu_state *state = &gpus->states[i];
    const struct gpu_sample *seen = &state->sample;
    const struct gpu_view *gpu = state->view < 0 ? NULL
                                                 : &core_view(gpus->parts.core)->gpus[state->view];
    if (!state->series || !gpu)
        return;
    const struct reading values[VALUES] = {
        [VALUE_MEM_USED] = in_mib(seen->mem_used_bytes),
        [VALUE_MEM_USED_MAX] = in_mib(seen->mem_used_bytes),
        [VALUE_UTILISATION] = seen->utilisation,
        [VALUE_SMACT] = seen->smact,
        [VALUE_SMACT_MAX] = seen->smact,
        [VALUE_SMOCC] = seen->smocc,
        [VALUE_GRACT] = seen->gract,
        [VALUE_DRAM] = seen->dram_active,
        [VALUE_POWER] = seen->power_w,
        [VALUE_TEMPERATURE] = seen->temperature_c,
        [VALUE_SM_CLOCK] = seen->sm_clock_mhz,
        [VALUE_TASKS] = reading_of(gpu->n_residents),
        [VALUE_FOREIGN] = seen->processes.valid ? reading_of((double)state->n_external)
                                                : READING_NONE,
    };
    int r = series_add(state->series, clock_wall_us(), values);
    if (r < 0) {
        char what[160];
        snprintf(what, sizeof what, "samples of GPU %s: %s", gpus->set->gpu[i].index, strerror(-r));
        disk_failed(gpus->parts.disk, what);
    }
}

/* ---- files ---- */

/* UUIDs of old MIG instances have slashes. */
static void series_path(const struct gpus *gpus, const char *uuid, char *path, size_t size)
{
    int n = snprintf(path, size, "%s/samples/", gpus->parts.config->state_dir);
    snprintf(path + n, size - (size_t)n, "%s" SUFFIX, uuid);
    for (char *c = path + n; *c; c++)
        if (*c == '/')
            *c = '_';
}

/* Of GPUs and MIG instances that are no more. */
static void remove_old(const char *folder, int64_t keep_us)
{
    char path[900];
    struct stat status;
    DIR *dir = opendir(folder);
    for (const struct dirent *entry; dir && (entry = readdir(dir));) {
        const char *suffix = strstr(entry->d_name, SUFFIX);
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (suffix && strcmp(suffix, SUFFIX) == 0 && stat(path, &status) == 0 &&
            status.st_mtime * SECOND_US < clock_wall_us() - keep_us)
            unlink(path);
    }
    if (dir)
        closedir(dir);
}

static int open_all(
    struct gpus *gpus, const struct series_form *form, const char *folder, struct fault *fault)
{
    char path[900];
    int r = file_make_folders(folder, 0755);
    if (r < 0)
        return fault_set(fault, -r, "%s: %s", folder, strerror(-r));
    for (size_t i = 0; i < gpus->set->count && r == 0; i++) {
        if (gpus->states[i].series || gpus->states[i].view < 0 || !*gpus->set->gpu[i].uuid)
            continue;
        series_path(gpus, gpus->set->gpu[i].uuid, path, sizeof path);
        r = series_open(path, form, fault, &gpus->states[i].series);
    }
    return r;
}

void history_open(struct gpus *gpus)
{
    const struct samples_kept *kept = &gpus->parts.config->samples;
    const struct series_form form = {kept->rings, kept->n, figures, VALUES};
    char folder[600];
    int64_t longest_us = 0;
    struct fault fault = {""};
    if (kept->n == 0)
        return;
    snprintf(folder, sizeof folder, "%s/samples", gpus->parts.config->state_dir);
    for (size_t i = 0; i < kept->n; i++)
        longest_us = kept->rings[i].keep_us > longest_us ? kept->rings[i].keep_us : longest_us;
    if (open_all(gpus, &form, folder, &fault) < 0)
        log_warning("samples are not stored: %s", fault.text);
    remove_old(folder, longest_us);
}

/* ---- as JSON ---- */

struct series_writer {
    FILE *out;
    bool any;
};

static void write_row(void *context, int64_t wall_us, const struct reading *values)
{
    struct series_writer *writer = context;
    fprintf(writer->out, "%s[%.3f", writer->any ? "," : "", (double)wall_us / 1e6);
    for (int i = 0; i < VALUES; i++)
        if (values[i].valid)
            fprintf(writer->out, ",%.6g", values[i].value);
        else
            fputs(",null", writer->out);
    fputc(']', writer->out);
    writer->any = true;
}

static int write_gpu(struct gpus *gpus, size_t i, int64_t since_us, FILE *out)
{
    const struct gpu_info *info = &gpus->set->gpu[i];
    struct series_writer writer = {out, false};
    int64_t step_us = 0;
    fprintf(out, "{\"index\":\"%s\",\"uuid\":\"%s\",\"rows\":[", info->index, info->uuid);
    int r = series_read(
        gpus->states[i].series, since_us, clock_wall_us(), write_row, &writer, &step_us);
    fprintf(out, "],\"step_s\":%.6g}", (double)step_us / 1e6);
    return r;
}

int gpus_write_history(struct gpus *gpus, int64_t since_us, FILE *out)
{
    bool any = false;
    int r = 0;
    fputs("{\"columns\":[\"time\"", out);
    for (int i = 0; i < VALUES; i++)
        fprintf(out, ",\"%s\"", columns[i]);
    fputs("],\"gpus\":[", out);
    for (size_t i = 0; gpus->set && i < gpus->set->count && r == 0; i++) {
        if (!gpus->states[i].series)
            continue;
        fputs(any ? "," : "", out);
        any = true;
        r = write_gpu(gpus, i, since_us, out);
    }
    fputs("]}", out);
    return r;
}
