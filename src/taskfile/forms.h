/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The forms of task files; for taskfile.c only. Each form has a function that tests whether a text
 * has the form, and a parser that reads it into a description and returns 0, or -errno with file
 * and line in the fault.
 */
#ifndef COLLOC_TASKFILE_FORMS_H
#define COLLOC_TASKFILE_FORMS_H

#include "base/text.h"
#include "taskfile/description.h"

enum { LINE_MAX_BYTES = 64 << 10 };

/* A script whose leading comments may contain `#COLLOC` lines. */
bool script_has_directive(struct span text);
int script_parse(
    const char *name, struct span text, struct task_description *description, struct fault *fault);

/* Thesis, listing 6.1: command lines, and `key: value` lines for colloc. */
bool rad_keys_detect(struct span text);
int rad_keys_parse(
    const char *name, struct span text, struct task_description *description, struct fault *fault);

/* The positional form: comment, conda line, command, summary, dataset, batch size, policy, GPUs,
 * measured MiB, estimates. */
bool rad_lines_detect(struct span text);
int rad_lines_parse(
    const char *name, struct span text, struct task_description *description, struct fault *fault);

#endif
