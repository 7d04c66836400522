/* SPDX-License-Identifier: Apache-2.0 */
/* Decides which order to PyTorch's profiler a process of a task gets when it asks. */
#ifndef COLLOC_EXEC_TORCH_DISPATCH_H
#define COLLOC_EXEC_TORCH_DISPATCH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "exec/torch_order.h"

enum {
    TORCH_PROCESSES_MAX = 256, /* chosen: further ones are not profiled; a server has eight GPUs */
    TORCH_ORDER_FRESH_S = 15,  /* chosen: three times the 5 s after which libkineto asks again */
};

/* All zero: no order, no process. */
struct torch_dispatch {
    struct torch_order submitted; /* of the submission */
    struct torch_order latest;    /* of the file */
    int64_t latest_us;            /* when that one was taken */
    int n_taken;                  /* orders so far */
    struct torch_process {
        pid_t pid;
        bool has_submitted; /* it got the submission's order, or a later one */
        int64_t number;     /* of the last order of the file that it got, or that is not for it */
    } processes[TORCH_PROCESSES_MAX];
    int n_processes;
};

/* An order with its place among all: it names the files. */
struct torch_given {
    const struct torch_order *order; /* NULL: there is nothing new for the process */
    int count;
};

/* Takes the order of the submission; one of number 0 is none. */
void torch_dispatch_submitted(struct torch_dispatch *dispatch, const struct torch_order *order);

/* Takes what the file has, at `now_us` of the monotonic clock; the order that it had before is
 * ignored. */
void torch_dispatch_take(
    struct torch_dispatch *dispatch, const struct torch_order *order, int64_t now_us);

/* Notes a process that asks for the first time. Returns NULL when there are too many. */
struct torch_process *torch_dispatch_find(
    struct torch_dispatch *dispatch, pid_t pid, int64_t now_us);

/* Returns the order for a process that asks; it gets each once. */
struct torch_given torch_dispatch_next(struct torch_dispatch *dispatch, pid_t pid, int64_t now_us);

#endif
