/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The options of Slurm's sbatch, srun and salloc, a row each. The same table reads `#SBATCH` lines
 * and command lines: of `sbatch`, `srun` and `salloc` (cli/slurm_names.c), and of `colloc submit`,
 * `run`, `shell` and `jupyter`.
 */
#ifndef COLLOC_TASKFILE_SLURM_OPTIONS_H
#define COLLOC_TASKFILE_SLURM_OPTIONS_H

#include "taskfile/slurm_context.h"

enum slurm_form { SLURM_NO_VALUE, SLURM_NEEDS_VALUE, SLURM_MAY_HAVE_VALUE };

struct slurm_option {
    const char *name;
    char letter;       /* or 0 */
    unsigned programs; /* of enum slurm_program */
    enum slurm_form form;
    slurm_read *read; /* or NULL */
    int option;       /* without `read`: of enum task_option, which has the same form; -1: none */
    const char *ignored; /* without both: why it has no effect; "": it needs no mention */
    const char *refused; /* or why it is refused, and what to do instead */
    const char *command; /* the option of colloc's command that it is on a command line, with its
                            value if that is fixed: "slurm=id"; or NULL */
};

/* An option as it was given. Borrowed from the words. */
struct slurm_given {
    const struct slurm_option *option;
    const char *value; /* or NULL */
};

/* The rest of a command line or of a line's words. */
struct slurm_cursor {
    const char *const *words;
    int count;
    const char *cluster; /* letters behind a letter without a value, as in -ul; NULL at the start */
};

/*
 * Takes the option at the cursor: "--name=value", "--name value", a unique beginning of a name,
 * "-xvalue", "-x value", or one letter of several.
 *
 * program: one of enum slurm_program
 * marker:  before the option in messages: "#SBATCH " or ""
 *
 * Returns 1; 0 when the next word is no option (or "--", or there is none); -ENOENT with a fault
 * for an unknown option; -EINVAL with a fault for an ambiguous one and for a wrong value.
 */
int slurm_option_next(enum slurm_program program, const char *marker, struct slurm_cursor *cursor,
    struct slurm_given *ret_given, struct fault *fault);

/* Applies an option. Returns as slurm_read. */
int slurm_option_apply(struct slurm_context *context, const struct slurm_given *given);

/* Returns the option of this whole name of sbatch, or NULL. */
const struct slurm_option *slurm_option_find(enum slurm_program program, const char *name);

#endif
