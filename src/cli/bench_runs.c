/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a group is and what was measured becomes FOLDER/mlflow/N-R.json, which a Python program
 * turns into requests to the server: colloc's programs in C speak no TLS.
 *
 *     {"experiment": "12", "runs": [{"name": "(3 0_A_MPS) resnet26", "params": {"workload": "3",
 *      "collocation": "mps", ...}}]}                                 before: prints an id a line
 *     {"looks": "out/looks/3-1.csv", "began_unix_s": 1.7e9, "runs": [{"id": "ab12", "status":
 *      "FINISHED", "ended_unix_s": 1.7e9, "metrics": [["bench/epoch_s", 12.5, 1.7e9, 2]]}]}  after
 */
#include "cli/bench_runs.h"

#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "base/units.h"
#include "bench/radt_status.h"
#include "cli/print.h"
#include "cli/python.h"

#define LIMIT_US (60 * SECOND_US) /* for the requests of a group; chosen */
enum { OUTPUT_MAX = 1 << 16, NAME_SIZE = 512 };

/* Runs the program. `file`: NULL for "check". `ret_output`: for the caller to free, or NULL. */
static int run_program(const char *action, const char *file, struct fault *fault, char **ret_output)
{
    const char *const words[] = {"colloc.tracking.bench_runs", action, file, NULL};
    const struct python_program program = {
        .words = words, .limit_us = LIMIT_US, .limit_bytes = OUTPUT_MAX};
    char *output = NULL;
    size_t size;
    int r = python_ask(&program, fault, &output, &size);
    if (ret_output && r == 0)
        *ret_output = output;
    else
        free(output);
    return r;
}

int bench_runs_check(struct fault *fault)
{
    return run_program("check", NULL, fault, NULL);
}

static int write_description(
    const char *folder, const struct bench_progress *progress, const json_t *object, char *path)
{
    snprintf(path, PATH_MAX, "%s/mlflow", folder);
    int r = file_make_folders(path, 0755);
    char *text = json_dumps(object, JSON_INDENT(1));
    snprintf(path, PATH_MAX, "%s/mlflow/%zu-%d.json", folder, progress->number, progress->repeat);
    if (r == 0)
        r = text ? file_write_atomic(path, text, strlen(text), 0644) : -ENOMEM;
    free(text);
    return r;
}

/* Sends the description. Takes over `object`. Prints what went wrong. */
static int send_description(const char *action, const char *folder,
    const struct bench_progress *progress, json_t *object, char **ret_output)
{
    char path[PATH_MAX];
    struct fault fault = {0};
    int r = object ? write_description(folder, progress, object, path) : -ENOMEM;
    json_decref(object);
    if (r < 0)
        fault_set(&fault, -r, "%s", strerror(-r));
    else
        r = run_program(action, path, &fault, ret_output);
    if (r < 0)
        print_error("MLflow: %s", fault.text);
    return r;
}

/* ---- before a group ---- */

/* Any bytes may be in a table, and JSON has UTF-8. */
static json_t *text_json(const char *text)
{
    char *copy = strdup(text);
    if (!copy)
        return NULL;
    text_mend(copy);
    json_t *json = json_string(copy);
    free(copy);
    return json;
}

static char *join_argv(char **argv)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    for (char **word = argv; out && *word; word++)
        fprintf(out, "%s%s", word == argv ? "" : " ", *word);
    if (out)
        fclose(out);
    return text;
}

/* radT's names for the workload and its tasks; others for colloc's form of the table. */
static void name_training(
    const struct bench_progress *progress, int i, char *workload, char *letter, size_t size)
{
    const struct bench_group *group = progress->group;
    const char *key = group->key ? strchr(group->key, '\n') : NULL;
    if (key)
        snprintf(workload, size, "%s", key + 1);
    else
        snprintf(workload, size, "%zu", progress->number);
    if (key)
        radt_letter(group, i, letter, size);
    else
        snprintf(letter, size, "%d", i);
}

static json_t *describe_training(const struct bench_progress *progress, int i)
{
    const struct bench_group *group = progress->group;
    const struct bench_task *task = &group->tasks[i];
    char workload[NAME_SIZE / 4], letter[NAME_SIZE / 4], name[NAME_SIZE], threads[16], repeat[16];
    char *command = join_argv(task->argv);
    name_training(progress, i, workload, letter, sizeof letter);
    snprintf(name, sizeof name, "(%s %s) %.200s", workload, letter, task->name);
    snprintf(threads, sizeof threads, "%d", task->threads);
    snprintf(repeat, sizeof repeat, "%d", progress->repeat);
    json_t *params = json_object(), *run = json_object();
    json_object_set_new(params, "workload", text_json(workload));
    json_object_set_new(params, "letter", text_json(letter));
    json_object_set_new(params, "group", text_json(group->name));
    json_object_set_new(params, "collocation", text_json(bench_sharing_name(task)));
    json_object_set_new(params, "devices", text_json(*task->gpus ? task->gpus : group->gpu));
    json_object_set_new(params, "command", text_json(command ? command : ""));
    json_object_set_new(params, "repeat", text_json(repeat));
    if (task->sharing == BENCH_MPS)
        json_object_set_new(params, "mps_threads", text_json(threads));
    if (task->profiler)
        json_object_set_new(
            params, "workload_listener", text_json(profiler_program(task->profiler)));
    if (task->environment)
        json_object_set_new(params, "conda_environment", text_json(task->environment));
    json_object_set_new(run, "name", text_json(name));
    json_object_set_new(run, "params", params);
    free(command);
    return run;
}

/* radT's Experiment is the number of MLflow's; without it the environment names one. */
static char *experiment_of(const struct bench_group *group)
{
    size_t size = group->key ? strcspn(group->key, "\n") : 0;
    bool is_number = size && strspn(group->key, "0123456789") == size;
    return is_number ? strndup(group->key, size) : NULL;
}

static void take_ids(const char *output, const struct bench_progress *progress)
{
    struct span rest = span_of(output), line;
    for (int i = 0; i < progress->group->n_tasks && span_next_line(&rest, &line); i++)
        span_copy(line, progress->run_ids[i], BENCH_RUN_ID_SIZE);
}

void bench_runs_create(const char *folder, const struct bench_progress *progress)
{
    json_t *runs = json_array(), *object = json_pack("{s:o}", "runs", runs);
    char *experiment = experiment_of(progress->group), *output;
    for (int i = 0; i < progress->group->n_tasks; i++)
        json_array_append_new(runs, describe_training(progress, i));
    if (experiment)
        json_object_set_new(object, "experiment", json_string(experiment));
    free(experiment);
    if (send_description("create", folder, progress, object, &output) < 0)
        return;
    take_ids(output, progress);
    free(output);
}

/* ---- after it ---- */

static void add_metric(json_t *metrics, const char *name, double value, double unix_s, int step)
{
    json_array_append_new(metrics, json_pack("[s,f,f,i]", name, value, unix_s, step));
}

static json_t *describe_metrics(const struct training_result *result)
{
    json_t *metrics = json_array();
    const struct training_report *report = &result->report;
    for (int i = 0; i < report->n_epochs; i++) {
        const struct training_epoch *epoch = &report->epochs[i];
        add_metric(metrics, "bench/epoch_s", epoch->seconds, epoch->to_unix_s, epoch->number);
        if (epoch->seconds > 0)
            add_metric(metrics, "bench/samples_per_s", epoch->samples / epoch->seconds,
                epoch->to_unix_s, epoch->number);
    }
    if (report->reserved_mib.valid)
        add_metric(
            metrics, "bench/reserved_mib", report->reserved_mib.value, result->ended_unix_s, 0);
    add_metric(metrics, "bench/exec_s", result->ended_unix_s - result->started_unix_s,
        result->ended_unix_s, 0);
    return metrics;
}

static json_t *describe_end(const struct bench_progress *progress, int i, bool killed)
{
    const struct training_result *result = progress->results ? &progress->results[i] : NULL;
    double now_s = (double)clock_wall_us() / (double)SECOND_US;
    bool has_ended = result && !killed && result->ended_unix_s > 0;
    const char *status = !has_ended ? "KILLED" : *result->failure ? "FAILED" : "FINISHED";
    json_t *run = json_pack("{s:s, s:s, s:f}", "id", progress->run_ids[i], "status", status,
        "ended_unix_s", has_ended ? result->ended_unix_s : now_s);
    if (has_ended)
        json_object_set_new(run, "metrics", describe_metrics(result));
    if (has_ended && *result->failure)
        json_object_set_new(run, "failure", text_json(result->failure));
    return run;
}

void bench_runs_end(const char *folder, const struct bench_progress *progress, bool killed)
{
    json_t *runs = json_array();
    char looks[PATH_MAX];
    bool has_results = progress->results && !killed;
    for (int i = 0; i < progress->group->n_tasks; i++)
        if (progress->run_ids && *progress->run_ids[i])
            json_array_append_new(runs, describe_end(progress, i, killed));
    if (json_array_size(runs) == 0) {
        json_decref(runs);
        return;
    }
    json_t *object = json_pack("{s:o}", "runs", runs);
    snprintf(
        looks, sizeof looks, "%s/looks/%zu-%d.csv", folder, progress->number, progress->repeat);
    if (has_results) {
        json_object_set_new(object, "looks", text_json(looks));
        json_object_set_new(object, "began_unix_s", json_real(progress->results[0].started_unix_s));
    }
    send_description("end", folder, progress, object, NULL);
}
