/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A child process in the loop: lines in, lines out, and its end. It is killed when it is no longer
 * wanted, and freed when the kernel has let it go: a process that hangs in the driver does not end
 * when it is killed, and its owner goes on without it.
 */
#ifndef COLLOC_CHILD_LINE_PROCESS_H
#define COLLOC_CHILD_LINE_PROCESS_H

#include <uv.h>

struct line_process;

/* All processes of an owner that have not ended, also those that were dropped. */
struct line_processes {
    struct line_process *first;
};

/* What is pointed to is borrowed until line_process_start returns. */
struct line_process_order {
    uv_loop_t *loop;
    char **arguments;   /* the path of the program first; ended by NULL */
    char **environment; /* ended by NULL */
    int socket;         /* is its descriptor LINE_PROCESS_SOCKET; 0: it has none */
    size_t line_max;    /* bytes of a line of its output, with the line end */
    void *context;

    /* A whole line of its output, without the line end. It may drop the process. `left`: bytes that
     * were read with the line and follow it. */
    void (*on_line)(void *context, const char *line, size_t size, size_t left);

    /* Its output has ended, or a line is too long. To be dropped now. */
    void (*on_end)(void *context);

    /* It has ended, perhaps before its output was read. To be dropped now. May be NULL. */
    void (*on_exit)(void *context);
};

enum { LINE_PROCESS_SOCKET = 3 };

/* Starts it. Returns 0 or -errno. */
int line_process_start(struct line_processes *processes, const struct line_process_order *order,
    struct line_process **ret_process);

pid_t line_process_pid(const struct line_process *process);

/* Writes to its input. `text`: from malloc, taken over also on an error. Returns 0 or -errno. */
int line_process_write(struct line_process *process, char *text, size_t size);

/* Kills it. None of the order's functions is called any more. */
void line_process_drop(struct line_process *process);

/* The owner ends: its processes, all dropped, are freed by the loop, which does not wait for those
 * that the kernel keeps. */
void line_processes_leave(struct line_processes *processes);

#endif
