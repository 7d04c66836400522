/* SPDX-License-Identifier: Apache-2.0 */
/* The program under one of Slurm's names. */
#ifndef COLLOC_CLI_SLURM_NAMES_H
#define COLLOC_CLI_SLURM_NAMES_H

#include <stdbool.h>
#include <stddef.h>

#include "cli/word_list.h"

/* A command line of colloc. */
struct slurm_words {
    struct word_list list; /* with a NULL behind; empty: no name of Slurm's */
    bool is_done;          /* the command has been run: nothing is left */
    int exit_code;
};

/*
 * Translates a command line of sbatch, squeue, scancel, sacct, sinfo or srun, salloc or scontrol.
 *
 * called:    the name that the program was started with; may be NULL
 * arguments: `count` words, NULL-terminated
 * ret_words: for slurm_words_fini, in each case
 *
 * Returns 0 or -ENOMEM.
 */
int slurm_words_make(
    const char *called, const char *const *arguments, int count, struct slurm_words *ret_words);

/* Releases the words. */
void slurm_words_fini(struct slurm_words *words);

#endif
