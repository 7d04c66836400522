/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files of Slurm's configuration folder. All texts are made before the first is written, and
 * each is replaced as a whole. slurm.conf names the others, so it is written after them, and
 * cleaned before them: a crash between two files leaves a configuration that Slurm can start with.
 */
#include "cli/slurm_folder.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/span_parts.h"
#include "slurmconf/conf_text.h"
#include "slurmconf/login_conf.h"
#include "slurmconf/lua_text.h"

enum { CONF_MAX_BYTES = 16 << 20 };

/* Keeps the text of the file, with and without colloc's earlier part: setup begins from the latter,
 * so that it can be repeated. Included files must exist, others need not. */
static int add_file(
    struct slurm_folder *folder, char *path, const char *comment, struct fault *fault)
{
    size_t size = 0;
    struct folder_file file = {.path = path, .comment = comment};
    if (!path || folder->count == FOLDER_FILES_MAX) {
        free(path);
        return fault_set(fault, path ? E2BIG : ENOMEM, "more than %d files", FOLDER_FILES_MAX);
    }
    int r = file_read(path, CONF_MAX_BYTES, fault, &file.old_text, &size);
    if (r == 0 && strlen(file.old_text) != size)
        r = fault_set(fault, EINVAL, "%s: has a NUL byte", path);
    bool may_miss = (folder->n_confs > 0 || folder->has_no_conf) && r == -ENOENT;
    if (r == 0 || may_miss)
        file.text = marked_text_remove(span_of(file.old_text ? file.old_text : ""), comment, NULL);
    folder->files[folder->count++] = file;
    if (r < 0 && !may_miss)
        return r;
    return file.text ? 0 : fault_set(fault, ENOMEM, "out of memory");
}

static int add_named(
    struct slurm_folder *folder, const char *name, const char *comment, struct fault *fault)
{
    char *path;
    if (asprintf(&path, "%s%s%s", *name == '/' ? "" : folder->path, *name == '/' ? "" : "/", name) <
        0)
        path = NULL;
    return add_file(folder, path, comment, fault);
}

/* The files that file number `i` includes. */
static int add_included(struct slurm_folder *folder, size_t i, struct fault *fault)
{
    struct conf_text conf;
    int r = conf_text_parse(span_of(folder->files[i].text), &conf);
    for (size_t k = 0; k < conf.count && r == 0; k++) {
        struct span name;
        char buffer[PATH_MAX];
        if (!conf_included(conf.lines[k].text, &name) || !span_copy(name, buffer, sizeof buffer))
            continue;
        if (strpbrk(buffer, "*?[%"))
            fprintf(stderr, "colloc: warning: Include %s is not read: its nodes stay as they are\n",
                buffer);
        else
            r = add_named(folder, buffer, "#", fault);
    }
    conf_text_fini(&conf);
    return r;
}

static int refuse_folder(const char *path, const char *file, int error, struct fault *fault)
{
    return fault_set(fault, error, "%s%s: %s: name the folder of slurm.conf with --folder", path,
        file, strerror(error));
}

/* slurm.conf may include files, which are read after it and may include others. */
int slurm_folder_open(const char *path, struct fault *fault, struct slurm_folder *ret_folder)
{
    *ret_folder = (struct slurm_folder){.path = realpath(path, NULL)};
    if (!ret_folder->path)
        return refuse_folder(path, "", errno, fault);
    int r = add_named(ret_folder, "slurm.conf", "#", fault);
    if (r == -ENOENT)
        return refuse_folder(ret_folder->path, "/slurm.conf", ENOENT, fault);
    for (size_t i = 0; i < ret_folder->count && r == 0; i++)
        r = add_included(ret_folder, i, fault);
    ret_folder->n_confs = ret_folder->count;
    if (r == 0)
        r = add_named(ret_folder, "gres.conf", "#", fault);
    if (r == 0)
        r = add_named(ret_folder, "plugstack.conf", "#", fault);
    if (r == 0)
        r = add_named(ret_folder, LOGIN_CONF_NAME, "#", fault);
    for (size_t i = 0; lua_names[i] && r == 0; i++)
        r = add_named(ret_folder, lua_names[i], "--", fault);
    return r;
}

int slurm_folder_open_files(const char *path, const char *const *names, struct fault *fault,
    struct slurm_folder *ret_folder)
{
    *ret_folder = (struct slurm_folder){.path = realpath(path, NULL), .has_no_conf = true};
    if (!ret_folder->path && errno == ENOENT)
        ret_folder->path = strdup(path);
    int r = ret_folder->path ? 0 : fault_set(fault, errno, "%s: %s", path, strerror(errno));
    for (size_t i = 0; names[i] && r == 0; i++)
        r = add_named(ret_folder, names[i], "#", fault);
    return r;
}

void slurm_folder_close(struct slurm_folder *folder)
{
    for (size_t i = 0; i < folder->count; i++) {
        free(folder->files[i].path);
        free(folder->files[i].old_text);
        free(folder->files[i].text);
        free(folder->files[i].new_text);
    }
    free(folder->path);
    *folder = (struct slurm_folder){0};
}

struct folder_file *slurm_folder_find(struct slurm_folder *folder, const char *name)
{
    size_t size = strlen(folder->path);
    for (size_t i = 0; i < folder->count; i++) {
        const char *path = folder->files[i].path;
        if (strncmp(path, folder->path, size) == 0 && path[size] == '/' &&
            strcmp(path + size + 1, name) == 0)
            return &folder->files[i];
    }
    return NULL;
}

bool slurm_folder_setting(
    const struct slurm_folder *folder, const char *key, char *ret_value, size_t size)
{
    *ret_value = '\0';
    for (size_t i = 0; i < folder->n_confs; i++) {
        struct conf_text conf;
        struct span value;
        if (conf_text_parse(span_of(folder->files[i].text), &conf) == 0)
            for (size_t k = 0; k < conf.count; k++)
                if (conf_find(conf.lines[k].text, key, &value) &&
                    !span_copy(value, ret_value, size))
                    *ret_value = '\0';
        conf_text_fini(&conf);
    }
    return *ret_value;
}

static bool is_changed(const struct folder_file *file)
{
    return file->new_text && strcmp(file->new_text, file->old_text ? file->old_text : "") != 0;
}

/* ---- writing ---- */

/* The file's own place, behind links. Returns 0; or -EXDEV with a fault when it is not below the
 * folder. */
static int find_place(const struct slurm_folder *folder, const struct folder_file *file,
    char place[PATH_MAX], struct fault *fault)
{
    size_t size = strlen(folder->path);
    if (!realpath(file->path, place))
        snprintf(place, PATH_MAX, "%s", file->path);
    if (strncmp(place, folder->path, size) == 0 && place[size] == '/')
        return 0;
    return fault_set(fault, EXDEV,
        "%s is not in %s: nothing was written; make the changes that are printed without --write "
        "by hand",
        place, folder->path);
}

/* The owner and the mode stay. A file in which nothing but colloc's part was is removed. */
static int write_file(const char *place, const struct folder_file *file, struct fault *fault)
{
    struct stat stat_now = {.st_mode = 0644, .st_uid = geteuid(), .st_gid = getegid()};
    bool is_conf = strstr(place, "slurm.conf");
    int r = 0;
    if (stat(place, &stat_now) < 0 && errno != ENOENT)
        r = -errno;
    else if (!is_conf && strspn(file->new_text, " \t\r\n") == strlen(file->new_text))
        r = unlink(place) == 0 ? 0 : -errno;
    else
        r = file_write_atomic(
            place, file->new_text, strlen(file->new_text), stat_now.st_mode & 07777);
    if (r == 0 && (stat_now.st_uid != geteuid() || stat_now.st_gid != getegid()) &&
        chown(place, stat_now.st_uid, stat_now.st_gid) < 0 && errno != ENOENT)
        r = -errno;
    return r < 0 ? fault_set(fault, -r, "%s: %s", place, strerror(-r)) : 0;
}

/* No file is written before the places of all are known. The order is that of the head of this
 * file. */
int slurm_folder_write(struct slurm_folder *folder, bool removing, struct fault *fault)
{
    char place[PATH_MAX];
    int r = 0, written = 0;
    for (size_t i = 0; i < folder->count && r == 0 && folder->has_no_conf; i++)
        if (is_changed(&folder->files[i]) && mkdir(folder->path, 0755) < 0 && errno != EEXIST)
            r = fault_set(fault, errno, "%s: %s", folder->path, strerror(errno));
    for (size_t i = 0; i < folder->count && r == 0; i++)
        if (is_changed(&folder->files[i]))
            r = find_place(folder, &folder->files[i], place, fault);
    for (size_t i = 0; i < folder->count && r == 0; i++) {
        const struct folder_file *file = &folder->files[removing ? i : folder->count - 1 - i];
        if (!is_changed(file))
            continue;
        r = find_place(folder, file, place, fault);
        if (r == 0)
            r = write_file(place, file, fault);
        written += r == 0;
    }
    return r < 0 ? r : written;
}

/* ---- printing ---- */

static bool has_line(struct span text, struct span wanted)
{
    struct span line;
    while (span_next_line(&text, &line))
        if (span_equals(line, wanted))
            return true;
    return false;
}

/* The lines of one text that the other has not, without comments. */
static void print_missing(const char *comment, struct span text, struct span other, char sign)
{
    struct span rest = text, line;
    while (span_next_line(&rest, &line))
        if (!span_starts(line, comment) && !has_line(other, line))
            printf("%c%.*s\n", sign, (int)line.size, line.at);
}

/* Lines that go and lines that come, as diff -u marks them; a Lua script is named only. */
int slurm_folder_print(const struct slurm_folder *folder)
{
    int count = 0;
    for (size_t i = 0; i < folder->count; i++) {
        const struct folder_file *file = &folder->files[i];
        if (!is_changed(file))
            continue;
        struct span old_text = span_of(file->old_text ? file->old_text : "");
        count++;
        if (*file->comment == '-') {
            printf("%s (`colloc slurm script %s` prints colloc's part)\n\n", file->path,
                strrchr(file->path, '/') + 1);
            continue;
        }
        printf("%s%s\n", file->path, file->old_text ? "" : " (new)");
        print_missing(file->comment, old_text, span_of(file->new_text), '-');
        print_missing(file->comment, span_of(file->new_text), old_text, '+');
        putchar('\n');
    }
    return count;
}
