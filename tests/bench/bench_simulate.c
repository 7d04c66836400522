/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulator on a trace of 90 tasks over four GPUs, and on traces of the size of Philly's:
 * 117,325 tasks in 75 days on 2,490 GPUs, which are busy for 57 % of the time. Half of the tasks
 * take less than 45 minutes, three quarters take one GPU. And on one of a cluster that gets more
 * than it can do, so that tasks queue up and crash.
 *
 * Times are of the processor: one core does it all, whatever else the machine does.
 */
#include <math.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "bench.h"
#include "policy/policies.h"
#include "sim/simulate.h"

enum {
    RUNS_SMALL = 50,
    RUNS_LARGE = 1,
    KINDS = 1000,
    PHILLY = 117325,
    PHILLY_DAYS = 75,
    SATURATED = 5000
};

static struct gpu_kinds kinds;

static double random_part(void)
{
    return (double)rand() / ((double)RAND_MAX + 1);
}

static double processor_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static FILE *new_file(char *path)
{
    int fd = mkstemp(path);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "w");
    if (!file)
        exit(1);
    return file;
}

static void write_tasks(char *path, double mean_s, int gpus_max)
{
    const int sizes[] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 4, gpus_max};
    FILE *file = new_file(path);
    fprintf(file, "task,gpus,solo_s,memory_mib,smact\n");
    for (int i = 0; i < KINDS; i++) {
        double gauss = sqrt(-2 * log(1 - random_part())) * cos(2 * M_PI * random_part());
        double solo_s = fmin(600 * exp(2.2 * gauss) * mean_s / 6800, 10 * 86400);
        fprintf(file, "t%d,%d,%.1f,%d,%.2f\n", i, sizes[rand() % 12], solo_s, 1000 + rand() % 30000,
            0.05 + 0.95 * random_part());
    }
    fclose(file);
}

static void write_trace(char *path, int tasks, double seconds)
{
    FILE *file = new_file(path);
    fprintf(file, "submit_s,task\n");
    for (int i = 0; i < tasks; i++)
        fprintf(file, "%.0f,t%d\n", seconds * i / tasks, rand() % KINDS);
    fclose(file);
}

static double run_ms(
    const char *trace, const char *tasks, const char *gpus, const struct policy *policy)
{
    struct fault fault = {0};
    struct cluster cluster;
    struct catalogue catalogue;
    struct simulation_result result;
    struct core_settings settings = core_settings_default();
    settings.policy = policy;
    double before = processor_ms();
    int r = cluster_parse(&kinds, gpus, &fault, &cluster);
    if (r == 0)
        r = catalogue_read(
            tasks, &(struct catalogue_settings){"declared", 0.5}, &fault, &catalogue);
    struct simulation simulation = {.trace = trace,
        .catalogue = &catalogue,
        .cluster = &cluster,
        .laws = &kinds.constants,
        .settings = settings,
        .sharing = SHARING_MPS,
        .knows_activity = true,
        .remarks = stderr};
    if (r == 0)
        r = simulate_trace(&simulation, &fault, &result);
    if (r < 0 || result.failed) {
        fprintf(stderr, "the simulation failed: %s\n", fault.text);
        exit(1);
    }
    catalogue_fini(&catalogue);
    cluster_fini(&cluster);
    return processor_ms() - before;
}

static double measure(const char *what, const char *target, int runs, int tasks, const char *gpus,
    const struct policy *policy, double mean_s, double seconds, int gpus_max)
{
    char trace[] = "/tmp/colloc-bench-XXXXXX", catalogue[] = "/tmp/colloc-bench-XXXXXX";
    double took[RUNS_SMALL];
    srand(1);
    write_tasks(catalogue, mean_s, gpus_max);
    write_trace(trace, tasks, seconds);
    for (int i = 0; i < runs; i++)
        took[i] = run_ms(trace, catalogue, gpus, policy);
    bench_row(what, "ms", target, took, (size_t)runs);
    unlink(trace);
    unlink(catalogue);
    return took[runs / 2];
}

static double philly(const char *what, const char *target, int tasks, const struct policy *policy)
{
    double seconds = 86400.0 * PHILLY_DAYS * tasks / PHILLY;
    return measure(what, target, RUNS_LARGE, tasks, "2490xA100-40GB", policy, 30000, seconds, 16);
}

int main(void)
{
    struct rusage usage;
    if (gpu_kinds_init(&kinds, NULL) < 0)
        return 1;
    measure("simulate 90 tasks on 4 GPUs, magm", "median < 10", RUNS_SMALL, 90, "4xA100-40GB",
        &policy_magm, 1500, 12500, 4);
    measure("simulate 90 tasks on 4 GPUs, predictive", "median < 10", RUNS_SMALL, 90, "4xA100-40GB",
        &policy_predictive, 1500, 12500, 4);
    philly("simulate Philly (117,325 tasks, 2,490 GPUs), exclusive", "median < 5000", PHILLY,
        &policy_exclusive);
    double whole = philly("simulate Philly, magm", "median < 5000", PHILLY, &policy_magm);
    philly("simulate Philly, predictive", "median < 5000", PHILLY, &policy_predictive);
    double twice = philly("simulate Philly twice over, magm", "", 2 * PHILLY, &policy_magm);
    double ratio = twice / whole;
    bench_row("simulate: twice the tasks takes", "times", "median <= 2.2", &ratio, 1);
    measure("simulate 5,000 tasks on 200 GPUs with work for over twice the time, magm", "",
        RUNS_LARGE, SATURATED, "200xA100-40GB", &policy_magm, 30000, 86400.0 * 10, 16);
    measure("the same, predictive", "", RUNS_LARGE, SATURATED, "200xA100-40GB", &policy_predictive,
        30000, 86400.0 * 10, 16);
    getrusage(RUSAGE_SELF, &usage);
    double mib = (double)usage.ru_maxrss / 1024;
    bench_row("simulate: memory", "MiB", "median < 500", &mib, 1);
    return 0;
}
