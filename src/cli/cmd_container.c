/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `colloc container IMAGE -- COMMAND`, in a task: runs podman, or docker where there is no podman
 * or --with=docker says so, with the task's GPUs (container.h). `colloc submit --container=IMAGE
 * -- COMMAND` submits this command.
 *
 * dockerd removes a container that has ended. podman does not when it is ended itself, and SIGTERM
 * at a task's end goes to all its processes: so this process stays, and removes it.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "cli/command.h"
#include "cli/command_child.h"
#include "cli/container.h"
#include "cli/docker_run.h"
#include "cli/docker_words.h"
#include "cli/print.h"
#include "cli/word_list.h"
#include "gpu/program.h"

enum { CONTAINER_WITH };

#define REMOVAL_LIMIT_US (20 * SECOND_US) /* chosen: podman gives its processes 10 s */

static const char *const programs[] = {"podman", "docker", NULL};

static const struct option_spec options[] = {
    [CONTAINER_WITH] = OPTION("with", CHOICE, "PROGRAM", .choices = programs,
        .help = "what starts the container: {choices}; default: podman where it is installed, else "
                "docker"),
};

static const char *variable_or_empty(const char *name)
{
    const char *value = getenv(name);
    return value ? value : "";
}

/* An MPS client reaches its server by a folder and by memory that the container does not have. */
static int check_task(void)
{
    if (!*variable_or_empty("COLLOC_TASK_ID"))
        print_error("container: this is no task: use `colloc submit --container=IMAGE -- COMMAND`, "
                    "or this command in a task's script");
    else if (*variable_or_empty("CUDA_MPS_PIPE_DIRECTORY"))
        print_error("container: a container cannot share by MPS: submit it with --sharing=streams");
    else
        return EXIT_OK;
    return EXIT_USAGE;
}

/* Can docker put a container into this task? Returns an exit code. `ret_parent`: is NULL where
 * dockerd is in the task. */
static int prepare_docker(
    char program[PATH_MAX], char parent[CGROUP_PATH_SIZE], const char **ret_parent)
{
    if (!docker_find("docker", program)) {
        print_error("container: neither podman nor docker is on PATH");
        return EXIT_REFUSED;
    }
    enum docker_place place = docker_find_place(program, parent);
    *ret_parent = place == DOCKER_PLACE_TASK ? parent : NULL;
    if (place == DOCKER_PLACE_TASK || place == DOCKER_PLACE_INSIDE)
        return EXIT_OK;
    print_error("container: %s", docker_place_text(place));
    return EXIT_REFUSED;
}

static bool uses_docker(const struct invocation *invocation)
{
    char path[PATH_MAX];
    const struct option_value *with = &invocation->values[CONTAINER_WITH];
    return with->set ? strcmp(with->text, "docker") == 0
                     : !program_find("podman", path, sizeof path);
}

/* The init of podman's containers, in its own folder or on PATH; NULL: none is installed. */
static const char *find_init(char path[PATH_MAX])
{
    snprintf(path, PATH_MAX, "/usr/libexec/podman/catatonit");
    return access(path, X_OK) == 0 || program_find("catatonit", path, PATH_MAX) ? path : NULL;
}

static int report_failure(const char *program)
{
    print_error("container: cannot run %s: %s", program, strerror(errno));
    return EXIT_REFUSED;
}

static int become_podman(const void *words)
{
    char *const *argv = words;
    execvp(argv[0], argv);
    return report_failure(argv[0]);
}

static void remove_container(const char *name)
{
    static const char *const remove[] = {"podman", "rm", "--force", "--ignore"};
    char path[PATH_MAX], output[64];
    struct word_list words = {0};
    int status;
    for (size_t i = 0; i < ARRAY_SIZE(remove); i++)
        word_list_add(&words, "%s", remove[i]);
    word_list_add(&words, "%s", name);
    if (word_list_end(&words) && program_find("podman", path, sizeof path)) {
        const struct program program = {
            .path = path, .argv = words.words, .envp = environ, .limit_us = REMOVAL_LIMIT_US};
        program_run(&program, output, sizeof output, &status, NULL);
    }
    word_list_fini(&words);
}

static int run_podman(const char *name, char **words)
{
    struct command_child child;
    if (command_child_run(&child, become_podman, words) < 0)
        return report_failure(words[0]);
    remove_container(name);
    return command_child_end(&child);
}

static int become_docker(const char *program, char **words)
{
    execvp(program, words);
    return report_failure(words[0]);
}

static int run(const struct invocation *invocation)
{
    struct fault fault = {0};
    char folder[PATH_MAX], init[PATH_MAX], program[PATH_MAX], parent[CGROUP_PATH_SIZE], name[64];
    const char *own_parent = NULL;
    char **words;
    bool by_docker = uses_docker(invocation);
    const char *const *command = invocation->operands + 1;
    int code = check_task();
    if (code != EXIT_OK)
        return code;
    if (!getcwd(folder, sizeof folder)) {
        print_error("container: the current folder: %s", strerror(errno));
        return EXIT_REFUSED;
    }
    if (by_docker && (code = prepare_docker(program, parent, &own_parent)) != EXIT_OK)
        return code;
    if (*command && strcmp(*command, "--") == 0)
        command++;
    const struct docker_task task = {
        variable_or_empty("COLLOC_TASK_ID"), variable_or_empty("COLLOC_GPUS"), own_parent};
    snprintf(name, sizeof name, "colloc-%.20s-%d", task.id, (int)getpid());
    const struct container_order order = {.image = invocation->operands[0],
        .name = name,
        .folder = folder,
        .gpus = variable_or_empty("COLLOC_GPUS"),
        .command = command,
        .docker = by_docker ? &task : NULL,
        .uid = getuid(),
        .gid = getgid(),
        .init = find_init(init)};
    if (container_words(&order, &fault, &words) < 0) {
        print_error("%s", fault.text);
        return EXIT_USAGE;
    }
    code = by_docker ? become_docker(program, words) : run_podman(name, words);
    container_free(words);
    return code;
}

const struct command command_container = {
    .name = "container",
    .usage = "[OPTION...] IMAGE [--] [COMMAND [ARGUMENT...]]",
    .summary = "in a task: run a command in a container with the task's GPUs",
    .description =
        "Runs `podman run` or `docker run` with the task's GPUs only, in the task's cgroup: "
        "the container is limited like the task and ends with it. The current folder is "
        "mounted under its name and entered. Without COMMAND the image's is run.\n\n"
        "`colloc submit --container=IMAGE -- COMMAND` submits a task that does this.",
    COMMAND_OPTIONS(options),
    .min_operands = 1,
    .max_operands = -1,
    .rest_is_operands = true,
    .common_without = WITHOUT_SOCKET | WITHOUT_JSON,
    .run = run,
};
