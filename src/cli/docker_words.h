/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of docker as a task may give it: a container as a part of the task. Pure. */
#ifndef COLLOC_CLI_DOCKER_WORDS_H
#define COLLOC_CLI_DOCKER_WORDS_H

#include <stdbool.h>

#include "cli/word_list.h"

#define DOCKER_VISIBLE "NVIDIA_VISIBLE_DEVICES" /* which GPUs nvidia's runtime gives */

/* What a task gives a container. */
struct docker_task {
    const char *id;
    const char *gpus;   /* labels, comma-separated: "0,2"; "": none */
    const char *parent; /* as --cgroup-parent has it: "/colloc/1f0c-12.1", "colloc-1f0c_12.1.slice";
                           NULL: docker has none to give: its dockerd is in the task, or the
                           container is none of the task's */
};

/* Does the command line make a container: docker run, create, container run? `words`: without
 * "docker", ended by NULL. */
bool docker_makes_container(const char *const *words);

/* Returns how many words stand before docker's verb. */
int docker_find_verb(const char *const *words);

/*
 * Appends docker's words with those of the task. GPUs that the words ask for become the task's; the
 * image and what follows it stay as they are.
 */
void docker_add_words(
    struct word_list *list, const char *const *words, const struct docker_task *task);

/* Appends the options by which a container becomes a part of the task, and where nvidia's runtime
 * starts it has the task's GPUs at most. `wants_gpus`: all of the task's. */
void docker_add_task(struct word_list *list, const struct docker_task *task, bool wants_gpus);

/* Is this device, of --device or of a compose file, a GPU: by CDI, or as a file? */
bool docker_is_gpu(const char *device);

#endif
