/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A project of `docker compose` as a part of a task. Its file says where containers run and which
 * GPUs they have, and compose has no options for that. So the file is replaced, by what compose
 * itself makes of it (`config --format json`, all defaults and variables filled in) with the task's
 * parts. Pure.
 *
 *     docker compose -f a.yaml up -d        becomes
 *
 *     docker compose -f /proc/self/fd/5 --project-directory=/home/ada/a --project-name=a up -d
 */
#ifndef COLLOC_CLI_COMPOSE_WORDS_H
#define COLLOC_CLI_COMPOSE_WORDS_H

#include <jansson.h>
#include <stdbool.h>

#include "cli/docker_words.h"
#include "cli/word_list.h"

/* Does the command line make containers of a project: docker compose up, run, create, scale,
 * watch? `words`: without "docker", ended by NULL. */
bool compose_starts_project(const char *const *words);

/* The parts of such a command line. */
struct compose_call {
    int compose;           /* the index of "compose" */
    int verb;              /* the index of compose's verb */
    const char *file;      /* the first -f; NULL: none */
    const char *directory; /* --project-directory; NULL: none */
};

/* Finds them. For words of which compose_starts_project is true. */
struct compose_call compose_parse(const char *const *words);

/* Appends the words that print the project: of all profiles, since the verb may name a service of
 * any. */
void compose_add_config(struct word_list *list, const char *const *words);

/* Appends the words with another file. `directory`: of the project; `name`: its name. */
void compose_add_replaced(struct word_list *list, const char *const *words, const char *file,
    const char *directory, const char *name);

/* Makes the services of a project a part of the task: their cgroup, their GPUs, no restart after
 * its end. `project`: as compose prints it, is changed. Returns false when it is no project, or
 * there was no memory. */
bool compose_join_task(json_t *project, const struct docker_task *task);

#endif
