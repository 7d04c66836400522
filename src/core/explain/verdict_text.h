/* SPDX-License-Identifier: Apache-2.0 */
/* The verdicts of a policy as text. */
#ifndef COLLOC_CORE_EXPLAIN_VERDICT_TEXT_H
#define COLLOC_CORE_EXPLAIN_VERDICT_TEXT_H

#include "core/state/state.h"
#include "core/text_line.h"

/* Adds the verdict on one GPU, such as "3.1 GiB short". */
void verdict_text_add(
    struct text_line *line, const struct core *core, const struct verdict *verdict);

/* Tests whether the text names the task of the verdict. */
bool verdict_text_names_task(enum verdict_kind kind);

/* Returns how that task, or that reservation, is named. */
struct task_label verdict_text_name(const struct core *core, const struct verdict *verdict);

/* Adds the verdict on several GPUs that names these tasks: "tasks 3, 4 have them to themselves". */
void verdict_text_add_tasks(struct text_line *line, enum verdict_kind kind, const char *tasks);

/* Adds a verdict on the server's CPUs or main memory: "4 of 32 CPUs are free, it needs 8". */
void verdict_text_add_host(
    struct text_line *line, const struct core *core, const struct verdict *verdict);

#endif
