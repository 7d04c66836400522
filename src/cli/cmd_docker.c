/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `colloc docker ...`, in a task: becomes docker, with a new container as a part of the task
 * (docker_words.h). A link `docker` to colloc stands first on a task's PATH where docker is
 * installed, so that scripts call this.
 *
 * A dockerd that can put no container there (docker_place_text) runs it as without colloc, and a
 * warning says so.
 */
#include "cli/docker_run.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/beside.h"
#include "cli/command.h"
#include "cli/compose_run.h"
#include "cli/compose_words.h"
#include "cli/docker_words.h"
#include "cli/help.h"
#include "cli/print.h"

bool docker_find(char program[PATH_MAX])
{
    const char *at = getenv("PATH");
    char self[PATH_MAX] = "", real[PATH_MAX];
    bool knows_self = beside_self(self);
    for (size_t size; at && *at; at += size + (at[size] == ':')) {
        size = strcspn(at, ":");
        int n = snprintf(program, PATH_MAX, "%.*s/docker", (int)size, at);
        if (n < PATH_MAX && access(program, X_OK) == 0 && realpath(program, real) &&
            !(knows_self && strcmp(real, self) == 0))
            return true;
    }
    return false;
}

/* Reads to the end: docker writes the end of its line separately, and fails if the pipe is closed
 * then. Returns how many bytes there were; what `text` has no room for is dropped. */
static size_t read_to_end(int fd, char *text, size_t size)
{
    char dropped[256];
    size_t used = 0, total = 0;
    ssize_t n;
    do {
        bool has_room = used + 1 < size;
        n = has_room ? read(fd, text + used, size - 1 - used) : read(fd, dropped, sizeof dropped);
        used += n > 0 && has_room ? (size_t)n : 0;
        total += n > 0 ? (size_t)n : 0;
    } while (n > 0 || (n < 0 && errno == EINTR));
    text[used] = '\0';
    return total;
}

bool docker_read_output(const char *const *argv, bool is_quiet, char *text, size_t size)
{
    int ends[2], status = -1;
    if (pipe(ends) < 0)
        return false;
    pid_t child = fork();
    if (child == 0) {
        int null = is_quiet ? open("/dev/null", O_WRONLY) : -1;
        dup2(ends[1], STDOUT_FILENO);
        if (null >= 0)
            dup2(null, STDERR_FILENO);
        close(ends[0]);
        close(ends[1]);
        execv(argv[0], (char *const *)(uintptr_t)argv);
        _exit(127);
    }
    close(ends[1]);
    size_t n = read_to_end(ends[0], text, child > 0 ? size : 1);
    close(ends[0]);
    if (child > 0)
        waitpid(child, &status, 0);
    return n > 0 && n < size && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* dockerd answers "systemd 2 [name=seccomp,profile=default name=rootless]". */
enum docker_place docker_find_place(const char *program, char *ret_parent)
{
    const char *const argv[] = {
        program, "info", "--format", "{{.CgroupDriver}} {{.SecurityOptions}}", NULL};
    const char *cgroup = getenv("COLLOC_CGROUP");
    char answer[1024];
    struct stat of_cgroup;
    if (!docker_read_output(argv, false, answer, sizeof answer))
        return DOCKER_PLACE_SILENT;
    bool by_systemd = strncmp(answer, "systemd ", strlen("systemd ")) == 0;
    bool by_files = strncmp(answer, "cgroupfs ", strlen("cgroupfs ")) == 0;
    if ((!by_systemd && !by_files) || strstr(answer, "name=rootless"))
        return DOCKER_PLACE_ROOTLESS;
    if (!cgroup || stat(cgroup, &of_cgroup) < 0 || of_cgroup.st_uid != 0)
        return DOCKER_PLACE_NONE;
    bool found = by_systemd ? cgroup_slice_of(cgroup, ret_parent, CGROUP_PATH_SIZE)
                            : cgroup_find_name(cgroup, ret_parent);
    return found ? DOCKER_PLACE_TASK : DOCKER_PLACE_NONE;
}

const char *docker_place_text(enum docker_place place)
{
    switch (place) {
    case DOCKER_PLACE_SILENT:
        return "dockerd does not answer";
    case DOCKER_PLACE_ROOTLESS:
        return "this dockerd is a user's (rootless), or uses no cgroups";
    case DOCKER_PLACE_NONE:
        return "this task has no cgroup of root's, which docker needs";
    case DOCKER_PLACE_TASK:
        break;
    }
    return "";
}

/* The words with which docker is called in this task. Without a task they stay as they are. */
static void make_words(struct word_list *list, const char *program, const char *const *words)
{
    const char *id = getenv("COLLOC_TASK_ID"), *gpus = getenv("COLLOC_GPUS");
    struct docker_task task = {.id = id, .gpus = gpus ? gpus : ""};
    char parent[CGROUP_PATH_SIZE];
    bool makes_one = id && docker_makes_container(words);
    bool makes_project = id && compose_starts_project(words);
    enum docker_place place = makes_one || makes_project ? docker_find_place(program, parent)
                                                         : DOCKER_PLACE_SILENT;
    if (place == DOCKER_PLACE_TASK)
        task.parent = parent;
    else if (place != DOCKER_PLACE_SILENT)
        print_error("docker: warning: this container is no part of task %s, and does not end with "
                    "it: %s (docs/containers.md)",
            id, docker_place_text(place));
    word_list_add(list, "docker");
    if (makes_one)
        docker_add_words(list, words, &task);
    else if (!makes_project || !task.parent || !compose_add_words(list, program, words, &task))
        for (; *words; words++)
            word_list_add(list, "%s", *words);
}

static int run(const struct invocation *invocation)
{
    char program[PATH_MAX];
    struct word_list list = {0};
    const char *const *words = (const char *const *)invocation->operands;
    if (!invocation->is_slurm && *words && strcmp(*words, "--help") == 0)
        return help_print_command(&command_docker);
    if (!docker_find(program)) {
        print_error("docker: it is not on PATH");
        return 127;
    }
    make_words(&list, program, words);
    if (word_list_end(&list))
        execv(program, list.words);
    print_error("docker: cannot run %s: %s", program, strerror(errno));
    word_list_fini(&list);
    return 126;
}

const struct command command_docker = {
    .name = "docker",
    .usage = "ARGUMENT...",
    .summary = "in a task: docker, whose containers are a part of the task",
    .description = "Becomes docker. A container that `run`, `create` or `compose up` makes in a "
                   "task is a part of the task: it has the task's GPUs only, is limited like the "
                   "task and ends with it. Where docker is installed, a task finds this command as "
                   "`docker` (docs/containers.md).",
    .max_operands = -1,
    .takes_words = true,
    .common_without = WITHOUT_SOCKET | WITHOUT_JSON,
    .run = run,
};
