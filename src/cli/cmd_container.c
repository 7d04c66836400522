/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `colloc container IMAGE -- COMMAND`, in a task: becomes podman, with the task's GPUs
 * (container.h). `colloc submit --container=IMAGE -- COMMAND` submits this command.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/container.h"
#include "cli/print.h"

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

static int run(const struct invocation *invocation)
{
    struct fault fault = {0};
    char folder[PATH_MAX], **words;
    const char *const *command = invocation->operands + 1;
    int code = check_task();
    if (code != EXIT_OK)
        return code;
    if (!getcwd(folder, sizeof folder)) {
        print_error("container: the current folder: %s", strerror(errno));
        return EXIT_REFUSED;
    }
    if (*command && strcmp(*command, "--") == 0)
        command++;
    const struct container_order order = {.image = invocation->operands[0],
        .folder = folder,
        .gpus = variable_or_empty("COLLOC_GPUS"),
        .command = command};
    if (container_words(&order, &fault, &words) < 0) {
        print_error("%s", fault.text);
        return EXIT_USAGE;
    }
    execvp(words[0], words);
    print_error("container: cannot run %s: %s", words[0], strerror(errno));
    container_free(words);
    return EXIT_REFUSED;
}

const struct command command_container = {
    .name = "container",
    .usage = "IMAGE [--] [COMMAND [ARGUMENT...]]",
    .summary = "in a task: run a command in a container with the task's GPUs",
    .description = "Becomes `podman run` with the task's GPUs only (by CDI), in the task's cgroup: "
                   "the container is limited like the task and ends with it. The current folder is "
                   "mounted under its name and entered. Without COMMAND the image's is run.\n\n"
                   "`colloc submit --container=IMAGE -- COMMAND` submits a task that does this.",
    .min_operands = 1,
    .max_operands = -1,
    .rest_is_operands = true,
    .common_without = WITHOUT_SOCKET | WITHOUT_JSON,
    .run = run,
};
