/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes and reads how an attempt ended, so that a full disk or a power cut loses nothing. The
 * `exit` file is written into space that exit_record_reserve has allocated, made durable, and then
 * renamed: a reader finds the whole record or none.
 */
#include "exec/exit_record.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "base/units.h"
#include "exec/tagged_fields.h"

#define MAGIC         "colloc-exit"
#define VERSION       1 /* of the file; others are refused */
#define EXIT_NAME     "exit"
#define RESERVED_NAME "exit.reserved"

/* A record is smaller: its longest field is the evidence. */
#define RESERVED_BYTES ((int64_t)4 * KIB)

int exit_record_reserve(const char *folder)
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s/" RESERVED_NAME, folder) >= (int)sizeof path)
        return -ENAMETOOLONG;
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    int errnum = posix_fallocate(fd, 0, RESERVED_BYTES);
    close(fd);
    return errnum == EOPNOTSUPP ? 0 : -errnum;
}

/* Writes into the reserved space, and renames the file once it is durable. */
static int write_reserved(const char *folder, const char *path, const struct tagged_fields *record)
{
    char reserved[PATH_MAX];
    snprintf(reserved, sizeof reserved, "%s/" RESERVED_NAME, folder);
    int fd = open(reserved, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int r = file_write_fd(fd, record->data, record->size);
    if (r == 0 && (ftruncate(fd, (off_t)record->size) < 0 || fsync(fd) < 0))
        r = -errno;
    close(fd);
    if (r == 0 && rename(reserved, path) < 0)
        r = -errno;
    return r == 0 ? file_sync_folder_of(path) : r;
}

int exit_record_write(const char *folder, const struct attempt_exit *attempt)
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s/" EXIT_NAME, folder) >= (int)sizeof path)
        return -ENAMETOOLONG;
    struct tagged_fields record = {0};
    tagged_fields_put_int(&record, MAGIC, VERSION);
    tagged_fields_put_int(&record, "code", attempt->exit_code);
    tagged_fields_put_int(&record, "signal", attempt->signal);
    tagged_fields_put_text(&record, "class", failure_name(attempt->failure.class));
    tagged_fields_put_text(&record, "framework", attempt->failure.framework);
    tagged_fields_put_text(&record, "evidence", attempt->failure.evidence);
    tagged_fields_put_int(&record, "start_wall_us", attempt->start_wall_us);
    tagged_fields_put_int(&record, "end_wall_us", attempt->end_wall_us);
    tagged_fields_put_int(&record, "max_rss_bytes", attempt->max_rss_bytes);
    tagged_fields_put_int(&record, "cpu_us", attempt->cpu_us);
    int r = tagged_fields_finish(&record);
    if (r == 0 && write_reserved(folder, path, &record) < 0)
        r = file_write_atomic(path, record.data, record.size, 0600);
    tagged_fields_fini(&record);
    return r;
}

static int take_class(struct span value, enum failure_class *ret)
{
    char name[16];
    return span_copy(value, name, sizeof name) && failure_parse(name, ret) ? 0 : -EBADMSG;
}

static int take_text(struct span value, char *buffer, size_t size)
{
    return span_copy(value, buffer, size) ? 0 : -EBADMSG;
}

static int take_int(struct span value, int min, int max, int *ret)
{
    int64_t n;
    if (tagged_fields_int(value, min, max, &n) < 0)
        return -EBADMSG;
    *ret = (int)n;
    return 0;
}

static int take_field(struct attempt_exit *attempt, struct span key, struct span value)
{
    if (span_is(key, "code"))
        return take_int(value, -1, 255, &attempt->exit_code);
    if (span_is(key, "signal"))
        return take_int(value, 0, 127, &attempt->signal);
    if (span_is(key, "class"))
        return take_class(value, &attempt->failure.class);
    if (span_is(key, "framework"))
        return take_text(value, attempt->failure.framework, sizeof attempt->failure.framework);
    if (span_is(key, "evidence"))
        return take_text(value, attempt->failure.evidence, sizeof attempt->failure.evidence);
    if (span_is(key, "start_wall_us"))
        return tagged_fields_int(value, INT64_MIN, INT64_MAX, &attempt->start_wall_us);
    if (span_is(key, "end_wall_us"))
        return tagged_fields_int(value, INT64_MIN, INT64_MAX, &attempt->end_wall_us);
    if (span_is(key, "max_rss_bytes"))
        return tagged_fields_int(value, 0, INT64_MAX, &attempt->max_rss_bytes);
    if (span_is(key, "cpu_us"))
        return tagged_fields_int(value, 0, INT64_MAX, &attempt->cpu_us);
    return -EBADMSG;
}

int exit_record_decode(const char *data, size_t size, struct attempt_exit *ret)
{
    *ret = (struct attempt_exit){.exit_code = -1, .failure.class = FAILURE_LOST};
    struct span rest = {data, size}, key, value;
    int r = tagged_fields_next(&rest, &key, &value);
    if (r <= 0 || !span_is(key, MAGIC) || !span_is(value, "1"))
        return -EBADMSG;
    while ((r = tagged_fields_next(&rest, &key, &value)) > 0)
        if ((r = take_field(ret, key, value)) < 0)
            break;
    return r;
}

int exit_record_read(const char *folder, struct fault *fault, struct attempt_exit *ret)
{
    char path[PATH_MAX], *data;
    size_t size;
    if (snprintf(path, sizeof path, "%s/" EXIT_NAME, folder) >= (int)sizeof path)
        return fault_set(fault, ENAMETOOLONG, "%s: path too long", folder);
    int r = file_read(path, 64 * KIB, fault, &data, &size);
    if (r < 0)
        return r;
    r = exit_record_decode(data, size, ret);
    free(data);
    return r < 0 ? fault_set(fault, EBADMSG,
                       "%s: not an exit record this version of colloc can read", path)
                 : 0;
}
