/* SPDX-License-Identifier: Apache-2.0 */
/* For the tests of the daemon's servers on TCP: a client in the same thread as the server. */
#ifndef COLLOC_TESTS_DAEMON_PRETEND_BROWSER_H
#define COLLOC_TESTS_DAEMON_PRETEND_BROWSER_H

#include <uv.h>

enum { ANSWER_SIZE = 8192 };

/*
 * Sends a request to 127.0.0.1 and reads the answer to its end, while the loop serves it.
 *
 * loop:    of the server
 * request: its lines but for the last, "Connection: close" and the empty one
 *
 * Returns the status.
 */
int browse(uv_loop_t *loop, int port, const char *request, char ret_answer[ANSWER_SIZE]);

#endif
