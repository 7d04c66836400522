/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `colloc memnet eval`: the error of trained networks on measured runs, per bin, in bytes and per
 * family.
 *
 * A network answers with probabilities of bins, which are ranges of memory. So two things are
 * measured: how often it names the right bin, and how far its estimate is from the measured bytes,
 * above and below. An estimate below is the worse one: such a task runs out of memory. The runs to
 * judge by are a column of the data set (src/memnet/dataset.h), and are not trained on.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/file.h"
#include "base/units.h"
#include "cli/memnet_run.h"
#include "cli/print.h"
#include "cli/python.h"
#include "cli/table.h"
#include "estimator/gpumemnet/gpumemnet_built_in.h"
#include "memnet/net_metrics.h"
#include "memnet/net_plan.h"

enum { WEIGHTS_MAX = 16 << 20, GROUPS_MAX = 1024 };

/* The metrics of one network and group, in the order of the report. */
struct counted {
    const struct net_plan *plan;
    enum net_metrics_group group;
    const char *family; /* NULL: all families */
    struct net_metrics metrics;
};

struct evaluation {
    struct memnet_run *run;
    struct counted counted[GROUPS_MAX];
    size_t n;
    FILE *answers; /* NULL: without --output */
};

/* ---- the networks ---- */

/* Refuses weights of another network, which has other bins. */
static int check_net(
    const struct net_plan *plan, const struct gpumemnet_net *net, struct fault *fault)
{
    if (net->family == plan->family && net->method == plan->method && net->bin_mib == plan->bin_mib)
        return 0;
    return fault_set(fault, EINVAL,
        "weights: of the network %s-%s with bins of %" PRId64 " MiB, not of %s",
        gpumemnet_family_name(net->family), gpumemnet_method_name(net->method), net->bin_mib,
        plan->name);
}

/* From a folder that `memnet train` wrote, or the networks that are built in. */
static int read_net(const struct memnet_run *run, const struct net_plan *plan, struct fault *fault,
    struct gpumemnet_net *ret_net)
{
    const struct option_value *folder = &run->invocation->values[MEMNET_WEIGHTS];
    char path[PATH_MAX], *text;
    size_t size;
    if (!folder->set) {
        const struct gpumemnet_built_in *built_in = gpumemnet_built_in_find(plan->name);
        return gpumemnet_net_parse(built_in->text, built_in->size, fault, ret_net);
    }
    snprintf(path, sizeof path, "%s/%s.txt", folder->text, plan->name);
    int r = file_read(path, WEIGHTS_MAX, fault, &text, &size);
    if (r < 0)
        return r;
    r = gpumemnet_net_parse(text, size, fault, ret_net);
    free(text);
    if (r == 0 && (r = check_net(plan, ret_net, fault)) < 0)
        gpumemnet_net_fini(ret_net);
    return r < 0 ? fault_prefix(fault, r, "%s", path) : 0;
}

/* ---- metrics ---- */

static int count_group(struct evaluation *evaluation, const struct net_plan *plan,
    const struct gpumemnet_net *net, const struct net_answer *answers, size_t n,
    enum net_metrics_group group, const char *family)
{
    struct counted *row = &evaluation->counted[evaluation->n];
    if (evaluation->n == GROUPS_MAX)
        return 0;
    *row = (struct counted){.plan = plan, .group = group, .family = family};
    int r = net_metrics_compute(net, answers, n, group, family, &row->metrics);
    evaluation->n += r == 0 && row->metrics.n > 0;
    return r;
}

/* Is an answer before this one of the same family and kind? */
static bool is_seen(const struct net_answer *answers, size_t i)
{
    for (size_t before = 0; before < i; before++)
        if (answers[before].row->real == answers[i].row->real &&
            strcmp(answers[before].row->family, answers[i].row->family) == 0)
            return true;
    return false;
}

static int count_all(struct evaluation *evaluation, const struct net_plan *plan,
    const struct gpumemnet_net *net, const struct net_answer *answers, size_t n)
{
    int r = 0;
    for (int group = 0; r == 0 && group < NET_METRICS_GROUPS; group++)
        r = count_group(evaluation, plan, net, answers, n, (enum net_metrics_group)group, NULL);
    for (size_t i = 0; r == 0 && i < n; i++)
        if (!is_seen(answers, i))
            r = count_group(evaluation, plan, net, answers, n,
                answers[i].row->real ? NET_METRICS_REAL : NET_METRICS_TEST, answers[i].row->family);
    return r;
}

/* ---- files for the figures ---- */

static const char *part_of(const struct task_row *row)
{
    static const char *const names[PARTS] = {"training", "validation", "test"};
    return row->real ? "real" : names[row->part];
}

static void write_answers(
    FILE *out, const struct net_plan *plan, const struct net_answer *answers, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct task_row *row = answers[i].row;
        fprintf(out, "%s,%s,%s,%s,%s,%" PRId64 ",%s,%s,%.1f,%d,%d,%.1f,%.1f,%.1f,%.1f\n",
            plan->name, row->id, part_of(row), row->family, row->network, row->batch,
            optimizer_name(row->optimizer), precision_name(row->precision),
            row->bytes / (double)MIB, answers[i].class, answers[i].answered,
            answers[i].edge_bytes / (double)MIB, answers[i].p50_bytes / (double)MIB,
            answers[i].p90_bytes / (double)MIB, answers[i].p99_bytes / (double)MIB);
    }
}

/* One row for each training task, with all inputs of the networks. */
static void write_features(FILE *out, const struct dataset *dataset)
{
    fputs(
        "id,set,real,family,network,batch,optimizer,precision,measured_mib,depth,linears,convs,norms,dropouts,"
        "log_batch,log_parameters,log_activations,log_batch_activations,function_sin,function_cos,states,half\n",
        out);
    for (size_t i = 0; i < dataset->n; i++) {
        const struct task_row *row = &dataset->rows[i];
        fprintf(out, "%s,%s,%d,%s,%s,%" PRId64 ",%s,%s,%.1f", row->id,
            gpumemnet_family_name(row->features.family), row->real, row->family, row->network,
            row->batch, optimizer_name(row->optimizer), precision_name(row->precision),
            row->bytes / (double)MIB);
        for (int v = 0; v < GPUMEMNET_VALUES; v++)
            fprintf(out, ",%.7g", (double)row->features.value[v]);
        fputc('\n', out);
    }
}

static int open_file(const char *folder, const char *name, struct fault *fault, FILE **ret_file)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    *ret_file = fopen(path, "we");
    return *ret_file ? 0 : fault_set(fault, errno, "%s: %s", path, strerror(errno));
}

static int close_file(FILE *file, const char *folder, int r, struct fault *fault)
{
    bool failed = ferror(file);
    failed |= fclose(file) != 0;
    return r == 0 && failed ? fault_set(fault, EIO, "%s: cannot write to this folder", folder) : r;
}

/* features.csv is complete at once; answers.csv gets the rows of each network as it is
 * evaluated. */
static int begin_files(struct evaluation *evaluation, const char *folder, struct fault *fault)
{
    FILE *features;
    int r = file_make_folders(folder, 0755);
    if (r < 0)
        return fault_set(fault, -r, "%s: %s", folder, strerror(-r));
    r = open_file(folder, "features.csv", fault, &features);
    if (r < 0)
        return r;
    write_features(features, &evaluation->run->dataset);
    r = close_file(features, folder, 0, fault);
    if (r == 0)
        r = open_file(folder, "answers.csv", fault, &evaluation->answers);
    if (r == 0)
        fputs(
            "net,id,part,family,network,batch,optimizer,precision,measured_mib,class,answered,edge_mib,p50_mib,"
            "p90_mib,p99_mib\n",
            evaluation->answers);
    return r;
}

/* ---- the report ---- */

/* The published figures are beside ours only where both mean the same: all test rows of a
 * network. */
static json_t *counted_json(const struct counted *row)
{
    const struct net_metrics *m = &row->metrics;
    const struct net_plan *plan = row->plan;
    json_t *object = json_pack("{ss,ss,so,sI}", "network", plan->name, "group",
        net_metrics_group_name(row->group), "family",
        row->family ? json_string(row->family) : json_null(), "rows", (json_int_t)m->n);
    json_object_update_new(
        object, json_pack("{sf,sf,sf,sf,sf}", "accuracy", m->accuracy, "precision", m->precision,
                    "recall", m->recall, "f1", m->f1, "commonest_class", m->commonest));
    json_object_update_new(
        object, json_pack("{sf,sf,sf,sf,sf,sf}", "error_median", m->error_median, "error_p95",
                    m->error_p95, "error_most", m->error_most, "under", m->under, "over_mean",
                    m->over_mean, "p50_error_median", m->p50_error_median));
    json_object_update_new(
        object, json_pack("{sf,sf,sf}", "covered_p50", m->covered_p50, "covered_p90",
                    m->covered_p90, "covered_p99", m->covered_p99));
    if (row->group == NET_METRICS_TEST && !row->family)
        json_object_set_new(object, "published",
            json_pack("{sf,sf,sf,sf}", "accuracy", plan->accuracy, "precision", plan->precision,
                "recall", plan->recall, "f1", plan->f1));
    return object;
}

static void tell_json(const struct evaluation *evaluation)
{
    json_t *rows = json_array();
    for (size_t i = 0; i < evaluation->n; i++)
        json_array_append_new(rows, counted_json(&evaluation->counted[i]));
    json_t *root = json_pack("{so}", "memnet", rows);
    print_json(root);
    json_decref(root);
}

static void cell_or_published(
    struct table *table, const struct counted *row, double value, double published)
{
    if (row->group == NET_METRICS_TEST)
        table_cell(table, NULL, "%.4f (%.4f)", value, published);
    else
        table_cell(table, NULL, "%.4f", value);
}

static void begin_row(struct table *table, const struct counted *row)
{
    table_row(table);
    table_cell(table, NULL, "%s", row->plan->name);
    table_cell(table, NULL, "%s%s", row->family && row->group == NET_METRICS_REAL ? "real: " : "",
        row->family ? row->family : net_metrics_group_name(row->group));
    table_cell(table, NULL, "%zu", row->metrics.n);
}

/* COMMONEST CLASS is the accuracy of always answering the class that most rows have: a network that
 * is not above it has learned nothing. */
static void print_classes(const struct evaluation *evaluation)
{
    static const struct table_column columns[] = {{"NETWORK", 0}, {"ROWS OF", 0},
        {"N", TABLE_RIGHT}, {"ACCURACY", TABLE_RIGHT}, {"PRECISION", TABLE_RIGHT},
        {"RECALL", TABLE_RIGHT}, {"F1", TABLE_RIGHT}, {"COMMONEST CLASS", TABLE_RIGHT}};
    struct table *table = table_create(columns, ARRAY_SIZE(columns));
    for (size_t i = 0; i < evaluation->n; i++) {
        const struct counted *row = &evaluation->counted[i];
        if (row->family)
            continue;
        begin_row(table, row);
        cell_or_published(table, row, row->metrics.accuracy, row->plan->accuracy);
        cell_or_published(table, row, row->metrics.precision, row->plan->precision);
        cell_or_published(table, row, row->metrics.recall, row->plan->recall);
        cell_or_published(table, row, row->metrics.f1, row->plan->f1);
        table_cell(table, NULL, "%.4f", row->metrics.commonest);
    }
    table_print(table, "No rows.");
    table_destroy(table);
}

/* `families`: a row for each family instead of one for all. */
static void print_bytes(const struct evaluation *evaluation, bool families)
{
    static const struct table_column columns[] = {{"NETWORK", 0}, {"ROWS OF", 0},
        {"N", TABLE_RIGHT}, {"MEDIAN", TABLE_RIGHT}, {"P95", TABLE_RIGHT}, {"MOST", TABLE_RIGHT},
        {"UNDER", TABLE_RIGHT}, {"OVER", TABLE_RIGHT}, {"P50", TABLE_RIGHT}, {"<=P50", TABLE_RIGHT},
        {"<=P90", TABLE_RIGHT}, {"<=P99", TABLE_RIGHT}, {"IN BIN", TABLE_RIGHT}};
    struct table *table = table_create(columns, ARRAY_SIZE(columns));
    for (size_t i = 0; i < evaluation->n; i++) {
        const struct counted *row = &evaluation->counted[i];
        const struct net_metrics *m = &row->metrics;
        const double cells[] = {m->error_median, m->error_p95, m->error_most, m->under,
            m->over_mean, m->p50_error_median, m->covered_p50, m->covered_p90, m->covered_p99,
            m->accuracy};
        if ((row->family != NULL) != families)
            continue;
        begin_row(table, row);
        for (size_t c = 0; c < ARRAY_SIZE(cells); c++)
            table_cell(table, NULL, "%.1f %%", 100 * cells[c]);
    }
    table_print(table, "No rows.");
    table_destroy(table);
}

static void print_results(const struct evaluation *evaluation)
{
    puts("Classes; in parentheses the thesis's results on its own data (tables 5.3, "
         "5.5, 5.7):\n");
    print_classes(evaluation);
    puts("\nMemory: error of the bin's upper edge (median, 95th percentile, maximum), "
         "answers\nthat were too low, mean surplus of the reserved memory, median error "
         "of p50,\nhow many runs used at most each quantile, and answers in the right "
         "bin:\n");
    print_bytes(evaluation, false);
    puts("\nThe same by family:\n");
    print_bytes(evaluation, true);
}

/* ---- the action ---- */

/* A network without a file is skipped; all others are evaluated. */
static int evaluate_net(
    struct evaluation *evaluation, const struct net_plan *plan, struct fault *fault)
{
    struct gpumemnet_net net;
    struct net_answer *answers;
    size_t n;
    int r = read_net(evaluation->run, plan, fault, &net);
    if (r == -ENOENT) { /* a training without rows of that kind writes no file */
        print_error("skipped: %s", fault->text);
        return 0;
    }
    if (r < 0)
        return r;
    r = net_answers_compute(&net, &evaluation->run->dataset, &answers, &n);
    if (r == 0) {
        r = count_all(evaluation, plan, &net, answers, n);
        if (evaluation->answers)
            write_answers(evaluation->answers, plan, answers, n);
        free(answers);
    }
    gpumemnet_net_fini(&net);
    return r < 0 ? fault_set(fault, ENOMEM, "out of memory") : 0;
}

static int evaluate_all(struct evaluation *evaluation, struct fault *fault)
{
    const struct net_plan *plan;
    const char *only = evaluation->run->invocation->values[MEMNET_ONLY].text;
    int r = 0;
    for (size_t i = 0; r == 0 && (plan = net_plan_at(i)) != NULL; i++)
        if (!only || strstr(plan->name, only))
            r = evaluate_net(evaluation, plan, fault);
    if (r == 0 && evaluation->n == 0)
        return fault_set(fault, ENOENT,
            "memnet: nothing to evaluate: no network matches --only, or no row of "
            "DATA is of its kind");
    return r;
}

int memnet_run_eval(struct memnet_run *run, struct fault *fault)
{
    const char *folder = run->invocation->values[MEMNET_OUTPUT].text;
    struct evaluation *evaluation = calloc(1, sizeof *evaluation);
    if (!evaluation)
        return fault_set(fault, ENOMEM, "out of memory");
    evaluation->run = run;
    int r = folder ? begin_files(evaluation, folder, fault) : 0;
    if (r == 0)
        r = evaluate_all(evaluation, fault);
    if (evaluation->answers)
        r = close_file(evaluation->answers, folder, r, fault);
    if (r == 0 && run->invocation->common[COMMON_JSON].number)
        tell_json(evaluation);
    else if (r == 0)
        print_results(evaluation);
    if (r == 0 && folder)
        python_report(run->invocation->values[MEMNET_PYTHON].text, "colloc_report.memnet", folder);
    free(evaluation);
    return r;
}
