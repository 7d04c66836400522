/*
 * One MPS control daemon per user, started as that user: clients of one user share a GPU's SMs, and different users
 * are kept apart (an MPS server serves one user at a time) by time-slicing between their servers.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/units.h"
#include "daemon/daemon.h"
#include "gpu/mps.h"

#define SICK_US        (60 * SECOND_US)
#define CHILD_LIMIT_MS ((int)(MPS_START_LIMIT_US / MS_US) + 1000)

static int make_home(const char *path, uid_t uid, gid_t gid, struct fault *fault)
{
    int r = file_make_folders(path, 0711);
    if (r == 0 && geteuid() == 0 && (chown(path, uid, gid) < 0 || chmod(path, 0700) < 0))
        r = -errno;
    return r < 0 ? fault_set(fault, -r, "%s: %s", path, strerror(-r)) : 0;
}

static int become(uid_t uid, gid_t gid)
{
    if (geteuid() != 0)
        return 0;
    return setgroups(1, &gid) < 0 || setgid(gid) < 0 || setuid(uid) < 0 ? -errno : 0;
}

/* The loop's handlers write to a pipe that is the daemon's too: a signal meant for the child must not reach that. */
static void reset_signals(void)
{
    for (int i = 1; i < NSIG; i++)
        signal(i, SIG_DFL);
}

struct report {
    int answer;
    struct fault fault;
};

/* The child is the user's, who may stop it: it is not waited for without end, and not left behind. */
static int hear(int from, pid_t child, struct report *ret_report)
{
    struct pollfd news = {.fd = from, .events = POLLIN};
    int r = -ETIMEDOUT;
    if (poll(&news, 1, CHILD_LIMIT_MS) > 0)
        r = read(from, ret_report, sizeof *ret_report) == (ssize_t)sizeof *ret_report ? 0 : -EIO;
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    return r;
}

/* Starts it from a child that has become the user, and hears through a pipe how that went. */
static int start_as(uid_t uid, gid_t gid, const char *pipe_dir, const char *log_dir, const char *const *uuids,
                    size_t count, struct fault *fault)
{
    struct report report = {.answer = -EIO};
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return fault_set(fault, errno, "pipe: %s", strerror(errno));
    pid_t child = fork();
    if (child == 0) {
        reset_signals();
        report.answer = become(uid, gid);
        if (report.answer == 0)
            report.answer = mps_start(pipe_dir, log_dir, uuids, count, &report.fault);
        file_write_fd(ends[1], &report, sizeof report);
        _exit(0);
    }
    close(ends[1]);
    int heard = child < 0 ? -errno : hear(ends[0], child, &report);
    close(ends[0]);
    if (heard < 0)
        report.answer =
            fault_set(&report.fault, -heard, "the MPS control daemon could not be started: %s", strerror(-heard));
    *fault = report.fault;
    return report.answer == MPS_ALREADY_ALIVE ? 0 : report.answer;
}

static size_t list_gpus(const struct daemon *daemon, const char **uuids, size_t room)
{
    const struct cluster_view *view = core_view(daemon->core);
    size_t n = 0;
    for (int i = 0; i < view->n_gpus && n < room; i++)
        if (view->gpus[i].id.is_place && !view->gpus[i].id.is_mig_instance)
            uuids[n++] = view->gpus[i].id.uuid;
    return n;
}

int mps_for_user(struct daemon *daemon, uid_t uid, gid_t gid, char *ret_pipe_dir, size_t size, struct fault *fault)
{
    char home[560], pipe_dir[600], log_dir[600];
    const char *uuids[256];
    snprintf(home, sizeof home, "%s/mps/%u", daemon->config.state_dir, (unsigned)uid);
    snprintf(pipe_dir, sizeof pipe_dir, "%s/pipe", home);
    snprintf(log_dir, sizeof log_dir, "%s/log", home);
    snprintf(ret_pipe_dir, size, "%s", pipe_dir);
    struct mps_sick *sick = &daemon->mps_sick[uid % (sizeof daemon->mps_sick / sizeof *daemon->mps_sick)];
    if (sick->uid == uid && clock_monotonic_us() < sick->until_us)
        return fault_set(fault, EAGAIN, "MPS failed to start less than a minute ago");
    int r = make_home(home, uid, gid, fault);
    if (r < 0)
        return r;
    r = start_as(uid, gid, pipe_dir, log_dir, uuids, list_gpus(daemon, uuids, 256), fault);
    if (r < 0)
        *sick = (struct mps_sick){uid, clock_monotonic_us() + SICK_US};
    return r;
}
