/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `colloc docker ...`, in a task: becomes docker, with a new container as a part of the task
 * (docker_words.h). A link `docker` to colloc stands first on a task's PATH where docker is
 * installed, so that scripts call this.
 *
 * dockerd takes a cgroup that is no systemd slice only with the cgroup driver "cgroupfs". With
 * another one the container is not the task's, as without colloc, and a warning says so.
 */
#include "cli/docker_run.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/beside.h"
#include "cli/command.h"
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

/* What a program prints, its first line. Returns whether it succeeded. */
static bool read_output(const char *const *argv, char *text, size_t size)
{
    int ends[2], status = -1;
    if (pipe(ends) < 0)
        return false;
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDOUT_FILENO);
        close(ends[0]);
        close(ends[1]);
        execv(argv[0], (char *const *)(uintptr_t)argv);
        _exit(127);
    }
    close(ends[1]);
    size_t n = read_to_end(ends[0], text, child > 0 ? size : 1);
    text[strcspn(text, "\n")] = '\0';
    close(ends[0]);
    if (child > 0)
        waitpid(child, &status, 0);
    return n > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

enum docker_driver docker_driver_of(const char *program)
{
    const char *const argv[] = {program, "info", "--format", "{{.CgroupDriver}}", NULL};
    char driver[64];
    if (!read_output(argv, driver, sizeof driver))
        return DOCKER_DRIVER_UNKNOWN;
    return strcmp(driver, "cgroupfs") == 0 ? DOCKER_DRIVER_CGROUPFS : DOCKER_DRIVER_OTHER;
}

bool docker_find_parent(char ret_parent[CGROUP_PATH_SIZE])
{
    const char *cgroup = getenv("COLLOC_CGROUP");
    return cgroup && cgroup_find_name(cgroup, ret_parent);
}

static int run(const struct invocation *invocation)
{
    char program[PATH_MAX], parent[CGROUP_PATH_SIZE];
    struct word_list list = {0};
    const char *id = getenv("COLLOC_TASK_ID"), *gpus = getenv("COLLOC_GPUS");
    const char *const *words = (const char *const *)invocation->operands;
    struct docker_task task = {.id = id, .gpus = gpus ? gpus : ""};
    if (!invocation->is_slurm && *words && strcmp(*words, "--help") == 0)
        return help_print_command(&command_docker);
    if (!docker_find(program)) {
        print_error("docker: it is not on PATH");
        return 127;
    }
    bool is_changed = id && docker_makes_container(words);
    enum docker_driver driver = is_changed ? docker_driver_of(program) : DOCKER_DRIVER_UNKNOWN;
    if (is_changed && driver == DOCKER_DRIVER_CGROUPFS && docker_find_parent(parent))
        task.parent = parent;
    else if (is_changed && driver != DOCKER_DRIVER_UNKNOWN)
        print_error("docker: warning: this container is no part of task %s, and does not end with "
                    "it: %s (docs/containers.md)",
            id,
            driver == DOCKER_DRIVER_CGROUPFS ? "tasks have no cgroups here" : DOCKER_DRIVER_WORDS);
    if (id && docker_starts_project(words))
        print_error("docker: warning: the containers of compose are no part of task %s, and do not "
                    "end with it: start them by `docker run` (docs/containers.md)",
            id);
    word_list_add(&list, "docker");
    if (is_changed)
        docker_add_words(&list, words, &task);
    for (; !is_changed && *words; words++)
        word_list_add(&list, "%s", *words);
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
    .description = "Becomes docker. A container that `run` or `create` makes in a task is in the "
                   "task's cgroup: it has the task's GPUs only, is limited like the task and ends "
                   "with it. Where docker is installed, a task finds this command as `docker`. It "
                   "needs docker's cgroup driver \"cgroupfs\" (docs/containers.md).",
    .max_operands = -1,
    .takes_words = true,
    .common_without = WITHOUT_SOCKET | WITHOUT_JSON,
    .run = run,
};
