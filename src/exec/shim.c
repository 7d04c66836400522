/* SPDX-License-Identifier: Apache-2.0 */
/*
 * colloc-shim FOLDER: runs one attempt from start to end and records how it ended. It outlives the
 * daemon, which communicates with it through files (exec/attempt.h) and SIGTERM.
 */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/units.h"
#include "exec/attempt.h"
#include "exec/attempt_classify.h"
#include "exec/cgroup.h"
#include "exec/claim.h"
#include "exec/container_slice.h"
#include "exec/drain.h"
#include "exec/failure_classify.h"
#include "exec/launch.h"
#include "exec/log_line.h"
#include "exec/oom_counter.h"
#include "exec/output_cap.h"
#include "exec/torch_responder.h"
#include "exec/tree.h"

/* How long the shim waits. Chosen, except where a reason is given. */
#define LEFTOVER_GRACE_US (2 * SECOND_US) /* for processes that outlive the main process */
#define KILL_AGAIN_US     (50 * MS_US)    /* a fork may escape a pass of kills: until the next */
#define EMPTY_LIMIT_US    (1 * SECOND_US) /* for processes that others moved into the cgroup */
#define WRITE_AGAIN_US    (1 * SECOND_US) /* until a full disk may have space again */
#define ABANDON_US        (500 * MS_US)   /* after SIGKILL, for a child that is not the task yet */
#define WRITER_LIMIT_US   (5 * SECOND_US) /* for the output's writer, where a file system hangs */
#define CAP_CHECK_US      (100 * MS_US)   /* a task that writes 1 GB/s exceeds the cap by 100 MB */

/*
 * RUNNING, then ENDING (SIGTERM, then the grace time), then KILLING. WARNED comes before ENDING if
 * a task that is evicted gets its warning signal first: it then has the time before ENDING that it
 * has before its time limit, but at most the grace time. If MPS clients were spared because a
 * process above them ends them, DROPPED precedes KILLING: their work is dropped, and that process
 * has some time left to write its checkpoint.
 */
enum phase { PHASE_RUNNING, PHASE_WARNED, PHASE_ENDING, PHASE_DROPPED, PHASE_KILLING };

struct shim {
    const char *folder;
    struct spec_file file;
    struct launch launch;
    pid_t main_pid; /* 0 once it has ended */
    int main_status;
    enum phase phase;
    enum attempt_ask asked; /* daemon's request; 0: none, also after another process's SIGTERM */
    int64_t started_us;
    int64_t deadline_us;         /* the end of the phase */
    int64_t warning_us;          /* when the warning signal is due; TIME_NEVER: not, or not again */
    int64_t abandon_us;          /* until then, a launch that was killed may end */
    int64_t writer_us;           /* until then, the output's writer is not killed */
    enum output_renewal renewal; /* of the file that the writer wrote */
    struct drain_clients clients;           /* of MPS, when PHASE_ENDING began */
    struct output_cap caps[OUTPUT_STREAMS]; /* of output in the attempt's folder */
    bool caps_are_open;
    struct reading oom_kills_before;
    struct attempt_exit result;
};

static struct drain_mps mps_of(const struct shim *shim)
{
    const struct attempt_spec *spec = &shim->file.spec;
    return (struct drain_mps){spec->env, spec->uid, spec->gid};
}

/* Lists the tops of the MPS clients with that fate. Returns how many. */
static size_t list_tops(const struct drain_clients *clients, enum drain_fate fate, pid_t *ret_tops)
{
    size_t n = 0;
    for (size_t i = 0; i < clients->count; i++)
        if (clients->list[i].fate == fate)
            ret_tops[n++] = clients->list[i].top;
    return n;
}

/*
 * Sends SIGTERM, in this order:
 *
 *   1. to all processes except MPS clients that it would kill in the middle of their work;
 *   2. the MPS server drops the work of these clients;
 *   3. to these clients.
 *
 * Clients that a process above them ends get no signal.
 */
static void signal_politely(struct shim *shim)
{
    const struct drain_mps mps = mps_of(shim);
    pid_t tops[2 * DRAIN_CLIENTS_MAX];
    drain_find(&mps, getpid(), &shim->clients);
    size_t dropped = list_tops(&shim->clients, DRAIN_DROP, tops);
    size_t spared = list_tops(&shim->clients, DRAIN_SPARE, tops + dropped);
    tree_signal_except(getpid(), tops, dropped + spared, SIGTERM);
    tree_signal(getpid(), SIGCONT); /* for those that were stopped */
    if (dropped) {
        drain_drop(&mps, &shim->clients, DRAIN_DROP);
        tree_signal_only(getpid(), tops, dropped, SIGTERM);
    }
}

/* Only processes that handle the signal get it: others would be ended by it. */
static void send_warning(struct shim *shim)
{
    const struct attempt_spec *spec = &shim->file.spec;
    shim->warning_us = TIME_NEVER;
    if (!spec->warns_script_only)
        tree_signal_handlers(getpid(), spec->warning_signal);
    else if (shim->main_pid && tree_handles(shim->main_pid, spec->warning_signal))
        kill(shim->main_pid, spec->warning_signal);
}

/* Chosen: how often it checks whether a stopped task continues. */
#define STOPPED_CHECK_US (2 * SECOND_US)

/* The daemon's limit while the task is stopped. */
static bool is_never(int64_t limit_us)
{
    return limit_us >= TIME_NEVER / 2;
}

static void set_time_limit(struct shim *shim, int64_t limit_us)
{
    struct attempt_spec *spec = &shim->file.spec;
    bool is_warned = spec->time_limit_us && shim->warning_us == TIME_NEVER;
    spec->time_limit_us = limit_us;
    shim->deadline_us = !limit_us            ? TIME_NEVER
                        : is_never(limit_us) ? clock_monotonic_us() + STOPPED_CHECK_US
                                             : shim->started_us + limit_us;
    if (limit_us && spec->warning_signal && !is_warned)
        shim->warning_us = shim->deadline_us - (is_never(limit_us) ? 0 : spec->warning_us);
}

/* An operator may have changed the limit since: the daemon writes it into the folder, which is read
 * before the warning and before the end. */
static void reload_time_limit(struct shim *shim)
{
    char path[PATH_MAX], text[32];
    int64_t limit_us;
    snprintf(path, sizeof path, "%s/" ATTEMPT_TIME_LIMIT, shim->folder);
    if (file_read_start(path, text, sizeof text) > 0 &&
        parse_int64(text, 0, TIME_NEVER / 2, &limit_us) == 0 &&
        (limit_us != shim->file.spec.time_limit_us || is_never(limit_us)))
        set_time_limit(shim, limit_us);
}

static void begin_ending(struct shim *shim, int64_t grace_us)
{
    int64_t deadline_us = clock_monotonic_us() + grace_us;
    if (shim->phase <= PHASE_WARNED || deadline_us < shim->deadline_us)
        shim->deadline_us = deadline_us;
    shim->phase = PHASE_ENDING;
    signal_politely(shim);
}

/* After the grace time no MPS client keeps its work. Those that were spared get SIGTERM. Returns
 * whether there were any. */
static bool drop_clients(const struct shim *shim)
{
    const struct drain_mps mps = mps_of(shim);
    pid_t tops[DRAIN_CLIENTS_MAX];
    size_t spared = list_tops(&shim->clients, DRAIN_SPARE, tops);
    drain_drop_all(&mps, getpid());
    if (spared)
        tree_signal_only(getpid(), tops, spared, SIGTERM);
    return spared > 0;
}

static void begin_killing(struct shim *shim)
{
    int64_t now_us = clock_monotonic_us();
    if (shim->phase != PHASE_KILLING) {
        shim->abandon_us = now_us + ABANDON_US;
        shim->writer_us = now_us + WRITER_LIMIT_US;
    }
    shim->phase = PHASE_KILLING;
    char slice[CGROUP_PATH_SIZE];
    if (shim->file.spec.cgroup)
        cgroup_kill(shim->file.spec.cgroup);
    if (shim->file.spec.cgroup && container_slice_find(shim->file.spec.cgroup, slice))
        cgroup_kill(slice);
    bool is_writing = shim->launch.writer && now_us < shim->writer_us;
    tree_signal_except(getpid(), &shim->launch.writer, is_writing, SIGKILL);
    shim->deadline_us = now_us + KILL_AGAIN_US;
}

/* A second request, or one after the end of the main process, changes nothing. */
static void end_because(struct shim *shim, enum attempt_ask ask)
{
    if (shim->asked || !shim->main_pid)
        return;
    shim->asked = ask;
    if (launch_is_under_way(&shim->launch)) { /* no program runs yet that could act on SIGTERM */
        begin_killing(shim);
        return;
    }
    if (ask != ATTEMPT_ASK_EVICT || !shim->file.spec.warning_signal) {
        begin_ending(shim, shim->file.spec.grace_us);
        return;
    }
    const struct attempt_spec *spec = &shim->file.spec;
    send_warning(shim);
    shim->phase = PHASE_WARNED;
    shim->deadline_us = clock_monotonic_us() +
                        (spec->warning_us < spec->grace_us ? spec->warning_us : spec->grace_us);
}

static void on_deadline(struct shim *shim)
{
    if (shim->phase == PHASE_RUNNING) {
        reload_time_limit(shim);
        if (clock_monotonic_us() >= shim->deadline_us)
            end_because(shim, ATTEMPT_ASK_TIME_LIMIT);
        return;
    }
    if (shim->phase == PHASE_WARNED) {
        begin_ending(shim, shim->file.spec.grace_us);
        return;
    }
    if (shim->phase == PHASE_ENDING && drop_clients(shim)) {
        shim->phase = PHASE_DROPPED;
        shim->deadline_us = clock_monotonic_us() + LEFTOVER_GRACE_US;
        return;
    }
    begin_killing(shim);
}

/*
 * Keeps the output that is kept in the attempt folder below its cap. The child opens those files on
 * its way to the program.
 * Returns the time of the next check, TIME_NEVER when there is nothing to check.
 */
static int64_t cap_output(struct shim *shim)
{
    static const char *const names[OUTPUT_STREAMS] = {"stdout", "stderr"};
    const int64_t max_bytes = shim->file.spec.kept_max_bytes;
    bool is_kept = false;
    if (max_bytes == 0)
        return TIME_NEVER;
    if (!shim->caps_are_open && launch_is_under_way(&shim->launch))
        return clock_monotonic_us() + CAP_CHECK_US;
    for (int i = 0; i < OUTPUT_STREAMS; i++) {
        if (!shim->caps_are_open)
            shim->caps[i] = output_cap_open(shim->folder, names[i], max_bytes);
        output_cap_apply(&shim->caps[i]);
        is_kept |= shim->caps[i].fd >= 0;
    }
    shim->caps_are_open = true;
    return is_kept ? clock_monotonic_us() + CAP_CHECK_US : TIME_NEVER;
}

/* Sleeps until a child ends, SIGTERM comes, the deadline, or `check_us`. */
static void wait_for_news(struct shim *shim, int64_t check_us)
{
    int64_t until_us = check_us < shim->deadline_us ? check_us : shim->deadline_us;
    sigset_t news;
    siginfo_t info;
    sigemptyset(&news);
    sigaddset(&news, SIGCHLD);
    sigaddset(&news, SIGTERM);
    int64_t left_us = until_us - clock_monotonic_us();
    if (left_us < 0)
        left_us = 0;
    const struct timespec timeout = {
        .tv_sec = left_us / SECOND_US, .tv_nsec = left_us % SECOND_US * 1000};
    int signal = sigtimedwait(&news, &info, until_us == TIME_NEVER ? NULL : &timeout);
    if (signal == SIGTERM)
        end_because(shim, info.si_code == SI_QUEUE ? (enum attempt_ask)info.si_value.sival_int : 0);
}

/* If a writer was killed, this is unknown. */
static void note_writer_end(struct shim *shim, int status)
{
    shim->launch.writer = 0;
    if (WIFEXITED(status))
        shim->renewal = (enum output_renewal)WEXITSTATUS(status);
}

/* The shim is a subreaper: all orphans of the task become its children, so while it has children,
 * processes of the task remain. */
static bool reap_children(struct shim *shim)
{
    pid_t pid, main_pid = shim->main_pid;
    int status;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        if (pid == shim->main_pid) {
            shim->main_pid = 0;
            shim->main_status = status;
        } else if (pid == shim->launch.writer) {
            note_writer_end(shim, status);
        }
    }
    bool left = pid == 0, main_ended = main_pid && !shim->main_pid;
    if (left && main_ended && shim->phase != PHASE_KILLING)
        begin_ending(shim, LEFTOVER_GRACE_US);
    return left;
}

/*
 * A child that waits for a file system that does not answer remains even after SIGKILL. It can no
 * longer execute the program, so it does not use a GPU: the attempt ends without it.
 */
static bool is_abandoned(struct shim *shim)
{
    return shim->phase == PHASE_KILLING && shim->main_pid &&
           clock_monotonic_us() >= shim->abandon_us && launch_is_under_way(&shim->launch);
}

static void warn_in_time(struct shim *shim)
{
    if (shim->phase != PHASE_RUNNING || clock_monotonic_us() < shim->warning_us)
        return;
    reload_time_limit(shim);
    if (clock_monotonic_us() >= shim->warning_us)
        send_warning(shim);
}

static void supervise_task(struct shim *shim)
{
    while (reap_children(shim) && !is_abandoned(shim)) {
        int64_t check_us = cap_output(shim);
        wait_for_news(shim, check_us < shim->warning_us ? check_us : shim->warning_us);
        warn_in_time(shim);
        if (clock_monotonic_us() >= shim->deadline_us)
            on_deadline(shim);
    }
}

static int load_spec(struct shim *shim, struct fault *fault)
{
    char path[PATH_MAX], *data;
    size_t size;
    snprintf(path, sizeof path, "%s/spec", shim->folder);
    int r = file_read(path, SPEC_LIMIT, fault, &data, &size);
    return r < 0 ? r : spec_decode(data, size, fault, &shim->file);
}

static int start_task(struct shim *shim, struct fault *fault)
{
    const struct attempt_spec *spec = &shim->file.spec;
    int r = load_spec(shim, fault);
    if (r == 0)
        r = launch_begin(&shim->launch, shim->folder, spec, shim->file.has_script, fault);
    shim->main_pid = r == 0 ? shim->launch.pid : 0;
    shim->started_us = clock_monotonic_us();
    if (r == 0 && spec->time_limit_us)
        shim->deadline_us = shim->started_us + spec->time_limit_us;
    if (r == 0 && spec->time_limit_us && spec->warning_signal)
        shim->warning_us = shim->deadline_us - spec->warning_us;
    return r;
}

static void measure_usage(struct attempt_exit *result)
{
    struct rusage usage;
    getrusage(RUSAGE_CHILDREN, &usage);
    result->max_rss_bytes = usage.ru_maxrss * KIB;
    result->cpu_us = (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * SECOND_US +
                     usage.ru_utime.tv_usec + usage.ru_stime.tv_usec;
}

/* The cgroups count the task's own processes; the machine's counter any process. */
static enum host_oom judge_host_oom(const struct shim *shim)
{
    char slice[CGROUP_PATH_SIZE];
    const char *cgroup = shim->file.spec.cgroup;
    struct reading kills = cgroup ? cgroup_oom_kills(cgroup) : READING_NONE;
    bool has_slice = cgroup && container_slice_find(cgroup, slice);
    struct reading in_slice = has_slice ? cgroup_oom_kills(slice) : READING_NONE;
    if (in_slice.valid && in_slice.value > 0)
        return HOST_OOM_CERTAIN;
    if (kills.valid)
        return kills.value > 0 ? HOST_OOM_CERTAIN : HOST_OOM_NO;
    struct reading before = shim->oom_kills_before, now = oom_counter_read();
    bool has_risen = before.valid && now.valid && now.value > before.value;
    return has_risen ? HOST_OOM_PERHAPS : HOST_OOM_NO;
}

static void classify_end(struct shim *shim)
{
    struct attempt_exit *result = &shim->result;
    int status = shim->main_pid ? SIGKILL : shim->main_status; /* an abandoned one was killed */
    result->exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    result->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    const struct attempt_end end = {
        .exit_code = result->exit_code,
        .signal = result->signal,
        .cancelled = shim->asked == ATTEMPT_ASK_CANCEL || shim->asked == ATTEMPT_ASK_EVICT,
        .time_over = shim->asked == ATTEMPT_ASK_TIME_LIMIT,
        .host_oom = judge_host_oom(shim),
    };
    struct output_file *file = shim->launch.file;
    file[OUTPUT_STDOUT].renewal = shim->renewal;
    if (output_is_shared(&shim->file.spec))
        file[OUTPUT_STDERR].renewal = shim->renewal;
    attempt_classify(shim->folder, &shim->file.spec, file, &end, &result->failure);
}

static void judge_launch(struct shim *shim, const struct fault *fault)
{
    shim->result.exit_code = -1;
    shim->result.failure.class = FAILURE_LAUNCH;
    log_line_clean(span_of(fault->text), shim->result.failure.evidence);
}

/* `cgroup`: may be NULL. */
static void remove_cgroups(const char *cgroup)
{
    char slice[CGROUP_PATH_SIZE];
    if (cgroup && container_slice_find(cgroup, slice))
        container_slice_end(slice);
    if (cgroup)
        cgroup_remove(cgroup, EMPTY_LIMIT_US);
}

static void run_attempt(struct shim *shim)
{
    struct fault fault = {0};
    shim->oom_kills_before = oom_counter_read();
    int64_t start_us = clock_monotonic_us();
    shim->result.start_wall_us = clock_wall_us();
    int r = start_task(shim, &fault);
    if (r == 0)
        supervise_task(shim);
    shim->result.end_wall_us = shim->result.start_wall_us + clock_monotonic_us() - start_us;
    measure_usage(&shim->result);
    if (r == 0 && !shim->asked && !launch_is_under_way(&shim->launch) && shim->launch.answer < 0)
        judge_launch(shim, &shim->launch.fault);
    else if (r == 0)
        classify_end(shim);
    else
        judge_launch(shim, &fault);
    if (r == 0)
        cap_output(shim); /* what came since the last check; its end has been read */
    torch_responder_clean(&shim->file.spec);
    remove_cgroups(shim->file.spec.cgroup);
}

int main(int argc, char **argv)
{
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    umask(077);
    if (argc != 2 || argv[1][0] != '/' || strlen(argv[1]) >= PATH_MAX - 64) {
        fprintf(stderr,
            "usage: colloc-shim FOLDER (an absolute path; only collocd starts this program)\n");
        return 2;
    }
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0 || claim_take(argv[1]) != 0)
        return 1;
    struct shim shim = {.folder = argv[1], .deadline_us = TIME_NEVER, .warning_us = TIME_NEVER};
    run_attempt(&shim);
    int r;
    while ((r = exit_record_write(shim.folder, &shim.result)) < 0 && r != -ENOENT)
        usleep(WRITE_AGAIN_US); /* still claimed: the daemon sees it running until the disk takes
                                   the record */
    spec_file_fini(&shim.file);
    return r < 0;
}
