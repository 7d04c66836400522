/* GET /v1/tasks/ID/log: a piece of what a task has written. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/units.h"
#include "daemon/routes.h"

#define LOG_CHUNK (256u << 10)

/*
 * Opens a log. One that the user named is opened as that user, so that nobody reads through us what
 * is not his: file access ids are this thread's own, and the daemon gave up its supplementary
 * groups when it started.
 */
static int open_log(const char *path, bool named_by_user, uid_t uid, gid_t gid)
{
    if (!named_by_user)
        return open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    int old_gid = setfsgid(gid), old_uid = setfsuid(uid);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    int error = errno;
    setfsuid((uid_t)old_uid);
    setfsgid((gid_t)old_gid);
    errno = error;
    return fd;
}

static void log_path(struct daemon *daemon, const json_t *record, const json_t *detail,
    const char *stream, int64_t attempt, char *path, size_t size, bool *ret_named)
{
    uint64_t id = (uint64_t)json_integer_value(json_object_get(record, "id"));
    bool is_stderr = strcmp(stream, "stderr") == 0;
    const char *output = json_string_value(json_object_get(detail, "output"));
    const char *error = json_string_value(json_object_get(detail, "error"));
    const char *named = is_stderr && error ? error : output;
    char folder[600];
    *ret_named = named != NULL && !(is_stderr && !error && !output);
    if (*ret_named) {
        struct attempt_spec spec = {.task_id = (int64_t)id};
        spec.cwd = json_string_value(json_object_get(detail, "cwd"));
        if (spec_output_path(&spec, named, path, size) == 0)
            return;
    }
    attempt_folder(daemon, id, (int)attempt, folder, sizeof folder);
    snprintf(path, size, "%s/%s", folder, stream);
}

/* Both streams go to one file. */
static bool is_merged(const json_t *detail)
{
    const char *output = json_string_value(json_object_get(detail, "output"));
    const char *error = json_string_value(json_object_get(detail, "error"));
    return output && (!error || strcmp(output, error) == 0);
}

/* What the reply's headers say beside the piece. */
struct log_state {
    int64_t attempt;
    bool ended, merged;
};

/* `size`: of the log; 0 without one. A negative offset counts from the end. */
static void reply_log(struct api_request *request, int fd, int64_t size, int64_t offset,
    const struct log_state *state)
{
    if (offset < 0)
        offset = size + offset > 0 ? size + offset : 0;
    char *data = malloc(LOG_CHUNK);
    ssize_t n = data && offset < size ? pread(fd, data, LOG_CHUNK, offset) : 0;
    if (!data || n < 0) {
        api_reply_error(
            request, 500, "the log cannot be read: %s", strerror(data ? errno : ENOMEM));
        free(data);
        return;
    }
    char next_text[24], attempt_text[24];
    snprintf(next_text, sizeof next_text, "%lld", (long long)offset + n);
    snprintf(attempt_text, sizeof attempt_text, "%lld", (long long)state->attempt);
    const struct api_header headers[] = {{"Colloc-Next-Offset", next_text},
        {"Colloc-Attempt", attempt_text},
        {"Colloc-Ended", state->ended && n == 0 ? "true" : "false"},
        {"Colloc-Merged", state->merged ? "true" : "false"}, {NULL, NULL}};
    api_reply_bytes(request, "application/octet-stream", data, (size_t)n, headers);
    free(data);
}

static bool is_done(const json_t *record)
{
    return !json_is_null(json_object_get(record, "ended_at"));
}

static void serve_log(struct daemon *daemon, struct api_request *request, const json_t *record,
    const json_t *detail, const char *stream, int64_t offset, int64_t attempt)
{
    char path[5000];
    bool named;
    int64_t attempts = json_integer_value(json_object_get(record, "attempt_count"));
    bool last = attempt == attempts;
    log_path(daemon, record, detail, stream, attempt, path, sizeof path, &named);
    gid_t gid = (gid_t)json_integer_value(json_object_get(detail, "gid"));
    int fd = attempt ? open_log(path, named, owner_of(record), gid) : -1;
    struct stat status = {0};
    if (fd < 0 && attempt && errno != ENOENT) {
        api_reply_error(request, errno == EACCES ? 403 : 500, "%s: %s", path, strerror(errno));
    } else if (fd >= 0 && (fstat(fd, &status) < 0 || !S_ISREG(status.st_mode))) {
        api_reply_error(request, 409, "%s: is no regular file", path);
    } else {
        struct log_state state = {attempt, !last || is_done(record), is_merged(detail)};
        reply_log(request, fd, status.st_size, offset, &state);
    }
    if (fd >= 0)
        close(fd);
}

/* The stream, offset (from the end where it is negative) and attempt that the query names, over
 * those in place. False after having
 * answered what is wrong with them. */
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
    struct daemon *daemon = context;
    const char *stream;
    int64_t offset = 0, attempt;
    uint64_t id = api_request_id(request);
    json_t *record = find_record(daemon, request, id);
    if (!record)
        return;
    attempt = json_integer_value(json_object_get(record, "attempt_count"));
    if (!may_touch(request, owner_of(record)))
        api_reply_error(request, 403, "task %llu is not yours", (unsigned long long)id);
    else if (read_query(request, id, &stream, &offset, &attempt)) {
        json_t *detail = NULL;
        job_read_detail(daemon, id, NULL, &detail);
        serve_log(daemon, request, record, detail, stream, offset, attempt);
        json_decref(detail);
    }
    json_decref(record);
}
