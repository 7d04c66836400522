/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Task files: a script with `#COLLOC --option=value` lines, or a .rad file in one of two forms. The
 * content decides which. Parsers accept any bytes; a mistake is a fault with file, line and remedy.
 */
#ifndef COLLOC_TASKFILE_TASKFILE_H
#define COLLOC_TASKFILE_TASKFILE_H

#include <stdbool.h>
#include <stddef.h>

#include "taskfile/description.h"

enum {
    TASKFILE_MAX_BYTES = 1 << 20,
    SUMMARY_MAX_BYTES = 64 << 20, /* as EXPORT_SIZE_MAX in model/export.h */
};

/*
 * Parses the text of a task file. Opens no other file.
 *
 * name:            of the file, for faults
 * text:            `size` bytes, followed by a NUL
 * ret_description: zeroed on entry, but for slurm_command; the caller calls task_description_fini
 *                  either way
 *
 * Returns 0, or -errno with a fault.
 */
int taskfile_parse(const char *name, const char *text, size_t size, struct fault *fault,
    struct task_description *ret_description);

/* The script of a task that runs its arguments as a command. */
#define TASKFILE_COMMAND_SCRIPT "#!/bin/sh\nexec \"$@\"\n"

/* Is the text marked as a script, by a first line "#!" or a #COLLOC line? */
bool taskfile_is_script(const char *text, size_t size);

/*
 * The same from a file; "-" is standard input. The task's name defaults to the file's. A relative
 * summary is searched in the task file's folder first, then in the current one.
 */
int taskfile_read(const char *path, struct fault *fault, struct task_description *ret_description);

/*
 * Makes a description whose script runs its arguments as a command, for `colloc submit -- command
 * arguments`.
 *
 * words: the command, NULL-terminated; the task's name defaults to what it runs
 *        (taskfile/command_line.h)
 *
 * Returns 0, or -errno with a fault.
 */
int taskfile_of_command(
    const char *const *words, struct fault *fault, struct task_description *ret_description);

/* Reads the file that TASK_SUMMARY names, if any, into description->summary. Returns 0, or -errno
 * with a fault. */
int taskfile_read_summary(struct task_description *description, struct fault *fault);

#endif
