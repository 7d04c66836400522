/* SPDX-License-Identifier: Apache-2.0 */
/* Calls compose for the words with which it is to be called (compose_words.h). */
#ifndef COLLOC_CLI_COMPOSE_RUN_H
#define COLLOC_CLI_COMPOSE_RUN_H

#include <stdbool.h>

#include "cli/docker_words.h"

/*
 * Appends docker's words for a project as a part of the task. The file of the project is in memory,
 * open until this process and what it becomes has ended.
 *
 * program: docker, or docker-compose
 * skipped: how many words of docker's command line that one does not get: 0, or 1
 * words:   of which compose_starts_project is true
 *
 * Returns false, and has appended nothing: compose printed no project. Then a warning has been
 * printed, and compose will say what is wrong when it is called with the words themselves.
 */
bool compose_add_words(struct word_list *list, const char *program, int skipped,
    const char *const *words, const struct docker_task *task);

#endif
