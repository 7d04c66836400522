/* SPDX-License-Identifier: Apache-2.0 */
/* The folder of a project is that of its first file: of -f, of COMPOSE_FILE, or of the nearest file
 * with a name of compose's, in this folder or above it. */
#include "cli/compose_run.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/array.h"
#include "base/file.h"
#include "cli/compose_words.h"
#include "cli/docker_run.h"
#include "cli/print.h"

enum { PROJECT_MAX = 8 << 20 }; /* bytes; chosen: a large project has some 100 KiB */

/* Cuts the last part of a path; "/" stays. */
static void cut_last(char *path)
{
    char *slash = strrchr(path, '/');
    slash[slash == path] = '\0';
}

static bool has_compose_file(const char *folder)
{
    static const char *const names[] = {
        "compose.yaml", "compose.yml", "docker-compose.yml", "docker-compose.yaml"};
    char path[PATH_MAX + 32];
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        if (access(path, F_OK) == 0)
            return true;
    }
    return false;
}

static bool find_directory(const struct compose_call *call, char ret_directory[PATH_MAX])
{
    const char *variable = getenv("COMPOSE_FILE"), *separator = getenv("COMPOSE_PATH_SEPARATOR");
    char first[PATH_MAX], here[PATH_MAX];
    const char *file = call->file;
    if (!file && variable && *variable) {
        snprintf(first, sizeof first, "%.*s", (int)strcspn(variable, separator ? separator : ":"),
            variable);
        file = first;
    }
    if (!getcwd(here, sizeof here))
        return false;
    if (call->directory)
        return realpath(call->directory, ret_directory);
    if (file && strcmp(file, "-") != 0) {
        if (!realpath(file, ret_directory))
            return false;
        cut_last(ret_directory);
        return true;
    }
    snprintf(ret_directory, PATH_MAX, "%s", here);
    while (!file && !has_compose_file(ret_directory) && ret_directory[1])
        cut_last(ret_directory);
    if (!has_compose_file(ret_directory))
        snprintf(ret_directory, PATH_MAX, "%s", here);
    return true;
}

static json_t *read_project(const char *program, int skipped, const char *const *words)
{
    struct word_list list = {0};
    json_t *project = NULL;
    char *text = malloc(PROJECT_MAX);
    word_list_add(&list, "docker");
    compose_add_config(&list, words);
    if (text && word_list_end(&list) &&
        docker_read_output(
            program, (const char *const *)list.words + skipped, true, text, PROJECT_MAX))
        project = json_loads(text, 0, NULL);
    word_list_fini(&list);
    free(text);
    return project;
}

/* Writes the project into a file in memory that outlives exec. Returns its descriptor, or -1. */
static int write_project(const json_t *project)
{
    char *text = json_dumps(project, 0);
    int fd = text ? memfd_create("compose.yaml", 0) : -1;
    if (fd >= 0 && file_write_fd(fd, text, strlen(text)) < 0) {
        close(fd);
        fd = -1;
    }
    free(text);
    return fd;
}

bool compose_add_words(struct word_list *list, const char *program, int skipped,
    const char *const *words, const struct docker_task *task)
{
    const struct compose_call call = compose_parse(words);
    char directory[PATH_MAX], file[64];
    json_t *project = read_project(program, skipped, words);
    bool is_ready = find_directory(&call, directory) && project && compose_join_task(project, task);
    int fd = is_ready ? write_project(project) : -1;
    if (fd >= 0) {
        snprintf(file, sizeof file, "/proc/self/fd/%d", fd);
        compose_add_replaced(
            list, words, file, directory, json_string_value(json_object_get(project, "name")));
    } else {
        print_error("docker: warning: containers of this project are no part of task %s, and do "
                    "not end with it: `docker compose config --format=json` (compose 2) printed no "
                    "project",
            task->id);
    }
    json_decref(project);
    return fd >= 0;
}
