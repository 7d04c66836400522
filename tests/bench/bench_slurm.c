/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The controller for Slurm over a large cluster in memory: 1,250 nodes of four GPUs and 50,000
 * jobs, of which 10,000 run. Each update sees 25 jobs end and 25 new ones, and pins others; a
 * second row has no change at all. What is not counted: Slurm's own time to list the jobs.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/units.h"
#include "bench.h"
#include "policy/forecast.h"
#include "policy/policies.h"
#include "slurm/slurm_controller.h"

enum {
    NODES = 1250,
    GPUS = 4 * NODES,
    JOBS = 50000,
    UPDATES = 60,
    ENDING = 25,
    MOST = JOBS + UPDATES * ENDING
};

static struct slurm_node nodes[NODES];
static char names[NODES][16];
static struct slurm_job jobs[MOST];
static char gres[MOST][32], required[MOST][16], notes[MOST][SLURM_TEXT_MAX];
static size_t n_jobs, first_running;
static int64_t now_us = 1000 * SECOND_US;

static void add_job(void)
{
    size_t i = n_jobs++;
    jobs[i] = (struct slurm_job){.id = (uint32_t)i + 1,
        .uid = 1000 + (uid_t)(i % 50),
        .state = SLURM_STATE_PENDING,
        .may_requeue = true,
        .submit_s = 500,
        .begin_s = 500,
        .priority = 1000 + (uint32_t)(i * 2654435761u % 5000),
        .cpus = 4,
        .nodes = 1,
        .memory_bytes = 1000 * MIB,
        .partition = "intake",
        .gres = gres[i],
        .admin_comment = notes[i]};
}

static void make_cluster(void)
{
    for (int i = 0; i < NODES; i++) {
        snprintf(names[i], sizeof names[i], "gpu%04d", i);
        nodes[i] = (struct slurm_node){.name = names[i],
            .cpus = 64,
            .memory_bytes = 256 * GIB,
            .gres = "gpu:i0:1,gpu:i1:1,gpu:i2:1,gpu:i3:1,shard:i0:80,shard:i1:80,shard:i2:80,"
                    "shard:i3:80"};
    }
    while (n_jobs < JOBS)
        add_job();
    for (size_t i = 0; i < 2 * GPUS; i++) { /* two jobs of 35 GiB run on each GPU */
        struct slurm_job *job = &jobs[i];
        snprintf(gres[i], sizeof gres[i], "gres:shard:i%d:35", (int)(i % 4));
        snprintf(notes[i], sizeof notes[i],
            "colloc want=1 attempt=1 restart=0 ooms=0 state=pinned node=%s gpus=%d shards=35 smact=30",
            names[i % GPUS / 4], (int)(i % 4));
        job->partition = "run";
        job->required_nodes = job->node_list = names[i % GPUS / 4];
        job->state = SLURM_STATE_RUNNING;
    }
}

/* Slurm starts what is pinned at once. */
static void make_change(const struct slurm_change *change)
{
    struct slurm_job *job = &jobs[change->job - 1];
    if (change->kind != SLURM_PIN)
        return;
    snprintf(gres[change->job - 1], sizeof gres[0], "%.31s", change->gres);
    snprintf(required[change->job - 1], sizeof required[0], "%.15s", change->nodes);
    snprintf(notes[change->job - 1], sizeof notes[0], "%.255s", change->note);
    job->partition = "run";
    job->required_nodes = job->node_list = required[change->job - 1];
    job->state = SLURM_STATE_RUNNING;
}

static void answer_scripts(struct slurm_controller *controller)
{
    struct slurm_job_key key;
    while (slurm_controller_wanted_script(controller, &key)) {
        struct task_request request = {.need = {NEED_DECLARED, (int64_t)(10 + key.id % 30) * GIB}};
        request.expect.smact = reading_of(0.1 + key.id % 5 * 0.1);
        request.expect.time_us = reading_of((600 + key.id % 3600) * 1e6);
        slurm_controller_set_request(controller, &key, &request, NULL);
    }
}

/* Returns how long the controller took, in ms; `ret_n`: the changes that it asked for. */
static double update_once(struct slurm_controller *controller, size_t *ret_n)
{
    struct slurm_change *changes;
    const struct slurm_snapshot snapshot = {.jobs = jobs,
        .n_jobs = n_jobs,
        .nodes = nodes,
        .n_nodes = NODES,
        .counts_memory = true,
        .can_change_gres = true};
    now_us += SECOND_US;
    double from_us = bench_cpu_us();
    if (slurm_controller_update(
            controller, &snapshot, now_us, now_us / SECOND_US, &changes, ret_n) < 0)
        abort();
    double took_ms = (bench_cpu_us() - from_us) / 1000;
    for (size_t i = 0; i < *ret_n; i++) {
        make_change(&changes[i]);
        slurm_controller_changed(controller, &changes[i], "", now_us);
    }
    answer_scripts(controller);
    return took_ms;
}

static void end_some(void)
{
    for (int n = 0; n < ENDING && first_running < n_jobs; first_running++) {
        if (jobs[first_running].state != SLURM_STATE_RUNNING)
            continue;
        jobs[first_running].state = SLURM_STATE_COMPLETED;
        n++;
        add_job();
    }
}

/* What the agents of all nodes report in a second: the two jobs of each GPU use what they require,
 * and a little more or less than before. Returns ms of processor time. */
static double report_once(struct slurm_controller *controller, unsigned round)
{
    double from_us = bench_cpu_us();
    for (int i = 0; i < NODES; i++) {
        struct slurm_gpu_reading readings[4];
        struct slurm_gpu_process processes[4][2];
        for (int k = 0; k < 4; k++) {
            double change = (double)((round + (unsigned)(i + k)) % 7) * (double)MIB;
            for (int j = 0; j < 2; j++)
                processes[k][j] = (struct slurm_gpu_process){
                    .job = (uint32_t)(4 * i + k + j * GPUS + 1),
                    .mem_used_bytes = reading_of(30.0 * (double)GIB + change)};
            readings[k] = (struct slurm_gpu_reading){.index = k,
                .mem_total_bytes = reading_of(80.0 * (double)GIB),
                .mem_used_bytes = reading_of(60.0 * (double)GIB + 2 * change),
                .smact = reading_of(0.3 + 0.01 * ((round + (unsigned)i) % 5)),
                .processes_known = true,
                .processes = processes[k],
                .n_processes = 2};
        }
        if (slurm_controller_report(controller, names[i], readings, 4, now_us) < 0)
            abort();
    }
    return (bench_cpu_us() - from_us) / 1000;
}

/* What `colloc queue --start` costs once for each update. Returns ms of processor time. */
static double forecast_once(const struct slurm_controller *controller)
{
    struct forecast starts[FORECAST_TASKS_MAX];
    double from_us = bench_cpu_us();
    if (forecast_starts(slurm_controller_core(controller), now_us, starts) < 1)
        abort();
    return (bench_cpu_us() - from_us) / 1000;
}

static void measure(const struct policy *policy)
{
    static double busy[UPDATES], idle[UPDATES], reports[UPDATES];
    char what[96];
    size_t n = 1, quiet = 0;
    struct slurm_controller_options options = {.settings = core_settings_default(),
        .intake_partition = "intake",
        .run_partition = "run",
        .gpu_memory_bytes = 80 * GIB};
    options.settings.policy = policy;
    struct slurm_controller *controller = slurm_controller_create(&options);
    n_jobs = first_running = 0;
    make_cluster();
    for (int i = 0; i < 100 && quiet < 5; i++) { /* until it has settled */
        update_once(controller, &n);
        quiet = n <= 1 ? quiet + 1 : 0; /* a comment for the head at times */
    }
    for (int i = 0; i < UPDATES; i++)
        idle[i] = update_once(controller, &n);
    for (int i = 0; i < UPDATES; i++) {
        now_us += SECOND_US;
        reports[i] = report_once(controller, (unsigned)i);
    }
    for (int i = 0; i < UPDATES; i++) {
        end_some();
        busy[i] = update_once(controller, &n);
    }
    double starts_ms = forecast_once(controller);
    snprintf(what, sizeof what, "slurm: when the first jobs start, predicted, %s", policy->name);
    bench_row(what, "ms", "median < 200", &starts_ms, 1);
    snprintf(what, sizeof what, "slurm: update, 50,000 jobs on 5,000 GPUs, %s", policy->name);
    bench_row(what, "ms", "median < 20", busy, UPDATES);
    snprintf(what, sizeof what, "slurm: the same, nothing has changed, %s", policy->name);
    bench_row(what, "ms", "median < 20", idle, UPDATES);
    snprintf(
        what, sizeof what, "slurm: a second's reports of 1,250 nodes' agents, %s", policy->name);
    bench_row(what, "ms", "median < 100", reports, UPDATES);
    slurm_controller_destroy(controller);
}

int main(void)
{
    struct rusage usage;
    measure(&policy_magm);
    measure(&policy_predictive);
    getrusage(RUSAGE_SELF, &usage);
    double mib = (double)usage.ru_maxrss / 1024;
    bench_row("slurm: memory of the controller and the cluster", "MiB", "median < 200", &mib, 1);
    return 0;
}
