#include "daemon/errand.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "exec/identity.h"

struct errand_handles {
    struct errand *errand; /* NULL: nobody waits any more */
    const char *what;
    uv_poll_t news;
    uv_timer_t limit;
    int open; /* of the two */
    int from, to;
    pid_t child;
};

/* What the child starts shows its environment to the user: nothing of root's goes there but what
 * programs need. */
static void forget_environment(void)
{
    static const char *const needed[] = {"PATH=", "LD_LIBRARY_PATH=", "LANG=", "LC_", "COLLOC_"};
    char **to = environ;
    for (char **entry = environ; *entry; entry++)
        for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
            if (strncmp(*entry, needed[i], strlen(needed[i])) == 0)
                *to++ = *entry;
    *to = NULL;
}

int errand_become(const struct errand_order *order)
{
    struct identity identity;
    if (geteuid() == 0 && order->uid != 0)
        forget_environment();
    int r = identity_init(&identity, order->uid, order->gid);
    return r < 0 ? r : identity_become(&identity);
}

/* The loop's handlers write to a pipe that is the daemon's too: a signal meant for the child must
 * not reach that. */
static void reset_signals(void)
{
    for (int i = 1; i < NSIG; i++)
        signal(i, SIG_DFL);
}

/* Above all the event log's lock and the sockets: a user who stops the child would keep them from
 * the next daemon. */
static void close_all_but(int fd)
{
    close_range(3, (unsigned)fd - 1, 0);
    close_range((unsigned)fd + 1, ~0U, 0);
}

_Noreturn void errand_end(struct errand *errand, const struct errand_report *report)
{
    file_write_fd(errand->handles->to, report, sizeof *report);
    _exit(0);
}

static void on_closed(uv_handle_t *handle)
{
    struct errand_handles *handles = handle->data;
    if (--handles->open > 0)
        return;
    close(handles->from);
    free(handles);
}

static void close_handles(struct errand_handles *handles)
{
    uv_close((uv_handle_t *)&handles->news, on_closed);
    uv_close((uv_handle_t *)&handles->limit, on_closed);
}

static void finish(struct errand_handles *handles, int r)
{
    struct errand *errand = handles->errand;
    struct errand_report report = {0};
    if (r == 0 && read(handles->from, &report, sizeof report) != (ssize_t)sizeof report)
        r = -EIO;
    kill(handles->child, SIGKILL);
    waitpid(handles->child, NULL, 0);
    if (r < 0)
        report.answer = fault_set(
            &report.fault, -r, "could not %s: %s", handles->what, strerror(-r));
    errand->handles = NULL;
    close_handles(handles);
    errand->on_done(errand, report.answer, &report.fault);
}

static void on_news(uv_poll_t *news, int status, int events)
{
    finish(news->data, 0);
}

static void on_limit(uv_timer_t *limit)
{
    finish(limit->data, -ETIMEDOUT);
}

static void watch(struct errand_handles *handles, uv_loop_t *loop, int limit_ms)
{
    uv_poll_init(loop, &handles->news, handles->from);
    uv_timer_init(loop, &handles->limit);
    handles->open = 2;
    handles->news.data = handles->limit.data = handles;
    uv_poll_start(&handles->news, UV_READABLE, on_news);
    uv_timer_start(&handles->limit, on_limit, (uint64_t)limit_ms, 0);
}

int errand_begin(
    struct errand *errand, uv_loop_t *loop, const struct errand_order *order, struct fault *fault)
{
    int ends[2];
    struct errand_handles *handles = calloc(1, sizeof *handles);
    if (!handles || pipe2(ends, O_CLOEXEC) < 0) {
        int errnum = handles ? errno : ENOMEM;
        free(handles);
        return fault_set(fault, errnum, "could not %s: %s", order->what, strerror(errnum));
    }
    *handles = (struct errand_handles){
        .errand = errand, .what = order->what, .from = ends[0], .to = ends[1]};
    errand->handles = handles;
    handles->child = fork();
    if (handles->child == 0) {
        reset_signals();
        close_all_but(ends[1]);
        return ERRAND_CHILD;
    }
    int errnum = errno;
    close(ends[1]);
    if (handles->child < 0) {
        close(ends[0]);
        free(handles);
        errand->handles = NULL;
        return fault_set(fault, errnum, "could not %s: %s", order->what, strerror(errnum));
    }
    watch(handles, loop, order->limit_ms);
    return 0;
}

void errand_leave(struct errand *errand)
{
    if (!errand->handles)
        return;
    close_handles(errand->handles);
    errand->handles = NULL;
}
