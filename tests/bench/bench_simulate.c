/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulator on a trace of 90 tasks over four GPUs, and on traces of the size of Philly's:
 * 117,325 tasks in 75 days on 2,490 GPUs, which are busy for 57 % of the time. Half of the tasks
 * take less than 45 minutes, three quarters take one GPU. And on one of a cluster that gets more
 * than it can do, so that tasks queue up and crash.
 *
 * Rows "without backfill" have the setting --backfill=no. They are what a version that does not
 * backfill is compared with: a pass tries the head of the queue only.
 *
 *     bench_simulate [TEXT]        only rows of which the name has this text in it
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

/* What is simulated, of write_tasks and write_trace. */
struct workload {
    const char *gpus;
    int runs, tasks, gpus_max; /* of a task, at most */
    double mean_s;             /* a task takes alone, on average */
    double seconds;            /* from the first submission to the last */
};

/* How: the policy, and whether tasks behind the head of the queue are tried. */
struct scheduling {
    const struct policy *policy;
    bool has_no_backfill;
};

static struct gpu_kinds kinds;
static const char *wanted = ""; /* text in the names of the rows to measure */

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
    const char *trace, const char *tasks, const char *gpus, const struct scheduling *how)
{
    struct fault fault = {0};
    struct cluster cluster;
    struct catalogue catalogue;
    struct simulation_result result;
    struct core_settings settings = core_settings_default();
    settings.policy = how->policy;
    settings.backfill &= !how->has_no_backfill;
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

/* Returns the median in milliseconds; 0: the row is not wanted. */
static double measure(const char *what, const char *target, const struct workload *workload,
    const struct scheduling *how)
{
    char trace[] = "/tmp/colloc-bench-XXXXXX", catalogue[] = "/tmp/colloc-bench-XXXXXX";
    double took[RUNS_SMALL];
    if (!strstr(what, wanted))
        return 0;
    srand(1);
    write_tasks(catalogue, workload->mean_s, workload->gpus_max);
    write_trace(trace, workload->tasks, workload->seconds);
    for (int i = 0; i < workload->runs; i++)
        took[i] = run_ms(trace, catalogue, workload->gpus, how);
    bench_row(what, "ms", target, took, (size_t)workload->runs);
    unlink(trace);
    unlink(catalogue);
    return took[workload->runs / 2];
}

static double philly(const char *what, const char *target, int tasks, const struct scheduling *how)
{
    const struct workload workload = {.gpus = "2490xA100-40GB",
        .runs = RUNS_LARGE,
        .tasks = tasks,
        .gpus_max = 16,
        .mean_s = 30000,
        .seconds = 86400.0 * PHILLY_DAYS * tasks / PHILLY};
    return measure(what, target, &workload, how);
}

int main(int argc, char **argv)
{
    const struct workload small = {.gpus = "4xA100-40GB",
        .runs = RUNS_SMALL,
        .tasks = 90,
        .gpus_max = 4,
        .mean_s = 1500,
        .seconds = 12500};
    const struct workload crowded = {.gpus = "200xA100-40GB",
        .runs = RUNS_LARGE,
        .tasks = SATURATED,
        .gpus_max = 16,
        .mean_s = 30000,
        .seconds = 86400.0 * 10};
    const struct scheduling magm = {&policy_magm, false}, magm_in_order = {&policy_magm, true},
                            predictive = {&policy_predictive, false};
    struct rusage usage;
    if (argc > 1)
        wanted = argv[1];
    if (gpu_kinds_init(&kinds, NULL) < 0)
        return 1;
    measure("simulate 90 tasks on 4 GPUs, magm", "median < 10", &small, &magm);
    measure("simulate 90 tasks on 4 GPUs, magm without backfill", "median < 10", &small,
        &magm_in_order);
    measure("simulate 90 tasks on 4 GPUs, predictive", "median < 10", &small, &predictive);
    philly("simulate Philly (117,325 tasks, 2,490 GPUs), exclusive", "median < 5000", PHILLY,
        &(struct scheduling){&policy_exclusive, false});
    double whole = philly("simulate Philly, magm", "median < 5000", PHILLY, &magm);
    philly("simulate Philly, magm without backfill", "median < 5000", PHILLY, &magm_in_order);
    philly("simulate Philly, predictive", "median < 5000", PHILLY, &predictive);
    double twice = philly("simulate Philly twice over, magm", "", 2 * PHILLY, &magm);
    double ratio = twice / whole;
    if (whole > 0 && twice > 0)
        bench_row("simulate: twice the tasks takes", "times", "median <= 2.2", &ratio, 1);
    measure("simulate 5,000 tasks on 200 GPUs with work for over twice the time, magm", "",
        &crowded, &magm);
    measure("simulate 5,000 tasks on 200 GPUs, the same, magm without backfill", "", &crowded,
        &magm_in_order);
    measure("simulate 5,000 tasks on 200 GPUs, the same, predictive", "", &crowded, &predictive);
    getrusage(RUSAGE_SELF, &usage);
    double mib = (double)usage.ru_maxrss / 1024;
    bench_row("simulate: memory", "MiB", "median < 500", &mib, 1);
    return 0;
}
