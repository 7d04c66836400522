/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs the groups of a bench. For each repeat and each group: chooses devices, starts MPS if the
 * group shares by it, samples the GPUs while the trainings run (trainer_group.h), and adds the
 * results to the journal.
 */
#include "bench/bench.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "bench/environment_record.h"
#include "bench/meminfo.h"
#include "bench/visible_devices.h"
#include "gpu/private_mps.h"
#include "recorder/gpu_recorder.h"

enum { GPUS_MAX = 64 }; /* of one group; chosen */

struct bench {
    const struct bench_settings *settings;
    struct journal *journal;
    struct fault *fault;
    struct gpu_set *set;
    int signals;
    struct bench_progress progress;
    int64_t began_us;
    size_t measured; /* groups that this call has run */
    bool incomplete, failed;
};

/* The run of one group. */
struct group_run {
    struct bench *bench;
    const struct bench_group *group;
    size_t number;
    int repeat;
    struct gpu_recorder recorder;
    struct recording recording;
    char devices[BENCH_TASKS_MAX][DEVICES_SIZE];
    const char *device_list[BENCH_TASKS_MAX]; /* each task's entry of `devices` */
    struct private_mps mps;
    FILE *host_memory; /* samples of the host's memory; NULL: no task asks for them */
    char run_ids[BENCH_TASKS_MAX][BENCH_RUN_ID_SIZE];
    struct training_result results[BENCH_TASKS_MAX];
};

/* ---- sampling ---- */

static void sample_gpus(void *context)
{
    struct group_run *run = context;
    if (run->recorder.set)
        gpu_recorder_sample(&run->recorder, getpid());
    if (run->host_memory)
        meminfo_sample(run->host_memory, (double)clock_wall_us() / (double)SECOND_US);
}

/* Opens looks/N-R.free.csv, if a task's row names radT's listener free. */
static int open_host_memory(struct group_run *run)
{
    char base[PATH_MAX], path[PATH_MAX + 16];
    bool is_wanted = false;
    for (int i = 0; i < run->group->n_tasks; i++)
        is_wanted |= run->group->tasks[i].lists_host_memory;
    if (!is_wanted)
        return 0;
    journal_path(run->bench->journal, "looks", run->number, run->repeat, base, sizeof base);
    snprintf(path, sizeof path, "%s.free.csv", base);
    run->host_memory = fopen(path, "we");
    if (!run->host_memory)
        return fault_set(run->bench->fault, errno, "%s: %s", path, strerror(errno));
    meminfo_print_names(run->host_memory);
    return 0;
}

static int close_file(struct group_run *run, FILE *file, int r)
{
    if (file && fclose(file) != 0 && r == 0)
        return fault_set(
            run->bench->fault, EIO, "cannot write all samples of '%s'", run->group->name);
    return r;
}

static int open_samples(struct group_run *run, FILE **ret_csv)
{
    char base[PATH_MAX], path[PATH_MAX + 8];
    journal_path(run->bench->journal, "looks", run->number, run->repeat, base, sizeof base);
    snprintf(path, sizeof path, "%s.csv", base);
    *ret_csv = fopen(path, "we");
    if (!*ret_csv)
        return fault_set(run->bench->fault, errno, "%s: %s", path, strerror(errno));
    const struct recorder_settings settings = {
        .gpus = run->group->gpu, .period_us = run->bench->settings->period_us, .csv = *ret_csv};
    return gpu_recorder_open(&run->recorder, &settings, &run->recording, run->bench->fault);
}

/* ---- MPS for one group ---- */

static bool is_of_mps_client(const struct bench_group *group, const struct gpu_info *gpu)
{
    for (int i = 0; i < group->n_tasks; i++) {
        const struct bench_task *task = &group->tasks[i];
        if (task->sharing == BENCH_MPS &&
            gpu_info_is_listed(gpu, *task->gpus ? task->gpus : group->gpu))
            return true;
    }
    return false;
}

/* Lists the UUIDs of the GPUs of the group's MPS clients. */
static size_t list_gpus(const struct group_run *run, const char **ret_uuids)
{
    const struct gpu_set *set = run->bench->set;
    size_t n = 0;
    for (size_t i = 0; set && i < set->count && n < GPUS_MAX; i++)
        if (is_of_mps_client(run->group, &set->gpu[i]))
            ret_uuids[n++] = set->gpu[i].uuid;
    return n;
}

/* Each group has its own control daemon, so that groups do not affect each other. A machine without
 * MPS still runs the other groups. Returns false with the reason if it cannot be started. */
static bool start_mps(struct group_run *run, char *why, size_t size)
{
    const char *uuids[GPUS_MAX];
    struct fault fault = {0};
    if (!bench_group_has(run->group, BENCH_MPS))
        return true;
    size_t count = list_gpus(run, uuids);
    if (private_mps_start(&run->mps, uuids, count, &fault) == 0)
        return true;
    snprintf(why, size, "%s", fault.text);
    return false;
}

/* ---- one group ---- */

static int run_trainings(struct group_run *run)
{
    const struct bench_settings *settings = run->bench->settings;
    char log_path[PATH_MAX], profile_path[PATH_MAX];
    journal_path(run->bench->journal, "logs", run->number, run->repeat, log_path, sizeof log_path);
    journal_path(run->bench->journal, "profiles", run->number, run->repeat, profile_path,
        sizeof profile_path);
    if (!settings->client)
        run->recorder.command = getpid(); /* the trainings are descendants of this process */
    const struct trainer_group trainers = {
        .group = run->group,
        .devices = run->bench->set ? run->device_list : NULL,
        .run_ids = run->run_ids,
        .mps_pipe = *run->mps.pipe ? run->mps.pipe : NULL,
        .log_path = log_path,
        .profile_path = profile_path,
        .period_us = settings->period_us,
        .limit_us = settings->limit_us,
        .signals = run->bench->signals,
        .sample = sample_gpus,
        .context = run,
    };
    return settings->client
               ? trainer_group_run_tasks(&trainers, settings->client, settings->submit,
                     settings->context, run->bench->fault, run->results)
               : trainer_group_run_processes(&trainers, run->bench->fault, run->results);
}

/* Out of GPU memory is a result of the experiment; any other failure is not. */
static void note_failure(struct bench_progress *progress, const struct training_result *result)
{
    bool first = progress->failed == 0;
    if (!*result->failure)
        return;
    if (first || (progress->has_result && !result->out_of_gpu_memory))
        snprintf(progress->failure, sizeof progress->failure, "%s", result->failure);
    progress->failed++;
    progress->has_result &= result->out_of_gpu_memory;
}

static double energy_j(const struct recording *recording)
{
    double sum = 0;
    for (size_t i = 0; i < recording->n_gpus; i++)
        sum += recording->gpu[i].totals.energy_j;
    return sum;
}

/* Only a group with a result is added to the journal; others run again in the next bench. */
static int add_to_journal(struct group_run *run)
{
    const struct bench_group *group = run->group;
    const struct recording *recording = &run->recording;
    double first = run->results[0].started_unix_s, last = 0;
    for (int i = 0; i < group->n_tasks; i++) {
        note_failure(&run->bench->progress, &run->results[i]);
        last = run->results[i].ended_unix_s > last ? run->results[i].ended_unix_s : last;
    }
    const struct group_result result = {
        .began_unix_s = first,
        .total_s = last - first,
        .energy_j = energy_j(recording),
        .gpu_name = recording->n_gpus ? recording->gpu[0].info.name : "",
        .way = run->bench->settings->client ? "daemon" : "processes",
        .tasks = run->results,
    };
    run->bench->progress.total_s = result.total_s;
    if (!run->bench->progress.has_result)
        return 0;
    return journal_add(
        run->bench->journal, group, run->number, run->repeat, &result, run->bench->fault);
}

static int measure_group(struct group_run *run)
{
    FILE *csv;
    int r = open_samples(run, &csv);
    if (r == 0)
        r = open_host_memory(run);
    if (r == 0) {
        gpu_recorder_query_all(&run->recorder);
        sample_gpus(run);
        r = run_trainings(run);
        gpu_recorder_query_all(&run->recorder);
        sample_gpus(run);
    }
    gpu_recorder_close(&run->recorder);
    r = close_file(run, csv, r);
    r = close_file(run, run->host_memory, r);
    if (r == 0)
        r = add_to_journal(run);
    recording_fini(&run->recording);
    return r;
}

/* Finds the devices of the group's trainings and starts its MPS; a daemon does both itself. Returns
 * NULL, or `why` with the reason why the group cannot run on this machine. */
static const char *prepare_group(struct group_run *run, char *why, size_t size)
{
    const struct bench *bench = run->bench;
    if (bench->settings->client)
        return NULL;
    for (int i = 0; i < run->group->n_tasks; i++)
        run->device_list[i] = run->devices[i];
    if (bench->set && visible_devices_find(bench->set, run->group, run->devices, why, size) != 0)
        return why;
    return start_mps(run, why, size) ? NULL : why;
}

static void estimate_time_left(struct bench *bench)
{
    struct bench_progress *progress = &bench->progress;
    double took_s = (double)(clock_monotonic_us() - bench->began_us) / (double)SECOND_US;
    double left = (double)(progress->all - progress->done);
    progress->left_s = bench->measured ? reading_of(took_s / (double)bench->measured * left)
                                       : READING_NONE;
}

/* ---- caches of files ---- */

#define DROP_CACHES "/proc/sys/vm/drop_caches"

int bench_can_drop_caches(struct fault *fault)
{
    if (access(DROP_CACHES, W_OK) == 0 && geteuid() == 0)
        return 0;
    return fault_set(fault, EPERM,
        "--drop-caches: " DROP_CACHES " cannot be written: run the bench as root of the host");
}

/* Drops clean pages and the names of files: what the kernel has to write it writes first. */
static int drop_caches(struct fault *fault)
{
    sync();
    int fd = open(DROP_CACHES, O_WRONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : write(fd, "3", 1);
    int error = errno;
    if (fd >= 0)
        close(fd);
    return n == 1 ? 0 : fault_set(fault, error, DROP_CACHES ": %s", strerror(error));
}

static int run_group(struct bench *bench, size_t i, int repeat)
{
    const struct bench_settings *settings = bench->settings;
    struct bench_progress *progress = &bench->progress;
    char why[512];
    struct group_run *run = calloc(1, sizeof *run);
    if (!run)
        return fault_set(bench->fault, ENOMEM, "out of memory");
    *run = (struct group_run){.bench = bench,
        .group = &settings->experiment->groups[i],
        .number = i + 1,
        .repeat = repeat};
    progress->group = run->group;
    progress->number = run->number;
    progress->repeat = repeat;
    progress->failed = 0;
    progress->has_result = true;
    progress->skip = prepare_group(run, why, sizeof why);
    progress->results = progress->skip ? NULL : run->results;
    progress->run_ids = run->run_ids;
    settings->on_begin(settings->context, progress);
    int r = progress->skip || !settings->drop_caches ? 0 : drop_caches(bench->fault);
    if (r == 0 && !progress->skip)
        r = measure_group(run);
    private_mps_stop(&run->mps);
    if (r == TRAINER_TIMEOUT) {
        progress->skip = "it ran longer than --limit and was killed";
        progress->results = NULL;
    }
    bench->incomplete |= progress->skip != NULL;
    progress->done++;
    bench->failed |= !progress->has_result;
    bench->measured += progress->skip == NULL;
    estimate_time_left(bench);
    if (r == 0 || r == TRAINER_TIMEOUT)
        settings->on_end(settings->context, progress);
    else if (settings->on_stop)
        settings->on_stop(settings->context, progress);
    progress->skip = NULL;
    progress->run_ids = NULL;
    free(run);
    return r == TRAINER_TIMEOUT ? 0 : r;
}

bool bench_is_done(const struct journal *journal, const struct bench_group *group, int repeat)
{
    return journal_has(journal, group, repeat) ||
           (group->is_finished && !journal_has(journal, group, 1));
}

/* Repeats of a group are spread over time, so that drift shows in their variance. */
static int run_all(struct bench *bench)
{
    const struct experiment *experiment = bench->settings->experiment;
    int r = 0;
    for (int repeat = 1; repeat <= bench->settings->repeats; repeat++)
        for (size_t i = 0; i < experiment->n_groups; i++)
            if (!bench_is_done(bench->journal, &experiment->groups[i], repeat) &&
                (r = run_group(bench, i, repeat)) != 0)
                return r == TRAINER_INTERRUPTED ? BENCH_INTERRUPTED : r;
    return bench->incomplete ? BENCH_INCOMPLETE : bench->failed ? BENCH_FAILED : 0;
}

static int watch_signals(sigset_t *ret_before, struct fault *fault)
{
    sigset_t mask;
    sigemptyset(&mask);
    sigaddset(&mask, SIGINT);
    sigaddset(&mask, SIGTERM);
    sigaddset(&mask, SIGHUP);
    sigprocmask(SIG_BLOCK, &mask, ret_before);
    int fd = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
    return fd < 0 ? fault_set(fault, errno, "no signalfd: %s", strerror(errno)) : fd;
}

/* Drops pending signals, so that unblocking does not deliver them again. */
static void stop_watching(int signals, const sigset_t *before)
{
    struct signalfd_siginfo signal;
    while (read(signals, &signal, sizeof signal) == (ssize_t)sizeof signal)
        ;
    close(signals);
    sigprocmask(SIG_SETMASK, before, NULL);
}

int bench_run(const struct bench_settings *settings, struct journal *journal, struct fault *fault)
{
    struct bench bench = {
        .settings = settings, .journal = journal, .fault = fault, .began_us = clock_monotonic_us()};
    struct fault no_gpus = {0};
    sigset_t before;
    bench.signals = watch_signals(&before, fault);
    if (bench.signals < 0)
        return bench.signals;
    gpu_set_open(
        NULL, &no_gpus, &bench.set); /* without GPUs the trainings fail, and their messages say what
                                      * is missing */
    bench.progress.repeats = settings->repeats;
    bench.progress.all = settings->experiment->n_groups * (size_t)settings->repeats;
    for (int repeat = 1; repeat <= settings->repeats; repeat++)
        for (size_t i = 0; i < settings->experiment->n_groups; i++)
            bench.progress.done += bench_is_done(journal, &settings->experiment->groups[i], repeat);
    int r = bench.progress.done < bench.progress.all
                ? environment_record(journal->folder, settings->python, bench.set, fault)
                : 0;
    if (r == 0)
        r = run_all(&bench);
    if (bench.set)
        gpu_set_close(bench.set);
    stop_watching(bench.signals, &before);
    return r;
}
