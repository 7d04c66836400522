/* SPDX-License-Identifier: Apache-2.0 */
/* The owners of containers whose processes are root's, as far as they are known. */
#ifndef COLLOC_DAEMON_OUTSIDE_CONTAINER_OWNERS_H
#define COLLOC_DAEMON_OUTSIDE_CONTAINER_OWNERS_H

#include <stdbool.h>

#include "base/container_cgroup.h"
#include "service/user_names.h"

/* A process that was found on a GPU. */
struct container_owner {
    pid_t pid;
    unsigned long long start_ticks; /* with the pid it names the process */
    char id[CONTAINER_ID_SIZE];     /* of its container; "": it is in none */
    const char *program;            /* that runs the container: "docker" */
    bool is_known;                  /* the owner */
    uid_t uid;
    bool is_seen; /* in this review */
};

struct container_owners;

/* `names` is borrowed. Returns NULL when memory is out. */
struct container_owners *container_owners_create(struct names *names);

/*
 * Finds the container of a process, and its owner: the user whose home is mounted in it. Never
 * waits: a name is looked up for a later review.
 *
 * Returns the owner, valid until the next call; NULL: it is in no container, or has no known owner.
 */
const struct container_owner *container_owners_find(struct container_owners *owners, pid_t pid);

/* A review has ended: processes that it has not asked for are forgotten. */
void container_owners_end_review(struct container_owners *owners);

/* To be called when all questions for names have been answered. NULL is fine. */
void container_owners_destroy(struct container_owners *owners);

#endif
