/* SPDX-License-Identifier: Apache-2.0 */
/* A munged of the test's own, with its own key, in a folder that is removed at the end. */
#ifndef COLLOC_TESTS_NODELINK_MUNGED_H
#define COLLOC_TESTS_NODELINK_MUNGED_H

#include <sys/types.h>

struct munged {
    char folder[64], socket[96];
    pid_t pid; /* 0: it is stopped */
};

/* Starts it and waits until it answers. Returns 0; 1: munge is not installed; or -1. */
int munged_start(struct munged *munged);

/* Stops it; its folder stays, so that munged_start starts it again with the same key. */
void munged_stop(struct munged *munged);

/* Stops it and removes its folder. */
void munged_remove(struct munged *munged);

#endif
