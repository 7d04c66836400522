/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An order to PyTorch's profiler for a task: a line of text in the spec of the attempt and in a
 * file of its folder, which the daemon writes and the task's responder reads.
 */
#ifndef COLLOC_EXEC_TORCH_ORDER_H
#define COLLOC_EXEC_TORCH_ORDER_H

#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

/* The file in the attempt's folder with the last order. */
#define TORCH_ORDER_FILE "torch-order"

/* The file there that is not empty once a process of the task has asked for orders. It belongs to
 * the task's user, and only its size is read. */
#define TORCH_ASKED_FILE "torch-asked"

enum { TORCH_ORDER_TEXT = 128 };

struct torch_order {
    int64_t number;      /* differs from that of the order before it; 0: no order */
    int64_t step;        /* the first step to record; 0: the next one */
    int64_t steps;       /* how many; 0: by time */
    int64_t duration_ms; /* how long, where there are no steps */
};

/* Writes the order as text. Returns its length. */
size_t torch_order_format(const struct torch_order *order, char text[TORCH_ORDER_TEXT]);

/* Reads such a text; any bytes are allowed. Returns 0 or -EBADMSG. */
int torch_order_parse(struct span text, struct torch_order *ret_order);

#endif
