/* SPDX-License-Identifier: Apache-2.0 */
/* What an estimate adds to a queue of helpers: the file is read as the user, memory is limited, and
 * the kernel ends a helper before the daemon when memory is out. */
#include "service/estimate_helpers.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "exec/named_file.h"
#include "model/export.h"
#include "service/helper_queue.h"

enum {
    HELPER_NICENESS = 5, /* chosen: the daemon goes before estimates; beside a training on each
                            processor an estimate has a quarter of one (sched(7)), at 10 a tenth */
};

#define MEMORY_MORE ((rlim_t)2 << 30) /* bytes; chosen: many times what a large summary takes */

struct estimate_helpers {
    struct helper_queue *queue;
    int limit_ms;
};

/* One estimate, until it is answered. */
struct pending_estimate {
    struct estimate_helpers *helpers;
    struct estimate_work work;
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

/* In addition to the mapped memory, which is most of the daemon (with a sanitizer terabytes). */
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

static int estimate_in_helper(
    void *context, const struct user_helper_order *order, void *ret_answer, struct fault *fault)
{
    const struct pending_estimate *pending = context;
    const struct estimate_work *work = &pending->work;
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

/* ---- in the daemon ---- */

static void on_helper_done(void *context, int r, const void *answer, const struct fault *fault)
{
    struct pending_estimate *pending = context;
    struct fault words = *fault;
    if (r == -ETIMEDOUT)
        fault_set(&words, ETIMEDOUT, "the estimate took longer than %d s",
            pending->helpers->limit_ms / 1000);
    if (r == HELPER_QUEUE_BUSY) {
        fault_set(&words, EBUSY, "too many large summaries are being estimated: try again later");
        r = ESTIMATE_BUSY;
    }
    pending->work.on_done(pending->work.context, r, answer, &words);
    free(pending);
}

int estimate_helpers_begin(struct estimate_helpers *helpers, const struct estimate_work *work)
{
    struct pending_estimate *pending = calloc(1, sizeof *pending);
    if (!pending)
        return -ENOMEM;
    *pending = (struct pending_estimate){helpers, *work};
    const struct helper_work of_queue = {.uid = work->uid,
        .gid = work->gid,
        .answer_size = work->answer_size,
        .context = pending,
        .run = estimate_in_helper,
        .on_done = on_helper_done};
    int r = helper_queue_add(helpers->queue, &of_queue);
    if (r < 0)
        free(pending);
    return r;
}

struct estimate_helpers *estimate_helpers_create(uv_loop_t *loop, int limit_ms)
{
    const struct helper_queue_options options = {.loop = loop,
        .helpers = ESTIMATE_HELPERS,
        .per_user = ESTIMATE_HELPERS_PER_USER,
        .limit_ms = limit_ms,
        .wait_ms = ESTIMATE_WAITS * limit_ms,
        .what = "estimate from the summary"};
    struct estimate_helpers *helpers = calloc(1, sizeof *helpers);
    if (!helpers)
        return NULL;
    helpers->limit_ms = limit_ms;
    helpers->queue = helper_queue_create(&options);
    if (helpers->queue)
        return helpers;
    free(helpers);
    return NULL;
}

void estimate_helpers_close(struct estimate_helpers *helpers)
{
    if (helpers)
        helper_queue_close(helpers->queue);
}

void estimate_helpers_destroy(struct estimate_helpers *helpers)
{
    if (!helpers)
        return;
    helper_queue_destroy(helpers->queue);
    free(helpers);
}
