/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a function in a child process as a user, with a time limit. The parent forks, and watches
 * two descriptors of the child and a timer, whichever comes first:
 *
 *     a pipe     the child's report, or its end before that
 *     a timer    the order's limit, later where processors are busy: the child is killed
 *     a pidfd    the child is gone and can be reaped: perhaps long after the other two
 *
 * The handles of a helper are one block of memory, which is freed when all three are closed.
 */
#include "service/user_helper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clamp.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/process.h"
#include "exec/identity.h"

struct user_helper_handles {
    struct user_helper *helper; /* NULL: it is done or was left */
    struct user_helper_order order;
    uv_poll_t news, gone;
    uv_timer_t limit;
    int64_t begun_us; /* on the monotonic clock */
    int open;         /* of the three */
    int from, to, pidfd;
    pid_t child;
};

/* A user can read the environment of the user's processes: of root's variables only those stay that
 * programs need. */
static void forget_environment(void)
{
    static const char *const needed[] = {"PATH=", "LD_LIBRARY_PATH=", "LANG=", "LC_", "COLLOC_"};
    char **to = environ;
    for (char **entry = environ; *entry; entry++)
        for (size_t i = 0; i < ARRAY_SIZE(needed); i++)
            if (strncmp(*entry, needed[i], strlen(needed[i])) == 0)
                *to++ = *entry;
    *to = NULL;
}

int user_helper_become(const struct user_helper_order *order)
{
    struct identity identity;
    if (geteuid() == 0 && order->uid != 0)
        forget_environment();
    int r = identity_init(&identity, order->uid, order->gid);
    return r < 0 ? r : identity_become(&identity);
}

/* The loop's signal handlers write to a pipe that the daemon shares: a signal to the child must not
 * get there. */
static void reset_signals(void)
{
    for (int i = 1; i < NSIG; i++)
        signal(i, SIG_DFL);
}

/* Above all the event log's lock and the sockets: while a stopped child has them, the next daemon
 * cannot have them. */
static void close_all_but(int fd)
{
    close_range(3, (unsigned)fd - 1, 0);
    close_range((unsigned)fd + 1, ~0U, 0);
}

_Noreturn void user_helper_end(struct user_helper *helper, const struct user_helper_report *report)
{
    file_write_fd(helper->handles->to, report, sizeof *report);
    _exit(0);
}

static void on_closed(uv_handle_t *handle)
{
    struct user_helper_handles *handles = handle->data;
    if (--handles->open > 0)
        return;
    close(handles->from);
    close(handles->pidfd);
    free(handles);
}

static void close_news(struct user_helper_handles *handles)
{
    uv_close((uv_handle_t *)&handles->news, on_closed);
    uv_close((uv_handle_t *)&handles->limit, on_closed);
}

/* Watched once the child was killed, so that its report is read first. */
static void on_gone(uv_poll_t *gone, int status, int events)
{
    struct user_helper_handles *handles = gone->data;
    waitpid(handles->child, NULL, WNOHANG);
    uv_close((uv_handle_t *)gone, on_closed);
    if (handles->order.on_gone)
        handles->order.on_gone(handles->order.gone_context);
}

static void finish_helper(struct user_helper_handles *handles, int r)
{
    struct user_helper *helper = handles->helper;
    struct user_helper_report report = {0};
    if (r == 0 && read(handles->from, &report, sizeof report) != (ssize_t)sizeof report)
        r = -EIO;
    kill(handles->child, SIGKILL);
    uv_poll_start(&handles->gone, UV_READABLE, on_gone);
    uv_unref((uv_handle_t *)&handles->gone);
    if (r < 0)
        report.answer = fault_set(
            &report.fault, -r, "could not %s: %s", handles->order.what, strerror(-r));
    helper->handles = NULL;
    handles->helper = NULL;
    close_news(handles);
    helper->on_done(helper, report.answer, &report.fault);
}

static void on_news(uv_poll_t *news, int status, int events)
{
    finish_helper(news->data, 0);
}

int user_helper_left_ms(const struct user_helper_order *order, int64_t passed_us, int64_t queued_us)
{
    int64_t not_counted_us = clamp_int64(queued_us, 0, order->queued_ms * MS_US);
    int64_t left_us = order->limit_ms * MS_US + not_counted_us - passed_us;
    return left_us > 0 ? (int)((left_us + MS_US - 1) / MS_US) : 0;
}

/* libuv's loop runs timers before it polls. If collocd itself had to wait for a processor, the
 * helper may have reported, and the loop has not read the report yet. */
static bool has_news(const struct user_helper_handles *handles)
{
    struct pollfd report = {.fd = handles->from, .events = POLLIN};
    return poll(&report, 1, 0) > 0;
}

static void on_limit(uv_timer_t *limit)
{
    struct user_helper_handles *handles = limit->data;
    int left_ms = user_helper_left_ms(&handles->order, clock_monotonic_us() - handles->begun_us,
        process_queued_us(handles->child));
    if (has_news(handles))
        finish_helper(handles, 0);
    else if (left_ms > 0)
        uv_timer_start(limit, on_limit, (uint64_t)left_ms, 0);
    else
        finish_helper(handles, -ETIMEDOUT);
}

static void watch_helper(struct user_helper_handles *handles, uv_loop_t *loop)
{
    uv_poll_init(loop, &handles->news, handles->from);
    uv_poll_init(loop, &handles->gone, handles->pidfd);
    uv_timer_init(loop, &handles->limit);
    handles->open = 3;
    handles->begun_us = clock_monotonic_us();
    handles->news.data = handles->gone.data = handles->limit.data = handles;
    uv_poll_start(&handles->news, UV_READABLE, on_news);
    uv_timer_start(&handles->limit, on_limit, (uint64_t)handles->order.limit_ms, 0);
}

/* Forks and opens the child's pidfd. Returns 0, USER_HELPER_CHILD in the child, or -errno. */
static int fork_child(struct user_helper_handles *handles)
{
    handles->child = fork();
    if (handles->child == 0)
        return USER_HELPER_CHILD;
    if (handles->child < 0)
        return -errno;
    handles->pidfd = pidfd_open(handles->child, 0);
    if (handles->pidfd >= 0)
        return 0;
    int errnum = errno;
    kill(handles->child, SIGKILL);
    waitpid(handles->child, NULL, 0); /* it has not begun anything that could keep it */
    return -errnum;
}

int user_helper_begin(struct user_helper *helper, uv_loop_t *loop,
    const struct user_helper_order *order, struct fault *fault)
{
    int ends[2];
    struct user_helper_handles *handles = calloc(1, sizeof *handles);
    if (!handles || pipe2(ends, O_CLOEXEC) < 0) {
        int errnum = handles ? errno : ENOMEM;
        free(handles);
        return fault_set(fault, errnum, "could not %s: %s", order->what, strerror(errnum));
    }
    *handles = (struct user_helper_handles){
        .helper = helper, .order = *order, .from = ends[0], .to = ends[1], .pidfd = -1};
    helper->handles = handles;
    int r = fork_child(handles);
    if (r == USER_HELPER_CHILD) {
        reset_signals();
        close_all_but(ends[1]);
        return USER_HELPER_CHILD;
    }
    close(ends[1]);
    if (r < 0) {
        close(ends[0]);
        free(handles);
        helper->handles = NULL;
        return fault_set(fault, -r, "could not %s: %s", order->what, strerror(-r));
    }
    watch_helper(handles, loop);
    return 0;
}

void user_helper_leave(struct user_helper *helper)
{
    struct user_helper_handles *handles = helper->handles;
    if (!handles)
        return;
    close_news(handles);
    uv_close((uv_handle_t *)&handles->gone, on_closed);
    helper->handles = NULL;
}
