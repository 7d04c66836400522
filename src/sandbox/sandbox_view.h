/* SPDX-License-Identifier: Apache-2.0 */
/* A view of the file system in which a process can change everything and nothing stays. */
#ifndef COLLOC_SANDBOX_SANDBOX_VIEW_H
#define COLLOC_SANDBOX_SANDBOX_VIEW_H

#include <stdbool.h>

/*
 * Makes the view in this process's mount namespace and enters it. The process must have that
 * namespace to itself, and the right to mount there.
 *
 * kept: an absolute path of a folder; changes in it stay, and the view's memory is mounted on its
 *       folder "view", which must exist
 *
 * Returns 0; 1: entered, but a mount could be neither covered nor made read-only, so that changes
 * there stay; or -errno: not entered.
 */
int sandbox_view_enter(const char *kept);

#endif
