/* SPDX-License-Identifier: Apache-2.0 */
/* Slips in the words of `colloc submit`, found before the daemon is asked. */
#ifndef COLLOC_CLI_SUBMIT_CHECK_H
#define COLLOC_CLI_SUBMIT_CHECK_H

#include "cli/command.h"

/*
 * The command behind "--".
 *   words  the program and its arguments, NULL-terminated
 * Returns 0, with a warning on stderr for a path that is not there yet, or -ENOENT with a fault: a
 * name without a slash that is no program on PATH, or a whole command line in one word.
 */
int submit_check_command(const char *const *words, struct fault *fault);

/*
 * FILE could not be read (`r`, with the fault set). Adds to the fault what was meant when FILE is a
 * program: `colloc submit -- python train.py`.
 *   words  FILE and what stands behind it, NULL-terminated
 * Returns `r`.
 */
int submit_explain_unread(const char *const *words, int r, struct fault *fault);

/*
 * Lines in the script that another queue would read. #SBATCH --array and --dependency change what
 * the script does: -ENOTSUP with a fault. Others are warned of on stderr, once; 0.
 *   name  what faults call the script
 */
int submit_check_directives(const char *name, const char *script, struct fault *fault);

/*
 * The words behind FILE go to the script. Warns on stderr of those that are options of submit, and
 * of a Python file that bash would run.
 *   words  FILE and what stands behind it, NULL-terminated
 */
void submit_warn_of_words(
    const struct command *submit, const char *const *words, const char *script);

/*
 * The files of --output and --error. Returns 0, with a warning on stderr for a folder that is not
 * there or not writable yet, or -EISDIR with a fault: the file is a folder.
 */
int submit_check_outputs(const struct task_description *task, struct fault *fault);

#endif
