/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reports of `colloc trace`: jobs kept and skipped, the distribution of run times and GPUs;
 * text or JSON.
 */
#include "cli/trace_report.h"

#include <inttypes.h>
#include <jansson.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/units.h"
#include "cli/print.h"
#include "cli/table.h"
#include "trace/civil_time.h"

enum { WORDS_SIZE = 40 };

/* ---- the jobs that were kept ---- */

static void print_kept_json(const struct job_counts *counts, const struct job_list *kept)
{
    json_t *left_out = json_object();
    for (int i = 0; i < LEFT_OUT_REASONS; i++)
        if (counts->left_out[i])
            json_object_set_new(left_out, left_out_text(i), json_integer(counts->left_out[i]));
    json_t *object = json_pack("{sI,sI,so}", "read", (json_int_t)counts->read, "kept",
        (json_int_t)kept->n, "left_out", left_out);
    print_json(object);
    json_decref(object);
}

/* Jobs without a GPU to themselves look like jobs of whole GPUs in the table of sizes. */
static void print_parts(const struct job_list *kept)
{
    size_t mig = 0, others = 0;
    for (size_t i = 0; i < kept->n; i++) {
        mig += kept->jobs[i].is_mig;
        others += !kept->jobs[i].is_mig && kept->jobs[i].part > 0;
    }
    if (mig)
        print_error("  %zu had instances of MIG: each is its compute slices of 7, not a GPU", mig);
    if (others)
        print_error("  %zu requested parts of GPUs that others may share", others);
}

void report_kept(
    const char *name, const struct job_counts *counts, const struct job_list *kept, bool json)
{
    if (json) {
        print_kept_json(counts, kept);
        return;
    }
    print_error("%s: %" PRId64 " jobs read, %zu kept", name, counts->read, kept->n);
    for (int i = 0; i < LEFT_OUT_REASONS; i++)
        if (counts->left_out[i])
            print_error("  skipped: %" PRId64 " %s", counts->left_out[i], left_out_text(i));
    print_parts(kept);
}

/* ---- statistics ---- */

static const char *elapsed_text(double seconds, char *buffer)
{
    return format_elapsed((int64_t)(seconds * (double)SECOND_US), buffer, WORDS_SIZE);
}

/* Returns the average number of busy GPUs, if each job had its GPUs alone and the trace ended with
 * the last submission. */
static double mean_busy(const struct job_statistics *statistics)
{
    return statistics->span_s > 0 ? statistics->gpu_s / statistics->span_s : 0;
}

static double share_of(double part, double whole)
{
    return whole > 0 ? part / whole : 0;
}

/* Jobs by their number of GPUs: few large jobs often have most of the GPU time. */
static void print_sizes(const struct job_statistics *statistics)
{
    static const struct table_column columns[] = {{"GPUS", TABLE_RIGHT}, {"JOBS", TABLE_RIGHT},
        {"JOBS", TABLE_RIGHT}, {"GPU TIME", TABLE_RIGHT}};
    struct table *table = table_create(columns, ARRAY_SIZE(columns));
    for (size_t i = 0; i < statistics->n_sizes; i++) {
        const struct size_share *size = &statistics->sizes[i];
        table_row(table);
        table_cell(table, NULL, "%d", size->gpus);
        table_cell(table, NULL, "%zu", size->jobs);
        table_cell(
            table, NULL, "%.1f %%", 100 * share_of((double)size->jobs, (double)statistics->jobs));
        table_cell(table, NULL, "%.1f %%", 100 * share_of(size->gpu_s, statistics->gpu_s));
    }
    table_print(table, "");
    table_destroy(table);
}

/* Quantiles of the run times, since their mean says little: most jobs are short, and a few take
 * days. */
static void print_statistics(
    const struct job_list *list, const struct job_statistics *statistics, bool dated)
{
    char words[WORDS_SIZE], more[WORDS_SIZE];
    printf("Jobs      %zu in %s\n", statistics->jobs, elapsed_text(statistics->span_s, words));
    if (dated)
        printf("From      %s to %s\n",
            civil_time_format(list->jobs[0].submit_us, words, sizeof words),
            civil_time_format(list->jobs[list->n - 1].submit_us, more, sizeof more));
    printf("Length    mean %s, %.1f %% under ten minutes\n",
        elapsed_text(statistics->mean_length_s, words), 100 * statistics->under_ten_minutes);
    for (int q = 0; q < LENGTH_QUANTILES; q++)
        printf("%9.0f %% up to %s\n", 100 * length_quantiles[q],
            elapsed_text(statistics->quantile_s[q], words));
    printf("GPUs      %.0f hours in use; %.1f busy on average\n\n", statistics->gpu_s / 3600,
        mean_busy(statistics));
    print_sizes(statistics);
}

static json_t *sizes_json(const struct job_statistics *statistics)
{
    json_t *array = json_array();
    for (size_t i = 0; i < statistics->n_sizes; i++) {
        const struct size_share *size = &statistics->sizes[i];
        json_array_append_new(
            array, json_pack("{si,sI,sf,sf}", "gpus", size->gpus, "jobs", (json_int_t)size->jobs,
                       "share", share_of((double)size->jobs, (double)statistics->jobs),
                       "gpu_time_share", share_of(size->gpu_s, statistics->gpu_s)));
    }
    return array;
}

static void print_statistics_json(const struct job_statistics *statistics)
{
    json_t *lengths = json_pack("{sf}", "mean", statistics->mean_length_s);
    for (int q = 0; q < LENGTH_QUANTILES; q++) {
        char name[8];
        snprintf(name, sizeof name, "p%.0f", 100 * length_quantiles[q]);
        json_object_set_new(lengths, name, json_real(statistics->quantile_s[q]));
    }
    json_t *object = json_pack("{sI,sf,so,sf,sf,sf,so}", "jobs", (json_int_t)statistics->jobs,
        "span_s", statistics->span_s, "length_s", lengths, "under_ten_minutes",
        statistics->under_ten_minutes, "gpu_hours", statistics->gpu_s / 3600, "mean_gpus_busy",
        mean_busy(statistics), "sizes", sizes_json(statistics));
    print_json(object);
    json_decref(object);
}

void report_statistics(
    const struct job_list *list, const struct job_statistics *statistics, bool dated, bool json)
{
    if (json)
        print_statistics_json(statistics);
    else
        print_statistics(list, statistics, dated);
}
