/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds out whether a step of a Slurm job ended by a lack of GPU memory. A helper process does all
 * of it, because each step may block:
 *
 *     scontrol show job      may the job be requeued: a batch job that still runs, with Requeue=1
 *                            and fewer restarts than the setting recoveries; where is its output
 *     read the output        by a second process that has become the job's user: the file may be
 *                            anything that the user could name. It has a shorter time limit
 *     scontrol requeuehold   when the output proves that GPU memory ran out
 *
 * While slurmctld does not answer, the helper asks again: if a job's end is recorded as FAILED, the
 * jobs that depend on its success fail with it. A requeue that failed is sent again only once the
 * job is shown as before: its user may have cancelled it meanwhile. The processes end with the
 * agent, and the next agent judges again: a requeue must not arrive late, when the job may have run
 * again already.
 *
 * What users put into the name of a job can look like a field of `scontrol show job`. It can only
 * affect their own job: the output is read with their rights, and the requeued job is theirs.
 */
#include "daemon/node/crash_verdict.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "base/units.h"
#include "daemon/node/slurm_client.h"
#include "exec/failure_classify.h"
#include "exec/named_file.h"

enum {
    VERDICT_MS = 30 * 1000, /* chosen: below what the plugin waits (src/spank) */
    ASK_MS = 25 * 1000,     /* of these, until slurmctld is not asked again */
    ASK_AGAIN_MS = 250,
    READ_MS = 4000, /* for the user's file system */
    JOB_TEXT_MAX = 64 * 1024,
};

struct crash_verdict {
    struct node *node;
    struct user_helper helper;
    crash_verdict_done *on_done; /* NULL: it was left */
    void *context;
    uint32_t job, array_job, array_task; /* as in node_step */
    uid_t uid;
    gid_t gid;
    pid_t agent;
    int status;
};

/* ---- as the job's user ---- */

/* Scans what can be opened; a file that cannot be proves nothing. */
static void scan_file(const char *path, struct logscan *scan)
{
    int fd = *path ? named_file_open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC, 0) : -1;
    if (fd >= 0)
        logscan_update(scan, fd);
    logscan_finish(scan);
    if (fd >= 0)
        close(fd);
}

_Noreturn static void read_as_user(const struct crash_verdict *verdict, const char *error_path,
    const char *output_path, int to, pid_t parent)
{
    static struct logscan out, err;
    const struct user_helper_order order = {.uid = verdict->uid, .gid = verdict->gid};
    struct failure failure = {0};
    if (user_helper_become(&order) < 0)
        _exit(1);
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* a change of user clears it */
    if (getppid() != parent)
        _exit(1);
    scan_file(error_path, &err);
    scan_file(strcmp(output_path, error_path) == 0 ? "" : output_path, &out);
    const struct attempt_end end = {
        .exit_code = WIFEXITED(verdict->status) ? WEXITSTATUS(verdict->status) : -1,
        .signal = WIFSIGNALED(verdict->status) ? WTERMSIG(verdict->status) : 0};
    failure_classify(&end, &out, &err, &failure);
    if (failure.class != FAILURE_GPU_OOM)
        _exit(0);
    size_t size = strlen(failure.evidence);
    _exit(write(to, failure.evidence, size ? size : 1) > 0 ? 0 : 1);
}

/* Returns whether GPU memory ran out, with the line that proves it. */
static bool find_evidence(const struct crash_verdict *verdict, const char *error_path,
    const char *output_path, char *ret_evidence, size_t size)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return false;
    pid_t parent = getpid(), pid = _Fork(); /* without libuv's handler (slurm_client.c) */
    if (pid == 0)
        read_as_user(verdict, error_path, output_path, ends[1], parent);
    close(ends[1]);
    struct pollfd news = {.fd = ends[0], .events = POLLIN};
    ssize_t n = pid > 0 && poll(&news, 1, READ_MS) > 0 ? read(ends[0], ret_evidence, size - 1) : 0;
    close(ends[0]);
    if (pid > 0) {
        kill(pid, SIGKILL);
        waitpid(pid, NULL, WNOHANG); /* the file system may keep it; it has an heir */
    }
    ret_evidence[n > 0 ? n : 0] = '\0';
    return n > 0;
}

/* ---- in the helper process, as root ---- */

static bool is_field(const char *job, const char *key, const char *value)
{
    char text[64];
    return slurm_client_field(job, key, NULL, text, sizeof text) && strcmp(text, value) == 0;
}

/* The last task of an array has the number of the whole array, which scontrol would then use. */
static void write_id(const struct crash_verdict *verdict, char *id, size_t size)
{
    if (verdict->array_job)
        snprintf(id, size, "%u_%u", verdict->array_job, verdict->array_task);
    else
        snprintf(id, size, "%u", verdict->job);
}

/* Returns the job's count of restarts; -1: it may not be requeued. */
static int find_restarts(const struct crash_verdict *verdict, const char *job)
{
    char number[16];
    int64_t restarts;
    if (!is_field(job, "JobState", "RUNNING") || !is_field(job, "BatchFlag", "1") ||
        !is_field(job, "Requeue", "1") ||
        !slurm_client_field(job, "Restarts", NULL, number, sizeof number) ||
        parse_int64(number, 0, verdict->node->parts.config->core.recoveries_max - 1, &restarts) < 0)
        return -1;
    return (int)restarts;
}

/* slurmctld may have requeued it although its answer was lost. */
static bool is_requeued(const char *job, int restarts)
{
    char number[16];
    snprintf(number, sizeof number, "%d", restarts + 1);
    return is_field(job, "JobState", "PENDING") && is_field(job, "Restarts", number);
}

static bool may_ask_again(int64_t begun_us)
{
    const struct timespec pause = {.tv_nsec = ASK_AGAIN_MS * 1000000L};
    bool may = clock_monotonic_us() - begun_us < ASK_MS * MS_US;
    if (may)
        nanosleep(&pause, NULL);
    return may;
}

/* The messages of scontrol of a job, and of a task of an array. */
static bool is_unknown(const char *text)
{
    return strstr(text, "Invalid job id") ||
           (strncmp(text, "Job ", strlen("Job ")) == 0 && strstr(text, " not found\n"));
}

/* Writes what scontrol shows of the job into `job`. Returns 0; -EAGAIN: slurmctld does not answer;
 * -ESRCH: it does not know the job; -ENOENT: there is no scontrol. */
static int show_job(const char *id, char *job, size_t size)
{
    const char *show[] = {"scontrol", "--oneliner", "show", "job", id, NULL};
    int r = slurm_client_run(show, job, size);
    if (r > 0 && is_unknown(job))
        return -ESRCH;
    return r == 0 || r == -ENOENT ? r : -EAGAIN;
}

/* As show_job, but asks again until slurmctld answers, or the time limit is reached. */
static int show_job_in_time(const char *id, char *job, size_t size, int64_t begun_us)
{
    int r;
    do
        r = show_job(id, job, size);
    while (r == -EAGAIN && may_ask_again(begun_us));
    return r;
}

/* Returns 0 when the job is requeued and held, 1 if it has ended meanwhile, or as show_job. */
static int requeue_and_hold(const struct crash_verdict *verdict, const char *id, int restarts,
    char *job, size_t size, int64_t begun_us)
{
    const char *requeue[] = {"scontrol", "requeuehold", id, NULL};
    do {
        if (slurm_client_run(requeue, job, size) == 0)
            return 0;
        int r = show_job_in_time(id, job, size, begun_us);
        if (r < 0)
            return r;
        if (is_requeued(job, restarts))
            return 0;
        if (find_restarts(verdict, job) != restarts)
            return 1;
    } while (may_ask_again(begun_us));
    return -EAGAIN;
}

/* `late`: the message when the time limit is reached. */
static int set_scontrol_fault(struct fault *report, int r, const char *late)
{
    return fault_set(report, -r, "%s",
        r == -ESRCH    ? "Slurm does not know the job"
        : r == -ENOENT ? "there is no scontrol on PATH"
                       : late);
}

/* Paths may have spaces, so each ends where the next field begins. What follows StdOut depends on
 * the version: Power until 23.11. With 26.05 StdErr is empty where the output file
 * gets both. */
static void find_files(const char *job, char *error_path, char *output_path, size_t size)
{
    static const char *const nexts[] = {" Power=", " TresPer", " MailUser="};
    *error_path = *output_path = '\0';
    slurm_client_field(job, "StdErr", " StdIn=", error_path, size);
    slurm_client_field(job, "StdOut", "\n", output_path, size);
    for (size_t i = 0; i < ARRAY_SIZE(nexts); i++) {
        char *next = strstr(output_path, nexts[i]);
        if (next)
            *next = '\0';
    }
    if (!*error_path)
        memcpy(error_path, output_path, size);
}

/* Returns the job's count of restarts and 1, with the evidence in `report`; 0: not requeued. */
static int requeue_if_out_of_memory(const struct crash_verdict *verdict, struct fault *report)
{
    static char job[JOB_TEXT_MAX], error_path[4096], output_path[4096];
    const int64_t begun_us = clock_monotonic_us();
    char id[32];
    write_id(verdict, id, sizeof id);
    int r = show_job_in_time(id, job, sizeof job, begun_us);
    if (r < 0)
        return set_scontrol_fault(report, r, "Slurm does not show the job");
    int restarts = find_restarts(verdict, job);
    if (restarts < 0)
        return 0;
    find_files(job, error_path, output_path, sizeof error_path);
    if (!find_evidence(verdict, error_path, output_path, report->text, sizeof report->text))
        return 0;
    r = requeue_and_hold(verdict, id, restarts, job, sizeof job, begun_us);
    if (r < 0)
        return set_scontrol_fault(report, r, "Slurm does not requeue the job");
    return r == 0 ? restarts + 1 : 0;
}

/* It ends with the agent: the next one judges the job again. */
static int judge_job(void *context, struct fault *report)
{
    const struct crash_verdict *verdict = context;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != verdict->agent)
        _exit(1);
    return requeue_if_out_of_memory(verdict, report);
}

/* ---- in the loop ---- */

static void on_done(struct user_helper *helper, int answer, const struct fault *fault)
{
    struct crash_verdict *verdict = helper->context;
    struct node_crash crash = {.job = verdict->job, .restarts = (uint32_t)(answer - 1)};
    if (answer > 0) {
        snprintf(crash.evidence, sizeof crash.evidence, "%.199s", fault->text);
        text_mend(crash.evidence);
        log_info("job %u ran out of GPU memory beside others and is requeued: %s", verdict->job,
            crash.evidence);
        node_crash_note(verdict->node, &crash);
    } else if (answer < 0) {
        log_warning("job %u failed, and it is not known whether GPU memory ran out: %s",
            verdict->job, fault->text);
    }
    if (verdict->on_done)
        verdict->on_done(verdict->context, answer > 0 ? &crash : NULL);
    free(verdict);
}

struct crash_verdict *crash_verdict_begin(struct node *node, const struct node_step *step,
    int status, crash_verdict_done *on_verdict, void *context)
{
    struct crash_verdict *verdict = calloc(1, sizeof *verdict);
    const struct user_helper_order order = {.limit_ms = VERDICT_MS, .what = "judge a failed job"};
    struct fault fault = {0};
    if (!verdict)
        return NULL;
    *verdict = (struct crash_verdict){.node = node,
        .on_done = on_verdict,
        .context = context,
        .job = step->job,
        .array_job = step->array_job,
        .array_task = step->array_task,
        .uid = step->uid,
        .gid = step->gid,
        .agent = getpid(),
        .status = status,
        .helper = {.context = verdict, .on_done = on_done}};
    if (user_helper_run(&verdict->helper, node->parts.loop, &order, judge_job, &fault) < 0) {
        log_warning("job %u: %s", step->job, fault.text);
        free(verdict);
        return NULL;
    }
    return verdict;
}

void crash_verdict_leave(struct crash_verdict *verdict)
{
    if (verdict)
        verdict->on_done = NULL;
}
