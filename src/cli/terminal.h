/* SPDX-License-Identifier: Apache-2.0 */
/* The user's terminal, connected to that of a task (src/terminal/link.h). */
#ifndef COLLOC_CLI_TERMINAL_H
#define COLLOC_CLI_TERMINAL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/fault.h"
#include "terminal/link.h"

enum terminal_end {
    TERMINAL_EXITED,   /* the task's command has ended */
    TERMINAL_DETACHED, /* the user left it with Ctrl-] d */
    TERMINAL_TAKEN,    /* the task is attached to another terminal now */
    TERMINAL_CLOSED,   /* this terminal's window or connection was closed */
    TERMINAL_LOST,     /* the task's side was ended by collocd, or killed */
};

/* Are standard input and output a terminal? */
bool terminal_is_there(void);

/* The size of the terminal, or 24 by 80 when it is not known. */
struct link_size terminal_size(void);

/*
 * Passes keys and output between this terminal and a task's until one of them ends it. The terminal
 * is in raw mode meanwhile, so that Ctrl-C goes to the task; afterwards it is as before.
 *
 * fd: of link_connect; closed here
 *
 * Returns how it ended.
 */
enum terminal_end terminal_pass(int fd);

#endif
