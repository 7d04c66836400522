/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The library's connections to the daemon (protocol.h): one of the process, and one of each thread
 * that waits. No call raises SIGPIPE.
 *
 * Contract:
 * 1. The program may close our descriptor and get its number again for another file. The kernel's
 *    own number of a socket tells the two apart: nothing is sent, read, shut down or closed by a
 *    descriptor that is no longer ours.
 * 2. A connection speaks for the process that opened it. fork() closes it in the child, and the
 *    daemon sees its end even if a child lives on.
 */
#ifndef COLLOC_PRELOAD_CONNECTION_H
#define COLLOC_PRELOAD_CONNECTION_H

#include <stdbool.h>
#include <stdint.h>

#include "preload/protocol.h"

struct connection;

/* Reads once in a process where its daemon is, and which task it is: the program may change the
 * environment in any thread, at any time. To be called before the others, by one thread. */
void connection_read_environment(void);

/* Connects to the daemon that the environment named. Returns NULL: there is none, this process is
 * no task, or there are too many connections. */
struct connection *connection_open(void);

/* Notes another socket of the library, which a child of fork() then closes as well. Returns false:
 * there are too many. */
bool connection_note(int fd);

/* Ends the connection, also for processes that have it without fork(). NULL is none. */
void connection_close(struct connection *connection);

/* Fills in the task and its attempt, and sends. Returns whether the packet was sent. */
bool connection_send(struct connection *connection, struct preload_message *message);

/*
 * Receives one message.
 *
 * ms:       how long to wait for it at most; 0: not at all.
 * ret_page: a descriptor that came with it, or -1; may be NULL.
 *
 * Returns 1 with a message; 0: none yet; -1: the connection is closed, or what came is no message.
 */
int connection_receive(
    struct connection *connection, int ms, struct preload_message *ret_message, int *ret_page);

/* A descriptor that came is closed in children that are forked meanwhile. One at a time; -1: none
 * any more. */
void connection_keep_from_children(int fd);

#endif
