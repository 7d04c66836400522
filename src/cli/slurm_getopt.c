/* SPDX-License-Identifier: Apache-2.0 */
/* getopt_long reorders the words, and keeps its place in variables: here it has a copy of them. */
#include "cli/slurm_getopt.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

enum { NO_LETTER = 256 }; /* and the row's index: what getopt_long returns for it */

static void set_member(const struct slurm_row *row, const char *value, char *options)
{
    if (row->effect == SLURM_SETS_FLAG)
        *(bool *)(void *)(options + row->at) = true;
    else if (row->effect == SLURM_SETS_TEXT)
        *(const char **)(void *)(options + row->at) = value ? value : "";
}

int slurm_getopt(const char *const *words, int count, const struct slurm_row *rows, size_t n,
    void *options, void (*note)(void *options, const struct slurm_row *row, const char *value),
    const char ***ret_rest)
{
    struct option names[SLURM_ROWS_MAX + 1] = {{0}};
    char letters[3 * SLURM_ROWS_MAX + 2] = ":";
    char *end = letters + 1;
    for (size_t i = 0; i < n; i++) {
        int returned = rows[i].letter ? rows[i].letter : NO_LETTER + (int)i;
        names[i] = (struct option){rows[i].name, rows[i].argument, NULL, returned};
        if (rows[i].letter)
            *end++ = (char)rows[i].letter;
        for (int k = 0; rows[i].letter && k < rows[i].argument; k++) /* "o:", "j::" */
            *end++ = ':';
    }
    char **copy = calloc((size_t)count + 2, sizeof *copy);
    *ret_rest = (const char **)copy;
    if (!copy)
        return -ENOMEM;
    copy[0] = (char *)(uintptr_t) "";
    for (int i = 0; i < count; i++)
        copy[i + 1] = (char *)(uintptr_t)words[i];
    opterr = 0;
    optind = 1;
    for (int found; (found = getopt_long(count + 1, copy, letters, names, NULL)) != -1;) {
        const struct slurm_row *row = rows;
        while (row < rows + n && names[row - rows].val != found)
            row++;
        if (row == rows + n)
            return -EINVAL;
        set_member(row, optarg, options);
        if (note)
            note(options, row, optarg);
    }
    for (int i = optind; i <= count + 1; i++)
        copy[i - optind] = copy[i];
    return count + 1 - optind;
}
