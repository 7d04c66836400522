/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of the text why a task waits: for a stopped task, and for a task that may not start. */
#ifndef COLLOC_CORE_EXPLAIN_EXPLAIN_PARTS_H
#define COLLOC_CORE_EXPLAIN_EXPLAIN_PARTS_H

#include "core/state/state.h"
#include "core/text_line.h"

/* ---- explain_yield.c ---- */

/* Does it have a process that does not compute? */
bool explain_has_stopped(const struct task *task);

/* Adds the allocation of the task that waits, and which tasks give way to it. */
void explain_memory_wait(struct text_line *line, const struct core *core, const struct task *task);

/* Adds why a task was stopped, and when it continues. */
void explain_yield(struct text_line *line, const struct core *core, const struct task *task);

/* ---- explain_gpus.c ---- */

/* Adds the policy's verdicts on the GPUs of the core, in their order. */
void explain_gpus(struct text_line *line, const struct core *core, const struct task *task,
    const struct verdict *verdicts);

/* ---- explain_gate.c ---- */

/* Adds what keeps a blocked task: its begin and its dependencies, or else the limit. */
void explain_gate(
    struct text_line *line, const struct core *core, const struct task *task, int64_t now_us);

/* Returns Slurm's word for what keeps it. */
const char *explain_gate_word(const struct task *task);

#endif
