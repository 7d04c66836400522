/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The options of Slurm's listing programs (squeue, sacct, sinfo, sacctmgr): each has a table of
 * them, by which getopt_long reads the words.
 */
#ifndef COLLOC_CLI_SLURM_GETOPT_H
#define COLLOC_CLI_SLURM_GETOPT_H

#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>

/* An option, and the member of the program's struct that it sets. */
struct slurm_row {
    const char *name;
    int letter;   /* 0: it has none */
    int argument; /* no_argument, required_argument or optional_argument */
    enum { SLURM_NO_EFFECT, SLURM_SETS_FLAG, SLURM_SETS_TEXT } effect;
    size_t at; /* a bool; or a `const char *`: the value, "" without one */
};

#define SLURM_OTHER(name, letter, argument)                                                        \
    {                                                                                              \
        name, letter, argument, SLURM_NO_EFFECT, 0                                                 \
    }
#define SLURM_FLAG(name, letter, type, member)                                                     \
    {                                                                                              \
        name, letter, no_argument, SLURM_SETS_FLAG, offsetof(type, member)                         \
    }
#define SLURM_TEXT(name, letter, argument, type, member)                                           \
    {                                                                                              \
        name, letter, argument, SLURM_SETS_TEXT, offsetof(type, member)                            \
    }

enum { SLURM_ROWS_MAX = 32 };

/*
 * Reads the options of a command line.
 *
 * words:    `count` words behind the name of the program
 * rows:     `n` options, SLURM_ROWS_MAX at most
 * options:  the struct whose members they set
 * note:     called after each option with its row and value; or NULL
 * ret_rest: the words that are no options, NULL-terminated; to be freed, also after an error
 *
 * Returns how many those are; -EINVAL: an option is not known, or has no value; -ENOMEM.
 */
int slurm_getopt(const char *const *words, int count, const struct slurm_row *rows, size_t n,
    void *options, void (*note)(void *options, const struct slurm_row *row, const char *value),
    const char ***ret_rest);

#endif
