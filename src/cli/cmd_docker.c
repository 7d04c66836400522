/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `colloc docker ...`, in a task: becomes docker, with a new container as a part of the task
 * (docker_words.h). A link `docker` to colloc stands first on a task's PATH where docker is
 * installed, so that scripts call this.
 *
 * A dockerd that can put no container there (docker_place_text) runs it as without colloc, and a
 * warning says so.
 *
 * A user's own dockerd (rootless) of a login keeps its containers in the cgroup of that login. One
 * that a task starts keeps them in the task's, which it cannot leave: that is all a container needs
 * to be a part of the task, and `docker` gives it the task's GPUs only.
 *
 * Compose 2 is a plugin of docker, or a program `docker-compose` that takes the same words without
 * "compose". So `docker-compose` is a link to colloc, too.
 */
#include "cli/docker_run.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/compose_run.h"
#include "cli/compose_words.h"
#include "cli/docker_words.h"
#include "cli/help.h"
#include "cli/print.h"

/* Compose 2 without docker gets no word "compose": it stands for its name. */
struct docker_program {
    char path[PATH_MAX];
    int skipped; /* words of docker's command line that it does not get */
};

/* The words with which docker is called in this task. Without a task they stay as they are. */
static void make_words(struct word_list *list, const char *docker,
    const struct docker_program *program, const char *const *words)
{
    const char *id = getenv("COLLOC_TASK_ID"), *gpus = getenv("COLLOC_GPUS");
    struct docker_task task = {.id = id, .gpus = gpus ? gpus : ""};
    char parent[CGROUP_PATH_SIZE];
    bool makes_one = id && docker_makes_container(words);
    bool makes_project = id && compose_starts_project(words);
    enum docker_place place = makes_one || makes_project ? docker_find_place(docker, parent)
                                                         : DOCKER_PLACE_SILENT;
    bool is_part = place == DOCKER_PLACE_TASK || place == DOCKER_PLACE_INSIDE;
    if (place == DOCKER_PLACE_TASK)
        task.parent = parent;
    else if (!is_part && place != DOCKER_PLACE_SILENT)
        print_error("docker: warning: this container is no part of task %s, and does not end with "
                    "it: %s (docs/containers.md)",
            id, docker_place_text(place));
    word_list_add(list, "docker");
    if (makes_one)
        docker_add_words(list, words, &task);
    else if (!makes_project || !is_part ||
             !compose_add_words(list, program->path, program->skipped, words, &task))
        for (; *words; words++)
            word_list_add(list, "%s", *words);
}

/* Finds what runs these words: docker, or docker-compose where docker has no such plugin. */
static void find_program(
    const char *docker, const char *const *words, struct docker_program *ret_program)
{
    static const char *const version[] = {"docker", "compose", "version", NULL};
    char answer[1024];
    bool is_alone = *words && strcmp(*words, "compose") == 0 &&
                    !docker_read_output(docker, version, true, answer, sizeof answer) &&
                    docker_find("docker-compose", ret_program->path);
    ret_program->skipped = is_alone;
    if (!is_alone)
        snprintf(ret_program->path, sizeof ret_program->path, "%s", docker);
}

static int run(const struct invocation *invocation)
{
    char docker[PATH_MAX];
    struct docker_program program;
    struct word_list list = {0};
    const char *const *words = (const char *const *)invocation->operands;
    if (!invocation->is_slurm && *words && strcmp(*words, "--help") == 0)
        return help_print_command(&command_docker);
    if (!docker_find("docker", docker)) {
        print_error("docker: it is not on PATH");
        return 127;
    }
    find_program(docker, words, &program);
    make_words(&list, docker, &program, words);
    if (word_list_end(&list))
        execv(program.path, list.words + program.skipped);
    print_error("docker: cannot run %s: %s", program.path, strerror(errno));
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
