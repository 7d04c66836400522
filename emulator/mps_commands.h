/* SPDX-License-Identifier: Apache-2.0 */
/* The commands of the emulated MPS control daemon, and the state that they change. */
#ifndef COLLOC_EMULATOR_MPS_COMMANDS_H
#define COLLOC_EMULATOR_MPS_COMMANDS_H

#include <stdio.h>

#include "emulator/world.h"

struct control {
    struct world *world;
    FILE *log, *server_log;
    pid_t server;           /* 0: none yet */
    double default_percent; /* of the SMs, for clients of servers that start later */
    double server_percent;  /* for new clients of the present server */
    bool quitting;
    int64_t quit_by_us; /* monotonic; clients that are left then are not waited for */
};

/*
 * Writes one line into a log as NVIDIA's: "[2026-11-20 17:00:37.123 Control 1234] Start".
 *
 * log:     NULL for none.
 * program: "Control" or "Server".
 */
void log_line(FILE *log, const char *program, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Runs one command line and writes the answer to `out`. `line` is changed. */
void control_run(struct control *control, char *line, FILE *out);

/* Prints the clients' pids, one a line. Returns how many there are. */
int control_clients(struct control *control, FILE *out);

/* Forgets a server that has ended, so that the next client gets a new one. */
void control_reap(struct control *control);

#endif
