/* SPDX-License-Identifier: Apache-2.0 */
/* The TCP port at which the ranks of a distributed training find each other. */
#ifndef COLLOC_DAEMON_ATTEMPTS_RENDEZVOUS_PORT_H
#define COLLOC_DAEMON_ATTEMPTS_RENDEZVOUS_PORT_H

#include <stdint.h>

/* Below Linux's range of ports for clients (32768 and above), so that no connection holds one. */
enum { RENDEZVOUS_PORT_FIRST = 23000, RENDEZVOUS_PORTS = 6007 };

/*
 * The port that a task tries as its try-th. Tasks with near numbers begin at different ports.
 *
 * task: its number
 * try:  from 0
 *
 * Returns a port from RENDEZVOUS_PORT_FIRST on.
 */
int rendezvous_port_candidate(uint64_t task, int try);

/*
 * The first of a task's candidates at which nothing listens now. Nothing reserves it: a program
 * that takes it before the task does is seen by the task as "address in use".
 *
 * Returns the port, or 0 when none of the first hundred is free.
 */
int rendezvous_port_find(uint64_t task);

#endif
