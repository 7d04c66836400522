/* SPDX-License-Identifier: Apache-2.0 */
/* A line or a group of keys for each subject of a simulation. */
#include "cli/simulation_report.h"

#include <inttypes.h>
#include <stdio.h>

#include "api/json_value.h"
#include "base/clock.h"
#include "base/units.h"
#include "cli/print.h"
#include "cli/service_rows.h"

/* Does the trace name users of tasks that ended? */
static bool has_users(const struct user_totals *users)
{
    for (int i = 0; i < users->n; i++)
        if (users->list[i].tasks && *users->list[i].name)
            return true;
    return false;
}

/* Only where the trace has users. SLOWDOWN is the completion time over the execution time alone,
 * FAIRNESS is finish-time fairness (docs/fair-share.md). */
static void print_users(const struct user_totals *users)
{
    if (!has_users(users))
        return;
    printf("\nUSER               TASKS       WAIT  SLOWDOWN  FAIRNESS\n");
    for (int i = 0; i < users->n; i++) {
        const struct user_total *user = &users->list[i];
        char wait[32];
        if (!user->tasks)
            continue;
        double n = (double)user->tasks;
        printf("%-18.18s %5" PRId64 " %10s %9.2f ", *user->name ? user->name : "-", user->tasks,
            format_elapsed((int64_t)(user->wait_s / n * 1e6), wait, sizeof wait),
            user->stretch / n);
        struct reading fairness = user_total_fairness(user);
        if (fairness.valid)
            printf("%9.2f\n", fairness.value);
        else
            printf("%9s\n", "-");
    }
}

static json_t *users_json(const struct user_totals *users)
{
    json_t *list = json_array();
    for (int i = 0; i < users->n; i++) {
        const struct user_total *user = &users->list[i];
        double n = (double)user->tasks;
        if (n == 0)
            continue;
        json_array_append_new(
            list, json_pack("{s:s, s:I, s:f, s:f, s:f, s:o, s:o}", "user", user->name, "tasks",
                      (json_int_t)user->tasks, "avg_wait_s", user->wait_s / n, "avg_jct_s",
                      user->jct_s / n, "slowdown", user->stretch / n, "avg_wait_alone_s",
                      json_reading(user->alone_wait_s, n), "finish_time_fairness",
                      json_reading(user_total_fairness(user), 1)));
    }
    return list;
}

/* Services alone have no lower bound. */
static void print_total_time(const struct simulation_result *result)
{
    char total[32], bound[32];
    printf(
        "Total time    %s", format_elapsed((int64_t)(result->total_s * 1e6), total, sizeof total));
    if (result->lower_bound_s > 0)
        printf(", %.2f times the lower bound (%s)", result->total_s / result->lower_bound_s,
            format_elapsed((int64_t)(result->lower_bound_s * 1e6), bound, sizeof bound));
    printf("\n");
}

static void print_preemption(const struct simulation_result *result)
{
    char waited[32];
    printf("Preemption    %" PRId64 " suspensions, %" PRId64 " moves", result->suspensions,
        result->moves);
    if (result->max_stretch.valid)
        printf(", completion at most %.2f times that of FIFO", result->max_stretch.value);
    printf("\n");
    if (result->memory_waits)
        printf("Memory        %" PRId64 " allocations waited, %s in all\n", result->memory_waits,
            format_elapsed((int64_t)(result->memory_wait_s * 1e6), waited, sizeof waited));
}

/* The GPU time is that alone, as in the catalogue. */
static void print_early_stop(const struct simulation_result *result)
{
    char saved[32];
    printf("Early stop    %" PRId64
           " trials stopped, which had %s of GPU time left; the best trial "
           "of %" PRId64 " of %" PRId64 " arrays completed\n",
        result->stopped, format_elapsed((int64_t)(result->saved_gpu_s * 1e6), saved, sizeof saved),
        result->best_kept, result->arrays);
}

static void print_promises(
    const struct simulation *simulation, const struct simulation_result *result)
{
    const struct reading *first = &result->error_first_hour, *later = &result->error_later;
    if (simulation->promise > 0)
        printf("Promises      %" PRId64 " of %" PRId64 " kept; the longest took %.2f times as long "
               "as alone\n",
            result->kept, result->promised, result->longest_promised);
    if (simulation->promise > 0 && simulation->speeds_unknown > 0)
        printf("Speeds alone  of %" PRId64 " of %" PRId64 " promised tasks known; %" PRId64
               " pauses of others for probes, of a task at most %.2f %% of its time\n",
            result->measured, result->promised, result->probes, 100 * result->probes_cost);
    if (first->valid)
        printf("Predictions   of slowdowns are off by %.1f %% in the first hour (median)",
            100 * first->value);
    if (first->valid && later->valid)
        printf(", then by %.1f %%", 100 * later->value);
    if (first->valid)
        printf("; learned factors of delay: streams %.2f, MPS %.2f\n",
            result->learned[SHARING_STREAMS].factor, result->learned[SHARING_MPS].factor);
}

void simulation_report_print(const struct simulation_report *report)
{
    const struct simulation *simulation = report->simulation;
    const struct simulation_result *result = report->result;
    char wait[32], exec[32], jct[32];
    print_total_time(result);
    printf("Average       waiting %s, execution %s, completion %s\n",
        format_elapsed((int64_t)(result->avg_wait_s * 1e6), wait, sizeof wait),
        format_elapsed((int64_t)(result->avg_exec_s * 1e6), exec, sizeof exec),
        format_elapsed((int64_t)(result->avg_jct_s * 1e6), jct, sizeof jct));
    printf("Tasks         %" PRId64 " completed, %" PRId64 " failed, %" PRId64 " left out, %" PRId64
           " OOM crashes\n",
        result->completed, result->failed, result->left_out, result->oom);
    if (simulation->stop)
        print_early_stop(result);
    if (simulation->settings.can_suspend)
        print_preemption(result);
    print_promises(simulation, result);
    printf(
        "GPUs          %.3f MJ, mean SMACT %.1f %%\n", result->energy_mj, 100 * result->mean_smact);
    if (simulation->mixes)
        simulating_mixes_print(report->mixes);
    print_users(report->users);
    service_rows_print(simulation->services, result->suspensions);
}

void simulation_report_print_json(const struct simulation_report *report)
{
    const struct simulation *simulation = report->simulation;
    const struct simulation_result *result = report->result;
    json_t *object = json_pack("{s:f,s:f,s:f,s:f,s:I,s:I,s:f,s:f,s:f,s:I,s:I}", "total_s",
        result->total_s, "avg_wait_s", result->avg_wait_s, "avg_exec_s", result->avg_exec_s,
        "avg_jct_s", result->avg_jct_s, "oom", (json_int_t)result->oom, "completed",
        (json_int_t)result->completed, "energy_mj", result->energy_mj, "mean_smact",
        result->mean_smact, "lower_bound_s", result->lower_bound_s, "failed",
        (json_int_t)result->failed, "left_out", (json_int_t)result->left_out);
    if (simulation->settings.can_suspend) {
        json_object_set_new(object, "suspensions", json_integer(result->suspensions));
        json_object_set_new(object, "moves", json_integer(result->moves));
        json_object_set_new(object, "max_stretch", json_reading(result->max_stretch, 1));
        json_object_set_new(object, "memory_waits", json_integer(result->memory_waits));
        json_object_set_new(object, "memory_wait_s", json_real(result->memory_wait_s));
    }
    if (simulation->stop) {
        json_object_set_new(object, "stopped", json_integer(result->stopped));
        json_object_set_new(object, "saved_gpu_s", json_real(result->saved_gpu_s));
        json_object_set_new(object, "arrays", json_integer(result->arrays));
        json_object_set_new(object, "best_kept", json_integer(result->best_kept));
        if (result->arrays)
            json_object_set_new(object, "lower_bound_s", json_null());
    }
    if (simulation->promise > 0) {
        json_object_set_new(object, "promised", json_integer(result->promised));
        json_object_set_new(object, "promises_kept", json_integer(result->kept));
        json_object_set_new(object, "longest_promised", json_real(result->longest_promised));
        json_object_set_new(object, "speeds_known", json_integer(result->measured));
        json_object_set_new(object, "probes", json_integer(result->probes));
        json_object_set_new(
            object, "probes_s", json_real((double)result->probed_us / (double)SECOND_US));
        json_object_set_new(object, "probes_cost", json_real(result->probes_cost));
    }
    if (result->error_first_hour.valid) {
        json_object_set_new(
            object, "prediction_error_first_hour", json_reading(result->error_first_hour, 1));
        json_object_set_new(object, "prediction_error_later", json_reading(result->error_later, 1));
        json_object_set_new(
            object, "delay_factor_streams", json_real(result->learned[SHARING_STREAMS].factor));
        json_object_set_new(
            object, "delay_factor_mps", json_real(result->learned[SHARING_MPS].factor));
    }
    if (simulation->mixes)
        json_object_set_new(object, "mixes", simulating_mixes_json(report->mixes));
    if (has_users(report->users))
        json_object_set_new(object, "users", users_json(report->users));
    if (simulation->services->n) {
        json_object_set_new(object, "suspensions", json_integer(result->suspensions));
        json_object_set_new(object, "services", service_rows_json(simulation->services));
    }
    print_json(object);
    json_decref(object);
}
