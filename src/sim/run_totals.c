/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All figures are of the time from the first submission to the last end. GPUs are idle before the
 * first submission, so that time's energy is subtracted; activity needs no correction.
 */
#include "sim/run_totals.h"

#include <math.h>

#include "base/clock.h"

static double seconds_of(int64_t us)
{
    return (double)us / (double)SECOND_US;
}

struct run_totals run_totals_start(const struct cluster *cluster)
{
    return (struct run_totals){.first_us = -1, .bound = bound_start(cluster)};
}

void run_totals_add_service(struct run_totals *totals, int64_t time_us)
{
    if (totals->first_us < 0)
        totals->first_us = time_us;
}

void run_totals_end_service(struct run_totals *totals, int64_t time_us)
{
    if (time_us > totals->last_us)
        totals->last_us = time_us;
}

void run_totals_add_submitted(
    struct run_totals *totals, int64_t time_us, const struct sim_task *type, double solo_s)
{
    run_totals_add_service(totals, time_us);
    bound_add(&totals->bound, seconds_of(time_us), type, solo_s);
}

void run_totals_add_ended(struct run_totals *totals, const struct task *ended)
{
    totals->wait_us += ended->waited_us;
    totals->exec_us += ended->executed_us;
    totals->jct_us += ended->ended_us - ended->submitted_us;
    totals->last_us = ended->ended_us;
}

void run_totals_calculate(
    const struct run_totals *totals, struct simulated_gpus *gpus, struct simulation_result *result)
{
    const struct cluster *cluster = gpus->cluster;
    double ended = fmax(1, (double)(result->completed + result->failed + result->stopped));
    double smact_s = 0, energy_j = 0;
    if (totals->last_us == 0)
        return;
    for (int i = 0; i < cluster->n_gpus; i++) {
        simulated_gpus_account(gpus, i, totals->last_us);
        smact_s += gpus->gpus[i].smact_s;
        energy_j += gpus->gpus[i].energy_j -
                    cluster->gpus[i]->idle_w * (double)totals->first_us / (double)SECOND_US;
    }
    result->total_s = seconds_of(totals->last_us - totals->first_us);
    result->avg_wait_s = (double)totals->wait_us / ended / (double)SECOND_US;
    result->avg_exec_s = (double)totals->exec_us / ended / (double)SECOND_US;
    result->avg_jct_s = (double)totals->jct_us / ended / (double)SECOND_US;
    result->energy_mj = energy_j / 1e6;
    result->mean_smact = result->total_s > 0 ? smact_s / cluster->n_gpus / result->total_s : 0;
    if (!result->arrays) /* what stopped trials left undone depends on the order of the reports */
        result->lower_bound_s = fmax(0, bound_end_s(&totals->bound) - seconds_of(totals->first_us));
}
