/* SPDX-License-Identifier: Apache-2.0 */
/* The patterns in --output and --error that are known when a task is submitted. */
#ifndef COLLOC_TASKFILE_OUTPUT_PATTERN_H
#define COLLOC_TASKFILE_OUTPUT_PATTERN_H

/* All letters behind a "%", for messages. */
#define OUTPUT_PATTERN_LETTERS "%j %J %A %a %x %u %N %n %t %s %%"

/* Returns the letter of the first pattern that is not known; 0: there is none. */
char output_pattern_unknown(const char *path);

/*
 * Replaces what does not depend on the task: the user, the server, and the process of a job that
 * has one. The others are for the start (exec/spec.h).
 *
 * process: 0 for the script; of a step: its number
 *
 * Returns the path, which the caller frees, or NULL when memory is out.
 */
char *output_pattern_fill(const char *path, const char *user, const char *host, int process);

#endif
