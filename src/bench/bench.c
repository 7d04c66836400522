/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/bench.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "bench/places.h"
#include "gpu/mps.h"
#include "recorder/look.h"

enum { GPUS_MAX = 64 };

struct bench {
    const struct bench_settings *settings;
    struct journal *journal;
    struct fault *fault;
    struct gpu_set *set;
    int signals;
    struct bench_progress progress;
    int64_t began_us;
    size_t measured; /* groups of this very run */
    bool incomplete, failed;
};

/* One group while it runs. */
struct session {
    struct bench *bench;
    const struct bench_group *group;
    size_t number;
    int repeat;
    struct looker looker;
    struct recording recording;
    char places[BENCH_TASKS_MAX][PLACE_SIZE];
    const char *place_list[BENCH_TASKS_MAX]; /* the same, as a crew takes them */
    char mps_pipe[64];
    struct crew_result results[BENCH_TASKS_MAX];
};

/* ---- the GPU meanwhile ---- */

static void look(void *context)
{
    struct session *session = context;
    if (session->looker.set)
        looker_look(&session->looker, getpid());
}

static int open_looks(struct session *session, FILE **ret_csv)
{
    char path[PATH_MAX + 8];
    journal_path(
        session->bench->journal, "looks", session->number, session->repeat, path, PATH_MAX);
    strcat(path, ".csv");
    *ret_csv = fopen(path, "we");
    if (!*ret_csv)
        return fault_set(session->bench->fault, errno, "%s: %s", path, strerror(errno));
    const struct recorder_settings settings = {.gpus = session->group->gpu,
        .period_us = session->bench->settings->period_us,
        .csv = *ret_csv};
    return looker_open(&session->looker, &settings, &session->recording, session->bench->fault);
}

/* ---- MPS for one group ---- */

/* The GPUs of the group. */
static size_t list_gpus(const struct session *session, const char **ret_uuids)
{
    const struct gpu_set *set = session->bench->set;
    size_t n = 0;
    for (size_t i = 0; set && i < set->count && n < GPUS_MAX; i++)
        if (gpu_info_is_listed(&set->gpu[i], session->group->gpu))
            ret_uuids[n++] = set->gpu[i].uuid;
    return n;
}

/* A fresh one for each group: what one leaves behind must not touch the next. Its sockets want a
 * short path. */
static int start_mps(struct session *session)
{
    char folder[] = "/tmp/colloc-bench-XXXXXX", log[64];
    const char *uuids[GPUS_MAX];
    size_t count = list_gpus(session, uuids);
    if (!mkdtemp(folder))
        return fault_set(session->bench->fault, errno, "%s: %s", folder, strerror(errno));
    snprintf(session->mps_pipe, sizeof session->mps_pipe, "%s/pipe", folder);
    snprintf(log, sizeof log, "%s/log", folder);
    int r = mps_start(session->mps_pipe, log, uuids, count, session->bench->fault);
    return r > 0 && r != MPS_ALREADY_ALIVE ? -ENOENT : r < 0 ? r : 0;
}

static void remove_files(const char *folder)
{
    char path[PATH_MAX];
    static const char *const names[] = {"pipe/control", "pipe/control_lock",
        "pipe/control_privileged", "pipe/log", "log/control.log", "log/server.log"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        unlink(path);
    }
    for (size_t i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, i ? "log" : "pipe");
        rmdir(path);
    }
    rmdir(folder);
}

static void stop_mps(struct session *session)
{
    struct fault ignored = {0};
    if (!*session->mps_pipe)
        return;
    mps_stop(session->mps_pipe, &ignored);
    *strrchr(session->mps_pipe, '/') = '\0';
    remove_files(session->mps_pipe);
}

/* ---- one group ---- */

static int work(struct session *session)
{
    const struct bench_settings *settings = session->bench->settings;
    char log_path[PATH_MAX];
    journal_path(session->bench->journal, "logs", session->number, session->repeat, log_path,
        sizeof log_path);
    const struct crew crew = {
        .group = session->group,
        .places = session->bench->set ? session->place_list : NULL,
        .mps_pipe = *session->mps_pipe ? session->mps_pipe : NULL,
        .log_path = log_path,
        .period_us = settings->period_us,
        .limit_us = settings->limit_us,
        .signals = session->bench->signals,
        .look = look,
        .context = session,
    };
    return settings->client ? crew_of_tasks(&crew, settings->client, settings->submit,
                                  settings->context, session->bench->fault, session->results)
                            : crew_of_processes(&crew, session->bench->fault, session->results);
}

/* A training that ended well or ran out of GPU memory has shown something; any other failure has
 * not. */
static void note_failure(struct bench_progress *progress, const struct crew_result *result)
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
        sum += recording->gpu[i].tally.energy_j;
    return sum;
}

/* Only a group that has a result goes into the journal: any other is run again by the next bench. */
static int write_down(struct session *session)
{
    const struct bench_group *group = session->group;
    const struct recording *recording = &session->recording;
    double first = session->results[0].started_unix_s, last = 0;
    for (int i = 0; i < group->n_tasks; i++) {
        note_failure(&session->bench->progress, &session->results[i]);
        last = session->results[i].ended_unix_s > last ? session->results[i].ended_unix_s : last;
    }
    const struct group_result result = {
        .began_unix_s = first,
        .total_s = last - first,
        .energy_j = energy_j(recording),
        .gpu_name = recording->n_gpus ? recording->gpu[0].info.name : "",
        .way = session->bench->settings->client ? "daemon" : "processes",
        .tasks = session->results,
    };
    session->bench->progress.total_s = result.total_s;
    if (!session->bench->progress.has_result)
        return 0;
    return journal_add(session->bench->journal, group, session->number, session->repeat, &result,
        session->bench->fault);
}

static int run_session(struct session *session)
{
    FILE *csv;
    int r = open_looks(session, &csv);
    if (r == 0 && session->group->sharing == BENCH_MPS && !session->bench->settings->client)
        r = start_mps(session);
    if (r == 0) {
        looker_ask_all(&session->looker);
        look(session);
        r = work(session);
        looker_ask_all(&session->looker);
        look(session);
    }
    stop_mps(session);
    looker_close(&session->looker);
    if (csv && fclose(csv) != 0 && r == 0)
        r = fault_set(session->bench->fault, EIO, "looks of '%s' could not all be written",
            session->group->name);
    if (r == 0)
        r = write_down(session);
    recording_fini(&session->recording);
    return r;
}

/* Places only matter where we put processes there ourselves. */
static int find_places(struct session *session, char *why, size_t size)
{
    const struct bench *bench = session->bench;
    if (bench->settings->client || !bench->set)
        return 0;
    for (int i = 0; i < session->group->n_tasks; i++)
        session->place_list[i] = session->places[i];
    return places_find(bench->set, session->group, session->places, why, size);
}

static void guess_time_left(struct bench *bench)
{
    struct bench_progress *progress = &bench->progress;
    double took_s = (double)(clock_monotonic_us() - bench->began_us) / (double)SECOND_US;
    progress->left_s = bench->measured ? took_s / (double)bench->measured *
                                             (double)(progress->all - progress->done)
                                       : -1;
}

static int run_group(struct bench *bench, size_t i, int repeat)
{
    const struct bench_settings *settings = bench->settings;
    struct bench_progress *progress = &bench->progress;
    char why[200];
    struct session *session = calloc(1, sizeof *session);
    if (!session)
        return fault_set(bench->fault, ENOMEM, "out of memory");
    *session = (struct session){.bench = bench,
        .group = &settings->experiment->groups[i],
        .number = i + 1,
        .repeat = repeat};
    progress->group = session->group;
    progress->repeat = repeat;
    progress->failed = 0;
    progress->has_result = true;
    progress->skip = find_places(session, why, sizeof why) ? why : NULL;
    settings->on_begin(settings->context, progress);
    int r = progress->skip ? 0 : run_session(session);
    if (r == CREW_TOO_LONG)
        progress->skip = "it took longer than --limit and was ended";
    bench->incomplete |= progress->skip != NULL;
    progress->done++;
    bench->failed |= !progress->has_result;
    bench->measured += progress->skip == NULL;
    guess_time_left(bench);
    if (r == 0 || r == CREW_TOO_LONG)
        settings->on_end(settings->context, progress);
    progress->skip = NULL;
    free(session);
    return r == CREW_TOO_LONG ? 0 : r;
}

/* Repeats are apart in time, so that what drifts meanwhile is seen in their spread. */
static int run_all(struct bench *bench)
{
    const struct experiment *experiment = bench->settings->experiment;
    int r = 0;
    for (int repeat = 1; repeat <= bench->settings->repeats; repeat++)
        for (size_t i = 0; i < experiment->n_groups; i++)
            if (!journal_has(bench->journal, &experiment->groups[i], repeat) &&
                (r = run_group(bench, i, repeat)) != 0)
                return r == CREW_INTERRUPTED ? BENCH_INTERRUPTED : r;
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

/* What arrived must not arrive again when signals are let through. */
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
    gpu_set_open(NULL, &no_gpus,
        &bench.set); /* without GPUs trainings run all the same, and say what they miss */
    bench.progress.repeats = settings->repeats;
    bench.progress.all = settings->experiment->n_groups * (size_t)settings->repeats;
    for (int repeat = 1; repeat <= settings->repeats; repeat++)
        for (size_t i = 0; i < settings->experiment->n_groups; i++)
            bench.progress.done += journal_has(journal, &settings->experiment->groups[i], repeat);
    int r = run_all(&bench);
    if (bench.set)
        gpu_set_close(bench.set);
    stop_watching(bench.signals, &before);
    return r;
}
