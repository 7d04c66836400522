/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Task files: a script with `#COLLOC --option=value` lines, or a .rad file in either of its two
 * forms. Which one it is shows in the content. All bytes are fit input; what cannot be read is a
 * fault with file, line and remedy.
 */
#ifndef COLLOC_TASKFILE_TASKFILE_H
#define COLLOC_TASKFILE_TASKFILE_H

#include <stdbool.h>
#include <stddef.h>

#include "taskfile/description.h"

enum {
    TASKFILE_MAX_BYTES = 1 << 20,
    SUMMARY_MAX_BYTES = 16 << 20,
};

/*
 * Reads the task file `text` (NUL behind text[size]) into a zeroed description: its script and its
 * options. Touches no other file. `name` is what faults call it. 0 or -errno; what the description
 * holds is freed by the caller either way.
 */
int taskfile_parse(const char *name, const char *text, size_t size, struct fault *fault,
    struct task_description *ret_description);

/* Whether the text says of itself that it is a script for colloc or the kernel: a first line "#!",
 * or a #COLLOC line. */
bool taskfile_is_script(const char *text, size_t size);

/*
 * The same from a file ("-" is standard input). The name of the task defaults to the file's. A
 * relative summary is looked for beside the task file first, then in the current folder.
 */
int taskfile_read(const char *path, struct fault *fault, struct task_description *ret_description);

/*
 * A description whose script runs its arguments as a command, for `colloc submit -- command
 * arguments`. `words` is that command, NULL-terminated; the name of the task defaults to what it
 * runs (taskfile/command_line.h).
 */
int taskfile_of_command(
    const char *const *words, struct fault *fault, struct task_description *ret_description);

/* Reads the file that TASK_SUMMARY names, if it is set, into description->summary. */
int taskfile_read_summary(struct task_description *description, struct fault *fault);

#endif
