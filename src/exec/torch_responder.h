/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tells the PyTorch processes of a task when to profile: for tasks with --profile=torch. The daemon
 * names the folder of the sockets in the spec, so that it is removed whoever is killed: by the
 * responder, else by the shim, else by the daemon when it sweeps the attempt.
 */
#ifndef COLLOC_EXEC_TORCH_RESPONDER_H
#define COLLOC_EXEC_TORCH_RESPONDER_H

#include "exec/spec.h"

enum { TORCH_SOCKET_FOLDER = 40 };

/* Chooses a path in /tmp at random. Returns 0 or -errno. */
int torch_responder_name(char ret_sockets[TORCH_SOCKET_FOLDER]);

/*
 * Starts the responder of this process, which is about to execute the task's program, and has
 * become its user. One that cannot be started prints why to the task's standard error; the task
 * then runs without.
 *
 * folder: of the attempt, where the daemon puts orders.
 * spec:   with `torch_sockets`, for KINETO_IPC_SOCKET_DIR: it is made here.
 *
 * Returns 0 or -errno.
 */
int torch_responder_start(const char *folder, const struct attempt_spec *spec);

/* Removes the folder of the spec's sockets, as the task's user: a responder that was killed has
 * left it. Does nothing without one. */
void torch_responder_clean(const struct attempt_spec *spec);

#endif
