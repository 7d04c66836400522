/* SPDX-License-Identifier: Apache-2.0 */
/* Tells the PyTorch processes of a task when to profile: for tasks with --profile=torch. */
#ifndef COLLOC_EXEC_TORCH_RESPONDER_H
#define COLLOC_EXEC_TORCH_RESPONDER_H

#include "exec/spec.h"

enum { TORCH_SOCKET_FOLDER = 40 };

/*
 * Starts the responder of this process, which is about to execute the task's program, and has
 * become its user. One that cannot be started prints why to the task's standard error; the task
 * then runs without.
 *
 * folder:      of the attempt, where the daemon puts orders.
 * ret_sockets: the folder of its sockets, for KINETO_IPC_SOCKET_DIR.
 *
 * Returns 0 or -errno.
 */
int torch_responder_start(
    const char *folder, const struct attempt_spec *spec, char ret_sockets[TORCH_SOCKET_FOLDER]);

/* Removes the folder of the sockets, as this user: a responder that was killed has left it. */
void torch_responder_clean(const char *sockets, uid_t uid, gid_t gid);

#endif
