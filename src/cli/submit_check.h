/* SPDX-License-Identifier: Apache-2.0 */
/* Mistakes in a command line of `colloc submit`, found before the request is sent. */
#ifndef COLLOC_CLI_SUBMIT_CHECK_H
#define COLLOC_CLI_SUBMIT_CHECK_H

#include "cli/command.h"

/*
 * Checks the command after "--". Warns on stderr of a path that does not exist yet.
 *
 * words: the program and its arguments; NULL-terminated.
 *
 * Returns 0; -ENOENT with a fault for a name without a slash that is no program on PATH, or for a
 * whole command line quoted as one argument.
 */
int submit_check_command(const char *const *words, struct fault *fault);

/*
 * Improves the fault of a FILE that could not be read: if FILE is a program, adds the probable
 * intention, `colloc submit -- python train.py`.
 *
 * words: FILE and the arguments after it; NULL-terminated.
 * r:     the error of reading FILE.
 *
 * Returns `r`.
 */
int submit_explain_unread(const char *const *words, int r, struct fault *fault);

/* Warns on stderr of #SBATCH lines that are ignored, and of the first line that another queue reads
 * or that looks like a #COLLOC line. */
void submit_warn_of_directives(const struct task_description *task);

/*
 * Warns on stderr of arguments after FILE that are options of submit, since they are passed to the
 * script, and of a Python file that bash would run.
 *
 * words: FILE and the arguments after it; NULL-terminated.
 */
void submit_warn_of_words(
    const struct command *submit, const char *const *words, const char *script);

/* Warns on stderr of options that describe a network, where no model summary shows one. */
void submit_warn_without_network(const struct task_description *task);

/*
 * Sets what is not given of the training from its arguments, for the estimate from its summary, and
 * prints what was taken. An export says all itself.
 *
 * arguments: of the task, NULL-terminated, or NULL
 *
 * Returns 0, or -ENOMEM with a fault.
 */
int submit_take_arguments(
    struct task_description *task, const char *const *arguments, struct fault *fault);

/* Warns on stderr of --sharing for a task that shares its GPUs with no other. */
void submit_warn_of_sharing(const struct task_description *task);

/* Checks the texts of --after and --array. Returns 0, or -errno with a fault. */
int submit_check_order(const struct task_description *task, struct fault *fault);

/*
 * Checks the files of --output and --error. Warns on stderr of a folder that does not exist or is
 * not writable yet.
 *
 * Returns 0; -EISDIR with a fault if a file is a folder.
 */
int submit_check_outputs(const struct task_description *task, struct fault *fault);

/* Returns -ENOENT with a fault that says how to write it. */
int submit_refuse_quoted_line(const char *line, struct fault *fault);

/* Is FILE a program for Python without a first line that says so? bash would run it. */
bool submit_is_python(const char *file, const char *script);

/* Says that python3 will run it. Returns 0, or -ENOENT with a fault if there is none. */
int submit_check_python(const char *file, struct fault *fault);

/* Prints what of Slurm's options has no effect, and what of them the task gets instead. */
void submit_warn_of_slurm(const struct task_description *task);

#endif
