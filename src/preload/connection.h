/* SPDX-License-Identifier: Apache-2.0 */
/* The library's end of the socket (protocol.h). No call raises SIGPIPE. */
#ifndef COLLOC_PRELOAD_CONNECTION_H
#define COLLOC_PRELOAD_CONNECTION_H

#include <stdbool.h>
#include <stdint.h>

#include "preload/protocol.h"

/* Reads once in a process where its daemon is, and which task it is: the program may change the
 * environment in any thread, at any time. To be called before the others, by one thread. */
void connection_read_environment(void);

/* Connects to the daemon that the environment named. Returns a descriptor, or -1: there is none, or
 * this process is no task. */
int connection_open(void);

/* Fills in the task and its attempt, and sends. Returns whether the packet was sent. */
bool connection_send(int socket, struct preload_message *message);

/*
 * Receives one message.
 *
 * ms:       how long to wait for it at most; 0: not at all.
 * ret_page: a descriptor that came with it, or -1; may be NULL.
 *
 * Returns 1 with a message; 0: none yet; -1: the connection is closed, or what came is no message.
 */
int connection_receive(int socket, int ms, struct preload_message *ret_message, int *ret_page);

#endif
