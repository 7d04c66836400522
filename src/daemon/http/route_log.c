/* SPDX-License-Identifier: Apache-2.0 */
/* GET /v1/tasks/ID/log: a piece of a task's output. A file that the user named is read by a helper
 * process as that user (user_file.h); output in the state folder is read here. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/units.h"
#include "daemon/http/http_answers.h"
#include "daemon/http/routes.h"
#include "daemon/state_dir.h"
#include "exec/attempt.h"

#define LOG_CHUNK ((size_t)USER_FILE_PIECE)

enum {
    READS_MAX = 3
}; /* of a piece that is dropped meanwhile; chosen: the limit acts each 100 ms */

/* The piece that a request wants, until it is read. */
struct log_request {
    struct http *http;
    struct api_request *request;
    int64_t attempt;
    int64_t offset; /* negative: from the end */
    bool has_ended; /* that attempt: nothing more will come */
    bool is_merged; /* both streams go to one file */
};

/* Whether default output is in the state folder: the task's working folder did not take it. */
static bool is_kept(
    const json_t *detail, const char *named, const char *folder, char *path, size_t size)
{
    const char *output = json_string_value(json_object_get(detail, "output"));
    if (named != output || !json_is_true(json_object_get(detail, "output_is_default")))
        return false;
    snprintf(path, size, "%s/stdout", folder);
    return access(path, F_OK) == 0;
}

static void log_path(struct http *http, const json_t *record, const json_t *detail,
    const char *stream, int64_t attempt, char *path, size_t size, bool *ret_named)
{
    uint64_t id = (uint64_t)json_integer_value(json_object_get(record, "id"));
    bool is_stderr = strcmp(stream, "stderr") == 0;
    const char *output = json_string_value(json_object_get(detail, "output"));
    const char *error = json_string_value(json_object_get(detail, "error"));
    const char *named = is_stderr && error ? error : output;
    char folder[STATE_PATH_SIZE];
    state_dir_attempt(http->parts.config->state_dir, id, (int)attempt, folder, sizeof folder);
    *ret_named = named != NULL && !(is_stderr && !error && !output);
    if (*ret_named && is_kept(detail, named, folder, path, size)) {
        *ret_named = false;
        return;
    }
    if (*ret_named) {
        struct attempt_spec spec = {.task_id = (int64_t)id,
            .array_id = json_integer_value(json_object_get(record, "array_id")),
            .array_index = json_integer_value(json_object_get(record, "array_index")),
            .name = json_string_value(json_object_get(detail, "name"))};
        spec.cwd = json_string_value(json_object_get(detail, "cwd"));
        if (spec_output_path(&spec, named, path, size) == 0)
            return;
    }
    snprintf(path, size, "%s/%s", folder, stream);
}

/* Both streams go to one file. */
static bool is_merged(const json_t *detail)
{
    const char *output = json_string_value(json_object_get(detail, "output"));
    const char *error = json_string_value(json_object_get(detail, "error"));
    return output && (!error || strcmp(output, error) == 0);
}

/* A piece of a file. */
struct piece {
    const char *data;
    int64_t offset;  /* where it begins, or the file ends */
    int64_t size;    /* of the data, in bytes */
    int64_t dropped; /* wanted bytes before it that are not stored any more */
};

static void reply_piece(const struct log_request *log, const struct piece *piece)
{
    char next_text[24], attempt_text[24], dropped_text[24];
    int64_t offset = piece->offset > 0 ? piece->offset : 0, size = piece->size;
    snprintf(next_text, sizeof next_text, "%lld", (long long)offset + (long long)size);
    snprintf(attempt_text, sizeof attempt_text, "%lld", (long long)log->attempt);
    snprintf(dropped_text, sizeof dropped_text, "%lld", (long long)piece->dropped);
    const struct api_header headers[] = {{"Colloc-Next-Offset", next_text},
        {"Colloc-Attempt", attempt_text},
        {"Colloc-Ended", log->has_ended && size == 0 ? "true" : "false"},
        {"Colloc-Merged", log->is_merged ? "true" : "false"},
        {piece->dropped ? "Colloc-Dropped" : NULL, dropped_text}, {NULL, NULL}}; /* NULL ends it */
    api_reply_bytes(log->request, "application/octet-stream", piece->data, (size_t)size, headers);
}

static int status_of(int r)
{
    switch (r) {
    case -EACCES:
        return 403;
    case -EISDIR:
    case -ELOOP:
        return 409;
    case -ETIMEDOUT:
    case -ECANCELED:
        return 503;
    default:
        return 500;
    }
}

static void reply_fault(const struct log_request *log, int r, const char *text)
{
    api_reply_error(log->request, status_of(r), "%s", text);
}

/* Returns where data begins from `offset` on: after the part that was dropped
 * (exec/output_cap.h). */
static int64_t find_data(int fd, int64_t offset, int64_t file_size)
{
    off_t found = lseek(fd, offset, SEEK_DATA);
    return found >= 0 ? found : errno == ENXIO ? file_size : offset;
}

/* More may be dropped while it is read, which reads as NUL bytes: then it is read again. */
static int read_behind_dropped(
    int fd, int64_t asked, int64_t file_size, char *data, struct piece *ret_piece)
{
    int64_t offset = asked, found = find_data(fd, asked, file_size);
    ssize_t size = 0;
    for (int reads = 0; reads == 0 || (found > offset && reads < READS_MAX); reads++) {
        offset = found;
        size = pread(fd, data, LOG_CHUNK, offset);
        if (size < 0)
            return -errno;
        found = size > 0 ? find_data(fd, offset, file_size) : offset;
    }
    *ret_piece = (struct piece){data, offset, size, offset - asked};
    return 0;
}

/* Reads from the attempt's folder, which is root's: no user can make that block. */
static int read_kept(const char *path, int64_t asked, char *data, struct piece *ret_piece)
{
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return -errno;
    int r = fstat(fd, &status) < 0 ? -errno : S_ISREG(status.st_mode) ? 0 : -EISDIR;
    int64_t offset = user_file_offset(asked, status.st_size);
    if (r == 0 && offset > status.st_size) /* it was emptied (exec/output_cap.h) */
        offset = status.st_size;
    *ret_piece = (struct piece){.data = data, .offset = offset};
    if (r == 0 && offset < status.st_size)
        r = read_behind_dropped(fd, offset, status.st_size, data, ret_piece);
    close(fd);
    return r;
}

static void serve_kept(const struct log_request *log, const char *path)
{
    struct fault fault;
    char *data = malloc(LOG_CHUNK);
    struct piece piece = {.data = "", .offset = log->offset};
    int r = data ? read_kept(path, log->offset, data, &piece) : -ENOMEM;
    if (r == 0 || r == -ENOENT)
        reply_piece(log, &piece);
    else
        reply_fault(log,
            fault_set(
                &fault, -r, "%.400s: %s", path, r == -EISDIR ? "is no regular file" : strerror(-r)),
            fault.text);
    free(data);
}

static void on_read(
    void *context, int answer, const struct user_file_piece *piece, const struct fault *fault)
{
    struct log_request *log = context;
    if (answer == 0)
        reply_piece(log, &(struct piece){piece->data, piece->offset, piece->size, 0});
    else if (answer == -ENOENT)
        reply_piece(log, &(struct piece){.data = "", .offset = log->offset});
    else
        reply_fault(log, answer, fault->text);
    http_serve_soon(log->http);
    free(log);
}

static void serve_named(const struct log_request *log, uid_t uid, gid_t gid, const char *path)
{
    struct user_file_read read = {
        .uid = uid, .gid = gid, .offset = log->offset, .on_done = on_read};
    struct log_request *kept = malloc(sizeof *kept);
    snprintf(read.path, sizeof read.path, "%s", path);
    if (kept)
        *kept = *log;
    read.context = kept;
    if (kept && user_files_read(log->http->user_files, &read) == 0)
        return;
    free(kept);
    api_reply(log->request, 500, NULL);
}

static bool is_done(const json_t *record)
{
    return !json_is_null(json_object_get(record, "ended_at"));
}

/* Returns the number of the last attempt. Attempts that never started have one, too. Records of
 * earlier versions have no list, and count every attempt. */
static int64_t last_attempt(const json_t *record)
{
    size_t listed = json_array_size(json_object_get(record, "attempts"));
    return listed ? (int64_t)listed : json_integer_value(json_object_get(record, "attempt_count"));
}

static void serve_log(
    const struct log_request *log, const json_t *record, const json_t *detail, const char *stream)
{
    char path[5000];
    bool named;
    log_path(log->http, record, detail, stream, log->attempt, path, sizeof path, &named);
    if (!log->attempt)
        reply_piece(log, &(struct piece){.data = "", .offset = log->offset});
    else if (named)
        serve_named(log, http_record_owner(record),
            (gid_t)json_integer_value(json_object_get(detail, "gid")), path);
    else
        serve_kept(log, path);
}

/* Reads stream, offset (negative: from the end) and attempt from the query; absent ones are
 * unchanged. Returns false after a reply with the mistake. */
static bool read_query(struct api_request *request, uint64_t id, const char **ret_stream,
    int64_t *ret_offset, int64_t *attempt)
{
    const char *offset = api_request_query(request, "offset"),
               *tail = api_request_query(request, "tail"),
               *which = api_request_query(request, "attempt");
    int64_t attempts = *attempt;
    *ret_stream = api_request_query(request, "stream");
    if (!*ret_stream)
        *ret_stream = "stdout";
    if (strcmp(*ret_stream, "stdout") != 0 && strcmp(*ret_stream, "stderr") != 0)
        api_reply_error(request, 400, "stream=%.40s: must be stdout or stderr", *ret_stream);
    else if (offset && parse_int64(offset, 0, INT64_MAX, ret_offset) < 0)
        api_reply_error(request, 400, "offset=%.40s: must be a number of bytes", offset);
    else if (tail && (offset || parse_int64(tail, 0, INT64_MAX, ret_offset) < 0))
        api_reply_error(
            request, 400, "tail=%.40s: must be a number of bytes, without an offset", tail);
    else if (which && attempts == 0)
        api_reply_error(request, 400, "attempt %.20s: task %llu has not been started yet", which,
            (unsigned long long)id);
    else if (which && parse_int64(which, 1, attempts, attempt) < 0)
        api_reply_error(request, 400, "attempt %.20s: task %llu was started %lld time%s", which,
            (unsigned long long)id, (long long)attempts, attempts == 1 ? "" : "s");
    else {
        *ret_offset = tail ? -*ret_offset : *ret_offset;
        return true;
    }
    return false;
}

void route_log(void *context, struct api_request *request)
{
    struct http *http = context;
    const char *stream;
    int64_t offset = 0, attempt;
    uint64_t id = http_request_task_id(http, request);
    json_t *record = http_find_record(http, request, id);
    if (!record)
        return;
    attempt = last_attempt(record);
    if (!may_touch(request, http_record_owner(record)))
        api_reply_error(request, 403, "task %llu is not yours", (unsigned long long)id);
    else if (read_query(request, id, &stream, &offset, &attempt)) {
        json_t *detail = NULL;
        job_read_detail(http->parts.store, id, NULL, &detail);
        int64_t attempts = last_attempt(record);
        const struct log_request log = {.http = http,
            .request = request,
            .attempt = attempt,
            .offset = offset,
            .has_ended = attempt < attempts || is_done(record),
            .is_merged = is_merged(detail)};
        serve_log(&log, record, detail, stream);
        json_decref(detail);
    }
    json_decref(record);
}
