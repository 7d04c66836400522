/* SPDX-License-Identifier: Apache-2.0 */
/* A process of colloc-cudnn in the loop: lines out, lines in, and its end. */
#ifndef COLLOC_DAEMON_KERNELS_KERNEL_PROCESS_H
#define COLLOC_DAEMON_KERNELS_KERNEL_PROCESS_H

#include <uv.h>

struct kernel_process;

/* All processes of an owner that have not ended, also those that were dropped. */
struct kernel_processes {
    struct kernel_process *first;
};

struct kernel_process_order {
    uv_loop_t *loop;
    const char *program, *library; /* borrowed until kernel_process_start returns, as the next */
    const char *gpu_uuid;          /* the only one that it can use */
    void *context;

    /* A whole line of its output, without the line end. It may drop the process. */
    void (*on_line)(void *context, const char *line, size_t size);

    /* Its output has ended, or a line is too long. To be dropped now. */
    void (*on_end)(void *context);
};

/* Starts it. Returns 0 or -errno. */
int kernel_process_start(struct kernel_processes *processes,
    const struct kernel_process_order *order, struct kernel_process **ret_process);

pid_t kernel_process_pid(const struct kernel_process *process);

/* Writes to its input. `text`: from malloc, taken over also on an error. Returns 0 or -errno. */
int kernel_process_write(struct kernel_process *process, char *text, size_t size);

/* Kills it. Nothing is called any more, and it is freed when the kernel has let it go. */
void kernel_process_drop(struct kernel_process *process);

/* The loop ends: those that were dropped and have not ended are no longer waited for. */
void kernel_processes_leave(struct kernel_processes *processes);

#endif
