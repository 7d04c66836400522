/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `colloc container IMAGE -- COMMAND`, in a task: becomes podman, or docker where there is no
 * podman or --with=docker says so, with the task's GPUs (container.h). `colloc submit
 * --container=IMAGE -- COMMAND` submits this command.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/container.h"
#include "cli/docker_run.h"
#include "cli/docker_words.h"
#include "cli/print.h"
#include "gpu/program.h"

enum { CONTAINER_WITH };

static const char *const programs[] = {"podman", "docker", NULL};

static const struct option_spec options[] = {
    [CONTAINER_WITH] = {.name = "with",
        .kind = OPTION_CHOICE,
        .argument = "PROGRAM",
        .choices = programs,
        .help = "what starts the container: {choices}; default: podman where it is installed, else "
                "docker"},
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

static int run(const struct invocation *invocation)
{
    struct fault fault = {0};
    char folder[PATH_MAX], program[PATH_MAX] = "podman", parent[CGROUP_PATH_SIZE];
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
    const struct container_order order = {.image = invocation->operands[0],
        .folder = folder,
        .gpus = variable_or_empty("COLLOC_GPUS"),
        .command = command,
        .docker = by_docker ? &task : NULL,
        .uid = getuid(),
        .gid = getgid()};
    if (container_words(&order, &fault, &words) < 0) {
        print_error("%s", fault.text);
        return EXIT_USAGE;
    }
    execvp(program, words);
    print_error("container: cannot run %s: %s", words[0], strerror(errno));
    container_free(words);
    return EXIT_REFUSED;
}

const struct command command_container = {
    .name = "container",
    .usage = "[OPTION...] IMAGE [--] [COMMAND [ARGUMENT...]]",
    .summary = "in a task: run a command in a container with the task's GPUs",
    .description =
        "Becomes `podman run` or `docker run` with the task's GPUs only, in the task's cgroup: "
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
