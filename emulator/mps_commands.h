/* SPDX-License-Identifier: Apache-2.0 */
/* The commands of the pretend MPS control daemon, and what they act on. */
#ifndef COLLOC_EMULATOR_MPS_COMMANDS_H
#define COLLOC_EMULATOR_MPS_COMMANDS_H

#include <stdio.h>

#include "emulator/world.h"

struct control {
    struct world *world;
    FILE *log, *server_log;
    pid_t server; /* 0: none yet */
    double default_percent, server_percent;
    bool quitting;
    int64_t quit_by_us;
};

/* One line into a log (NULL: none), as NVIDIA's look: "[2026-11-20 17:00:37.123 Control 1234]
 * Start". */
void note(FILE *log, const char *who, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Runs one command line, which it cuts to pieces; the answer goes to `out`. */
void control_run(struct control *control, char *line, FILE *out);

/* Prints the clients' pids, one a line. Returns how many there are. */
int control_clients(struct control *control, FILE *out);

/* Notices a server that has ended, so that the next client gets a new one. */
void control_reap(struct control *control);

#endif
