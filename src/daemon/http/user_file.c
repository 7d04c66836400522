/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads wait in one queue, first in, first out, except that a user with USER_FILE_HELPERS_PER_USER
 * helpers lets others pass. A timer answers the first one when it has waited too long.
 */
#include "daemon/http/user_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/units.h"
#include "daemon/user_helper.h"
#include "exec/named_file.h"

/* One read, waiting or with a helper. */
struct request {
    struct request *next;
    struct user_files *files;
    struct user_file_read read;
    struct user_file_piece *piece; /* mapped while it has a helper */
    struct user_helper helper;
    int64_t limit_us; /* of waiting, on the monotonic clock */
};

/* A helper that has not been reaped. */
struct helper {
    struct user_files *files;
    bool is_there;
    uid_t uid;
};

struct user_files {
    uv_loop_t *loop;
    uv_timer_t waited_enough;
    struct helper helpers[USER_FILE_HELPERS];
    struct request *waiting, **waiting_end;
    struct request *under_way;
};

/* ---- in the helper ---- */

static int read_piece(const struct user_file_read *read, struct user_file_piece *piece)
{
    struct stat status;
    int fd = named_file_open(read->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0);
    if (fd < 0)
        return fd;
    if (fstat(fd, &status) < 0)
        return -errno;
    if (!S_ISREG(status.st_mode))
        return -EISDIR;
    piece->offset = user_file_offset(read->offset, status.st_size);
    if (piece->offset > status.st_size) /* it has become shorter (exec/output_writer.h) */
        piece->offset = status.st_size;
    ssize_t n = piece->offset < status.st_size
                    ? pread(fd, piece->data, sizeof piece->data, piece->offset)
                    : 0;
    piece->size = n;
    return n < 0 ? -errno : 0;
}

static int fault_of(const struct user_file_read *read, int r, struct fault *fault)
{
    return fault_set(fault, -r, "%.400s: %s", read->path,
        r == -EISDIR ? "is no regular file" : named_file_error(-r));
}

/* ---- helpers ---- */

static struct helper *find_helper(struct user_files *files, uid_t uid)
{
    struct helper *unused = NULL;
    int of_user = 0;
    for (int i = 0; i < USER_FILE_HELPERS; i++) {
        struct helper *helper = &files->helpers[i];
        of_user += helper->is_there && helper->uid == uid;
        if (!helper->is_there)
            unused = helper;
    }
    return of_user < USER_FILE_HELPERS_PER_USER ? unused : NULL;
}

static void start_waiting(struct user_files *files);

static void on_helper_gone(void *context)
{
    struct helper *helper = context;
    helper->is_there = false;
    start_waiting(helper->files);
}

static void finish_request(struct request *request, int answer, const struct fault *fault)
{
    request->read.on_done(
        request->read.context, answer, answer == 0 ? request->piece : NULL, fault);
    if (request->piece)
        munmap(request->piece, sizeof *request->piece);
    free(request);
}

static void on_read(struct user_helper *helper, int answer, const struct fault *fault)
{
    struct request *request = helper->context;
    struct fault words = *fault;
    for (struct request **at = &request->files->under_way; *at; at = &(*at)->next) {
        if (*at == request) {
            *at = request->next;
            break;
        }
    }
    if (answer == -ETIMEDOUT)
        fault_set(&words, ETIMEDOUT, "%.400s: the file system did not answer within %d s",
            request->read.path, USER_FILE_LIMIT_MS / 1000);
    /* the user may control the helper: its sizes are checked */
    const struct user_file_piece *piece = request->piece;
    bool is_sane = answer != 0 ||
                   (piece->offset >= 0 && piece->size >= 0 && piece->size <= USER_FILE_PIECE);
    finish_request(request, is_sane ? answer : -EIO, &words);
}

static int give_helper(struct request *request, struct helper *helper, struct fault *fault)
{
    const struct user_helper_order order = {.uid = request->read.uid,
        .gid = request->read.gid,
        .limit_ms = USER_FILE_LIMIT_MS,
        .what = "read the file",
        .on_gone = on_helper_gone,
        .gone_context = helper};
    request->piece = mmap(
        NULL, sizeof *request->piece, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (request->piece == MAP_FAILED) {
        request->piece = NULL;
        return fault_set(fault, ENOMEM, "out of memory");
    }
    int child = user_helper_begin(&request->helper, request->files->loop, &order, fault);
    if (child == USER_HELPER_CHILD) {
        struct user_helper_report report = {0};
        report.answer = user_helper_become(&order);
        if (report.answer == 0)
            report.answer = read_piece(&request->read, request->piece);
        if (report.answer < 0)
            fault_of(&request->read, report.answer, &report.fault);
        user_helper_end(&request->helper, &report);
    }
    request->helper.context = request;
    request->helper.on_done = on_read;
    return child;
}

static void start_helper(struct request *request, struct helper *helper)
{
    struct fault fault = {0};
    int r = give_helper(request, helper, &fault);
    if (r < 0) {
        finish_request(request, r, &fault);
        return;
    }
    *helper = (struct helper){.files = request->files, .is_there = true, .uid = request->read.uid};
    request->next = request->files->under_way;
    request->files->under_way = request;
}

/* ---- waiting for one ---- */

static void on_waited_enough(uv_timer_t *timer);

static void watch_waiting(struct user_files *files)
{
    if (uv_is_closing((uv_handle_t *)&files->waited_enough))
        return;
    if (!files->waiting) {
        uv_timer_stop(&files->waited_enough);
        return;
    }
    int64_t left_us = files->waiting->limit_us - clock_monotonic_us();
    uv_timer_start(&files->waited_enough, on_waited_enough,
        left_us > 0 ? (uint64_t)(left_us / MS_US) + 1 : 0, 0);
}

static struct request *unlink_waiting(struct user_files *files, struct request **at)
{
    struct request *request = *at;
    *at = request->next;
    if (files->waiting_end == &request->next)
        files->waiting_end = at;
    request->next = NULL;
    return request;
}

static void start_waiting(struct user_files *files)
{
    for (struct request **at = &files->waiting; *at;) {
        struct helper *helper = find_helper(files, (*at)->read.uid);
        if (helper)
            start_helper(unlink_waiting(files, at), helper);
        else
            at = &(*at)->next;
    }
    watch_waiting(files);
}

static void on_waited_enough(uv_timer_t *timer)
{
    struct user_files *files = timer->data;
    struct fault fault;
    while (files->waiting && files->waiting->limit_us <= clock_monotonic_us()) {
        struct request *request = unlink_waiting(files, &files->waiting);
        fault_set(&fault, ETIMEDOUT, "%.400s: too many files are being read that do not answer",
            request->read.path);
        finish_request(request, -ETIMEDOUT, &fault);
    }
    watch_waiting(files);
}

int user_files_read(struct user_files *files, const struct user_file_read *read)
{
    struct request *request = calloc(1, sizeof *request);
    if (!request)
        return -ENOMEM;
    *request = (struct request){.files = files, .read = *read};
    request->limit_us = clock_monotonic_us() + USER_FILE_LIMIT_MS * MS_US;
    *files->waiting_end = request;
    files->waiting_end = &request->next;
    start_waiting(files);
    return 0;
}

/* ---- life ---- */

struct user_files *user_files_create(uv_loop_t *loop)
{
    struct user_files *files = calloc(1, sizeof *files);
    if (!files)
        return NULL;
    files->loop = loop;
    files->waiting_end = &files->waiting;
    uv_timer_init(loop, &files->waited_enough);
    files->waited_enough.data = files;
    return files;
}

static void cancel_all(struct request *request)
{
    struct fault fault;
    fault_set(&fault, ECANCELED, "the daemon is going down");
    for (struct request *next; request; request = next) {
        next = request->next;
        user_helper_leave(&request->helper);
        finish_request(request, -ECANCELED, &fault);
    }
}

void user_files_close(struct user_files *files)
{
    if (!files)
        return;
    cancel_all(files->waiting);
    cancel_all(files->under_way);
    files->waiting = files->under_way = NULL;
    files->waiting_end = &files->waiting;
    uv_close((uv_handle_t *)&files->waited_enough, NULL);
}

void user_files_destroy(struct user_files *files)
{
    free(files);
}
