/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `colloc trace import`, `synth` and `info`. A Python program does the work, python/colloc_trace:
 * reading logs needs no C. Here the options are checked, and it gets what only the simulator knows:
 * the catalogue of tasks, the GPUs of a cluster, and the jobs of a trace of colloc's own.
 */
#include "cli/trace_run.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/units.h"
#include "cli/print.h"
#include "cli/python.h"
#include "cli/trace_feed.h"
#include "cli/trace_format.h"
#include "cli/word_list.h"
#include "sim/catalogue.h"
#include "sim/cluster.h"

#define GPU_BYTES_USUAL (40 * GIB) /* of the GPUs of `colloc simulate`, A100-40GB */

const struct option_value *trace_value(const struct trace_run *run, int option)
{
    return &run->invocation->values[option];
}

/* Appends "--NAME=VALUE" for an option that was given. */
static void add_text(struct word_list *words, const char *name, const char *text)
{
    if (text)
        word_list_add(words, "--%s=%s", name, text);
}

static void add_number(struct word_list *words, const char *name, int64_t number)
{
    if (number)
        word_list_add(words, "--%s=%lld", name, (long long)number);
}

static void add_flag(struct word_list *words, const char *name, bool is_set)
{
    if (is_set)
        word_list_add(words, "--%s", name);
}

/* Appends a number within [min, max]. */
static int add_fraction(const struct trace_run *run, int option, double min, double max,
    struct word_list *words, struct fault *fault)
{
    double value;
    const char *text = trace_value(run, option)->text, *name = trace_options[option].name;
    if (text && parse_double(text, min, max, &value) < 0)
        return fault_set(fault, EINVAL, "--%s=%.60s: invalid number: give one from %g to %g", name,
            text, min, max);
    add_text(words, name, text);
    return 0;
}

/* Reads a number of GPUs, or a cluster as `colloc simulate` takes it: 4, or 4xA100-40GB; 0: not
 * given. */
static int read_gpus(const struct trace_run *run, struct fault *fault, int *ret_gpus)
{
    const char *text = trace_value(run, TRACE_GPUS)->text;
    int64_t count;
    struct cluster cluster;
    *ret_gpus = 0;
    if (!text)
        return 0;
    int r = parse_int64(text, 1, CLUSTER_GPUS_MAX, &count);
    if (r == 0)
        *ret_gpus = (int)count;
    if (r == -ERANGE)
        return fault_set(fault, EINVAL, "--gpus=%.60s: invalid number of GPUs: give 1 to %d", text,
            CLUSTER_GPUS_MAX);
    if (r != -EINVAL)
        return r;
    CLEANUP_FREE struct gpu_kinds *kinds = calloc(1, sizeof *kinds);
    if (!kinds)
        return fault_set(fault, ENOMEM, "out of memory");
    r = gpu_kinds_init(kinds, fault);
    if (r == 0) {
        r = cluster_parse(kinds, text, fault, &cluster);
        *ret_gpus = cluster.n_gpus;
        cluster_fini(&cluster);
    }
    return fault_prefix(r < 0 ? fault : NULL, r, "--gpus=%.60s", text);
}

static int add_gpus(const struct trace_run *run, struct word_list *words, struct fault *fault)
{
    int gpus, r = read_gpus(run, fault, &gpus);
    add_number(words, "gpus-max", gpus);
    return r;
}

/* Appends the catalogue of --tasks, or the built-in one; and the jobs of a trace of colloc's own,
 * where the file is one. */
static int add_catalogue(
    const struct trace_run *run, bool is_own, struct word_list *words, struct fault *fault)
{
    static const struct catalogue_settings settings = {
        "none", NAN}; /* unknown activity stays unknown */
    char path[TRACE_FEED_PATH_SIZE];
    struct catalogue catalogue;
    int r = catalogue_read(trace_value(run, TRACE_TASKS)->text, &settings, fault, &catalogue);
    if (r == 0)
        r = trace_feed_catalogue(&catalogue, fault, path);
    if (r == 0)
        add_text(words, "catalogue", path);
    if (r == 0 && is_own)
        r = trace_feed_own(run->name, &catalogue, fault, path);
    if (r == 0 && is_own)
        add_text(words, "own-jobs", path);
    catalogue_fini(&catalogue);
    return r;
}

static void add_outputs(const struct trace_run *run, struct word_list *words)
{
    const struct option_value *gpu_memory = trace_value(run, TRACE_GPU_MEMORY);
    add_number(words, "seed", trace_value(run, TRACE_SEED)->number);
    add_number(words, "jobs", trace_value(run, TRACE_JOBS)->number);
    add_text(words, "output", trace_value(run, TRACE_OUTPUT)->text);
    add_text(words, "tasks-out", trace_value(run, TRACE_TASKS_OUT)->text);
    add_number(words, "gpu-bytes", gpu_memory->set ? gpu_memory->number : GPU_BYTES_USUAL);
}

/* Appends how the log is read. */
static void add_log(const struct trace_run *run, const char *format, struct word_list *words)
{
    add_text(words, "from", format);
    add_text(words, "job-table", trace_value(run, TRACE_JOB_TABLE)->text);
    add_text(words, "where", trace_value(run, TRACE_WHERE)->text);
    add_number(words, "processors-per-gpu", trace_value(run, TRACE_PROCESSORS)->number);
    add_flag(words, "keep-partial", trace_value(run, TRACE_KEEP_PARTIAL)->number);
}

/* Becomes the program, or returns -errno with a fault. Releases the words. */
static int become_program(
    const struct trace_run *run, int r, bool reads, struct word_list *words, struct fault *fault)
{
    add_flag(words, "json", run->invocation->common[COMMON_JSON].number);
    if (reads)
        word_list_add(words, "--");
    if (reads)
        word_list_add(words, "%s", run->name);
    if (r == 0 && !word_list_end(words))
        r = fault_set(fault, ENOMEM, "out of memory");
    if (r == 0)
        r = python_become(NULL, (const char *const *)words->words, fault);
    word_list_fini(words);
    return r;
}

/* Returns the format of --from, or what the file's first line shows, and prints which; or NULL. */
static const char *format_of(const struct trace_run *run)
{
    const struct option_value *from = trace_value(run, TRACE_FROM);
    const char *format = from->set ? from->text : trace_format_of_file(run->name);
    if (format && !from->set)
        print_error("%s: read as --from=%s, which its first line shows", run->name, format);
    return format;
}

int trace_import(const struct trace_run *run, struct fault *fault)
{
    struct word_list words = {0};
    int64_t from_us;
    const char *format = format_of(run), *from = trace_value(run, TRACE_FROM_TIME)->text;
    if (!format)
        return fault_set(fault, EINVAL,
            "trace import: the first line shows no known format: add --from=philly, helios, acme, "
            "alibaba, alibaba-2023, alibaba-2025, alibaba-2026, alibaba-spot, sacct or swf");
    word_list_add(&words, "colloc_trace");
    word_list_add(&words, "import");
    add_log(run, format, &words);
    if (from && parse_duration(from, &from_us) == 0)
        add_number(&words, "from-us", from_us);
    else
        add_text(&words, "from-date", from);
    add_number(&words, "window-us", trace_value(run, TRACE_WINDOW)->number);
    int r = add_gpus(run, &words, fault);
    if (r == 0)
        r = add_fraction(run, TRACE_SAMPLE, 0, 1, &words, fault);
    if (r == 0)
        r = add_fraction(run, TRACE_ARRIVAL_SCALE, 0, 1000, &words, fault);
    add_outputs(run, &words);
    if (r == 0)
        r = add_catalogue(run, false, &words, fault);
    return become_program(run, r, true, &words, fault);
}

int trace_synth(const struct trace_run *run, struct fault *fault)
{
    struct word_list words = {0};
    if (!trace_value(run, TRACE_TASKS_OUT)->set)
        return fault_set(
            fault, EINVAL, "trace synth: no catalogue file given: add --tasks-out=FILE");
    word_list_add(&words, "colloc_trace");
    word_list_add(&words, "synth");
    add_text(&words, "like", trace_value(run, TRACE_LIKE)->text);
    int r = add_fraction(run, TRACE_DAYS, 1e-3, 36500, &words, fault);
    if (r == 0)
        r = add_gpus(run, &words, fault);
    add_outputs(run, &words);
    if (r == 0)
        r = add_catalogue(run, false, &words, fault);
    return become_program(run, r, false, &words, fault);
}

/* Of a foreign log, and of a trace of colloc's own. */
int trace_info(const struct trace_run *run, struct fault *fault)
{
    struct word_list words = {0};
    const char *format = format_of(run);
    word_list_add(&words, "colloc_trace");
    word_list_add(&words, "info");
    add_log(run, format, &words);
    int r = format ? 0 : add_catalogue(run, true, &words, fault);
    return become_program(run, r, true, &words, fault);
}
