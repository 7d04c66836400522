/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Estimates wait in one list, first in, first out, except that a user with as many helpers as it
 * may have lets others pass. A slot is taken from the start of a helper until it is reaped, which
 * the kernel may put off: a process that waits for a file system does not die. So a timer refuses
 * what has waited too long.
 *
 * The answer comes back in memory that is shared with the helper, the result by its report.
 */
#include "daemon/http/estimate_helpers.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/units.h"
#include "daemon/user_helper.h"
#include "exec/named_file.h"
#include "model/export.h"

enum {
    HELPER_NICENESS = 10, /* chosen: the daemon goes before estimates */
    ESTIMATE_WAITS = 2,   /* time limits that an estimate waits for a helper; chosen */
};

#define MEMORY_MORE ((rlim_t)2 << 30) /* bytes; chosen: many times what a large summary takes */

struct slot {
    struct estimate_helpers *helpers; /* NULL: the slot is free */
    uid_t uid;
};

/* One estimate, waiting or with a helper. */
struct pending_estimate {
    struct pending_estimate *next;
    struct estimate_helpers *helpers;
    struct estimate_work work;
    struct requirement_answer *answer; /* mapped while it has a helper */
    struct user_helper helper;
    int64_t refused_us; /* when it has waited too long, on the monotonic clock */
};

struct estimate_helpers {
    uv_loop_t *loop;
    uv_timer_t waited_enough;
    int limit_ms;
    bool is_closed;
    struct slot slots[ESTIMATE_HELPERS];
    struct pending_estimate *waiting, *running;
};

/* ---- in the helper ---- */

static int read_as_user(const char *path, struct fault *fault, char **ret_text, size_t *ret_size)
{
    struct stat status;
    int fd = named_file_open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0);
    if (fd < 0)
        return fault_set(fault, -fd, "%.400s: %s", path, named_file_error(-fd));
    if (fstat(fd, &status) < 0 || !S_ISREG(status.st_mode))
        return fault_set(fault, EISDIR, "%.400s: is no regular file", path);
    return file_read_fd(fd, path, EXPORT_SIZE_MAX, fault, ret_text, ret_size);
}

/* Without free memory the kernel then kills a helper, not the daemon or a task. To be called before
 * the change of users, after which root owns the file. */
static void offer_to_oom_killer(void)
{
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    file_write_fd(fd, "1000", 4);
    close(fd);
}

/* On top of what is mapped, which is most of the daemon (a sanitizer's is terabytes). */
static void limit_memory(void)
{
    char text[64];
    struct rlimit limit;
    if (file_read_start("/proc/self/statm", text, sizeof text) <= 0 ||
        getrlimit(RLIMIT_AS, &limit) < 0)
        return;
    rlim_t most = strtoull(text, NULL, 10) * (rlim_t)sysconf(_SC_PAGESIZE) + MEMORY_MORE;
    if (limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur < most)
        return;
    limit.rlim_cur = most;
    setrlimit(RLIMIT_AS, &limit);
}

static int estimate_in_helper(const struct estimate_work *work,
    const struct user_helper_order *order, struct requirement_answer *ret_answer,
    struct fault *fault)
{
    char *text = NULL;
    size_t size = work->path ? 0 : strlen(work->text);
    offer_to_oom_killer();
    limit_memory();
    int r = user_helper_become(order);
    if (r < 0)
        return fault_set(
            fault, -r, "cannot become user %u: %s", (unsigned)order->uid, strerror(-r));
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* after the change of users, which resets it */
    setpriority(PRIO_PROCESS, 0, HELPER_NICENESS);
    if (work->path)
        r = read_as_user(work->path, fault, &text, &size);
    if (r == 0)
        r = work->estimate(work->context, text ? text : work->text, size, ret_answer, fault);
    free(text);
    return r;
}

/* ---- slots ---- */

/* Returns NULL when the user, or all users, have as many helpers as they may. */
static struct slot *find_slot(struct estimate_helpers *helpers, uid_t uid)
{
    struct slot *unused = NULL;
    int of_user = 0;
    for (int i = 0; i < ESTIMATE_HELPERS; i++) {
        struct slot *slot = &helpers->slots[i];
        of_user += slot->helpers && slot->uid == uid;
        if (!slot->helpers)
            unused = slot;
    }
    return of_user < ESTIMATE_HELPERS_PER_USER ? unused : NULL;
}

/* ---- one estimate ---- */

static void unlink_pending(struct pending_estimate **list, const struct pending_estimate *pending)
{
    for (struct pending_estimate **at = list; *at; at = &(*at)->next) {
        if (*at == pending) {
            *at = pending->next;
            return;
        }
    }
}

/* `pending` is in no list any more. */
static void finish_pending(struct pending_estimate *pending, int r, const struct fault *fault)
{
    pending->work.on_done(pending->work.context, r, r == 0 ? pending->answer : NULL, fault);
    if (pending->answer)
        munmap(pending->answer, sizeof *pending->answer);
    free(pending);
}

static void start_waiting(struct estimate_helpers *helpers);

static void on_helper_gone(void *context)
{
    struct slot *slot = context;
    struct estimate_helpers *helpers = slot->helpers;
    slot->helpers = NULL;
    start_waiting(helpers);
}

static void on_helper_done(struct user_helper *helper, int r, const struct fault *fault)
{
    struct pending_estimate *pending = helper->context;
    struct estimate_helpers *helpers = pending->helpers;
    struct fault words = *fault;
    unlink_pending(&helpers->running, pending);
    if (r == -ETIMEDOUT)
        fault_set(
            &words, ETIMEDOUT, "the estimate took longer than %d s", helpers->limit_ms / 1000);
    finish_pending(pending, r > 0 ? -EIO : r, &words);
}

/* Forks. Returns 0 or -errno with a fault. */
static int give_helper(struct pending_estimate *pending, struct slot *slot, struct fault *fault)
{
    const struct user_helper_order order = {.uid = pending->work.uid,
        .gid = pending->work.gid,
        .limit_ms = pending->helpers->limit_ms,
        .what = "estimate from the summary",
        .on_gone = on_helper_gone,
        .gone_context = slot};
    void *shared = mmap(
        NULL, sizeof *pending->answer, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return fault_set(fault, ENOMEM, "out of memory");
    pending->answer = shared;
    int r = user_helper_begin(&pending->helper, pending->helpers->loop, &order, fault);
    if (r == USER_HELPER_CHILD) {
        struct user_helper_report report = {0};
        report.answer = estimate_in_helper(&pending->work, &order, pending->answer, &report.fault);
        user_helper_end(&pending->helper, &report);
    }
    pending->helper.context = pending;
    pending->helper.on_done = on_helper_done;
    return r;
}

static void start_pending(struct pending_estimate *pending, struct slot *slot)
{
    struct estimate_helpers *helpers = pending->helpers;
    struct fault fault = {0};
    int r = give_helper(pending, slot, &fault);
    if (r < 0) {
        finish_pending(pending, r, &fault);
        return;
    }
    *slot = (struct slot){.helpers = helpers, .uid = pending->work.uid};
    pending->next = helpers->running;
    helpers->running = pending;
}

/* ---- waiting for one ---- */

static void on_waited_enough(uv_timer_t *timer);

static void watch_waiting(struct estimate_helpers *helpers)
{
    if (helpers->is_closed)
        return;
    if (!helpers->waiting) {
        uv_timer_stop(&helpers->waited_enough);
        return;
    }
    int64_t left_us = helpers->waiting->refused_us - clock_monotonic_us();
    uv_timer_start(&helpers->waited_enough, on_waited_enough,
        left_us > 0 ? (uint64_t)(left_us / MS_US) + 1 : 0, 0);
}

static void start_waiting(struct estimate_helpers *helpers)
{
    for (struct pending_estimate **at = &helpers->waiting; *at;) {
        struct pending_estimate *pending = *at;
        struct slot *slot = find_slot(helpers, pending->work.uid);
        if (slot) {
            *at = pending->next;
            start_pending(pending, slot);
        } else {
            at = &pending->next;
        }
    }
    watch_waiting(helpers);
}

static void on_waited_enough(uv_timer_t *timer)
{
    struct estimate_helpers *helpers = timer->data;
    struct fault fault;
    fault_set(&fault, EBUSY, "too many large summaries are being estimated: try again later");
    while (helpers->waiting && helpers->waiting->refused_us <= clock_monotonic_us()) {
        struct pending_estimate *pending = helpers->waiting;
        helpers->waiting = pending->next;
        finish_pending(pending, -EBUSY, &fault);
    }
    watch_waiting(helpers);
}

static void cancel_all(struct pending_estimate *pending)
{
    struct fault fault;
    fault_set(&fault, ECANCELED, "collocd is going down");
    for (struct pending_estimate *next; pending; pending = next) {
        next = pending->next;
        user_helper_leave(&pending->helper);
        finish_pending(pending, -ECANCELED, &fault);
    }
}

int estimate_helpers_begin(struct estimate_helpers *helpers, const struct estimate_work *work)
{
    struct pending_estimate *pending = calloc(1, sizeof *pending), **end = &helpers->waiting;
    if (!pending)
        return -ENOMEM;
    *pending = (struct pending_estimate){.helpers = helpers, .work = *work};
    pending->refused_us = clock_monotonic_us() + ESTIMATE_WAITS * helpers->limit_ms * MS_US;
    if (helpers->is_closed) {
        cancel_all(pending);
        return 0;
    }
    while (*end)
        end = &(*end)->next;
    *end = pending;
    start_waiting(helpers);
    return 0;
}

/* ---- life ---- */

struct estimate_helpers *estimate_helpers_create(uv_loop_t *loop, int limit_ms)
{
    struct estimate_helpers *helpers = calloc(1, sizeof *helpers);
    if (!helpers)
        return NULL;
    helpers->loop = loop;
    helpers->limit_ms = limit_ms;
    helpers->waited_enough.data = helpers;
    uv_timer_init(loop, &helpers->waited_enough);
    return helpers;
}

void estimate_helpers_close(struct estimate_helpers *helpers)
{
    if (!helpers || helpers->is_closed)
        return;
    struct pending_estimate *waiting = helpers->waiting, *running = helpers->running;
    helpers->waiting = helpers->running = NULL;
    helpers->is_closed = true;
    uv_close((uv_handle_t *)&helpers->waited_enough, NULL);
    cancel_all(waiting);
    cancel_all(running);
}

void estimate_helpers_destroy(struct estimate_helpers *helpers)
{
    free(helpers);
}
