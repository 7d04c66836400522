/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Both tools append, so a file is read from where the last call stopped, and a part that is not
 * complete is left for the next call.
 *
 *     runs/7/version_0/events.out.tfevents.1796000000.gpu1.4711.0        any depth
 *     mlruns/0/4f2c1ab83c1d/metrics/val_loss    "1796000000123 0.41 3" (ms, value, step) in a line
 *     mlruns/0/4f2c1ab83c1d/tags/colloc.task    "12"
 */
#include "cli/metric_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "cli/event_records.h"

enum {
    DEPTH_MAX = 8,             /* chosen: of folders below the given one */
    FILES_MAX = 4096,          /* chosen */
    EVENT_SIZE_MAX = 16 << 20, /* chosen: bytes; a larger event is a picture, and skipped */
    TEXT_PIECE = 64 << 10,     /* chosen: bytes of MLflow's file that are read at once */
};

/* ---- TensorBoard ---- */

static void take_scalar(void *context, const struct event_scalar *scalar)
{
    struct metric_files *files = context;
    const struct metric_point point = {scalar->step, scalar->value};
    if (scalar->time_s >= files->since_s && scalar->step >= 0)
        files->on_point(files->context, &point);
}

/* Reads the record at the file's offset. Returns 1, 0: it is not complete yet, or -EBADMSG. */
static int read_record(struct metric_files *files, struct metric_file *file, int fd, off_t size)
{
    const struct event_visitor visitor = {files, take_scalar};
    unsigned char head[EVENT_HEAD_SIZE];
    uint64_t event_size;
    if (size - file->offset < EVENT_HEAD_SIZE + EVENT_TAIL_SIZE ||
        pread(fd, head, sizeof head, file->offset) != (ssize_t)sizeof head)
        return 0;
    int r = event_head_read(head, &event_size);
    if (r < 0 || event_size > (uint64_t)(size - file->offset - EVENT_HEAD_SIZE - EVENT_TAIL_SIZE))
        return r;
    size_t whole = (size_t)event_size + EVENT_TAIL_SIZE;
    if (event_size <= EVENT_SIZE_MAX) {
        unsigned char *data = malloc(whole);
        bool is_read = data &&
                       pread(fd, data, whole, file->offset + EVENT_HEAD_SIZE) == (ssize_t)whole;
        r = is_read ? event_read(data, (size_t)event_size, files->metric, &visitor) : 0;
        free(data);
        if (!is_read || r < 0)
            return r;
    }
    file->offset += (off_t)(EVENT_HEAD_SIZE + whole);
    return 1;
}

static void read_events(struct metric_files *files, struct metric_file *file, int fd, off_t size)
{
    int r;
    while ((r = read_record(files, file, fd, size)) == 1)
        ;
    if (r < 0) {
        fprintf(stderr, "colloc: metric: %s: no event file, or damaged at byte %jd\n", file->path,
            (intmax_t)file->offset);
        file->is_other = true;
    }
}

/* ---- MLflow ---- */

/* "1796000000123 0.41 3": a line without a step is one of older versions, at step 0. */
static void take_line(struct metric_files *files, const char *line)
{
    char *end;
    double time_s = (double)strtoll(line, &end, 10) / 1000;
    struct metric_point point = {.value = strtod(end, &end)};
    point.step = strtoll(end, NULL, 10);
    if (time_s >= files->since_s && point.step >= 0)
        files->on_point(files->context, &point);
}

static void read_lines(struct metric_files *files, struct metric_file *file, int fd, off_t size)
{
    CLEANUP_FREE char *text = malloc(TEXT_PIECE + 1);
    while (text && file->offset < size) {
        ssize_t n = pread(fd, text, TEXT_PIECE, file->offset);
        if (n <= 0)
            return;
        text[n] = '\0';
        char *line = text, *end;
        while ((end = memchr(line, '\n', (size_t)(text + n - line)))) {
            *end = '\0';
            take_line(files, line);
            line = end + 1;
        }
        if (line == text)
            return;
        file->offset += line - text;
    }
}

/* Is the run of this file, RUN/metrics/NAME, the task's? */
static bool is_own_run(const struct metric_files *files, const char *path)
{
    char tag_path[PATH_MAX], tag[32];
    size_t size = strlen(path) - strlen("/metrics/") - strlen(files->metric);
    int n = snprintf(tag_path, sizeof tag_path, "%.*s/tags/colloc.task", (int)size, path);
    if (n >= (int)sizeof tag_path || file_read_start(tag_path, tag, sizeof tag) <= 0)
        return !files->tag;
    tag[strcspn(tag, "\n")] = '\0';
    return !files->tag || strcmp(tag, files->tag) == 0;
}

/* ---- the files ---- */

static bool is_wanted(const struct metric_files *files, const char *path, const char *name)
{
    if (files->kind == METRIC_TENSORBOARD)
        return strstr(name, "tfevents") != NULL;
    size_t size = strlen(path), metric = strlen(files->metric), before = strlen("/metrics/");
    return size > metric + before && strcmp(path + size - metric, files->metric) == 0 &&
           strncmp(path + size - metric - before, "/metrics/", before) == 0;
}

static void add_file(struct metric_files *files, const char *path)
{
    for (size_t i = 0; i < files->n; i++)
        if (strcmp(files->files[i].path, path) == 0)
            return;
    if (files->n >= FILES_MAX || ARRAY_RESERVE(files->files, files->capacity, files->n + 1) < 0)
        return;
    char *copy = strdup(path);
    if (copy)
        files->files[files->n++] = (struct metric_file){.path = copy};
}

static void find_files(struct metric_files *files, const char *folder, int depth)
{
    DIR *dir = depth <= DEPTH_MAX ? opendir(folder) : NULL;
    if (!dir)
        return;
    for (const struct dirent *entry; (entry = readdir(dir));) {
        char path[PATH_MAX];
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
            snprintf(path, sizeof path, "%s/%s", folder, entry->d_name) >= (int)sizeof path)
            continue;
        struct stat status; /* some file systems leave d_type unknown; links are not followed */
        if (lstat(path, &status) < 0)
            continue;
        if (S_ISDIR(status.st_mode))
            find_files(files, path, depth + 1);
        else if (S_ISREG(status.st_mode) && is_wanted(files, path, entry->d_name))
            add_file(files, path);
    }
    closedir(dir);
}

static void read_file(struct metric_files *files, struct metric_file *file)
{
    bool is_mlflow = files->kind == METRIC_MLFLOW;
    struct stat status;
    if (file->is_other || (is_mlflow && !is_own_run(files, file->path)))
        return; /* the tag may come after the metric: the next call asks again */
    int fd = open(file->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return;
    if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > file->offset)
        (is_mlflow ? read_lines : read_events)(files, file, fd, status.st_size);
    close(fd);
}

void metric_files_poll(struct metric_files *files)
{
    find_files(files, files->folder, 0);
    for (size_t i = 0; i < files->n; i++)
        read_file(files, &files->files[i]);
}

void metric_files_fini(struct metric_files *files)
{
    for (size_t i = 0; i < files->n; i++)
        free(files->files[i].path);
    free(files->files);
}
