/* SPDX-License-Identifier: Apache-2.0 */
/* The folder of slurm.conf: reads the files that setup changes, and writes them back. */
#ifndef COLLOC_CLI_SLURM_FOLDER_H
#define COLLOC_CLI_SLURM_FOLDER_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/fault.h"
#include "slurmconf/slurm_setup.h"

enum { FOLDER_FILES_MAX = 64 };

struct folder_file {
    char *path;
    char *old_text; /* NULL: there is no such file */
    char *text;     /* without what setup wrote before */
    char *new_text; /* NULL: unchanged */
    const char *comment;
};

/* slurm.conf first, then its included files. */
struct slurm_folder {
    char *path; /* without links */
    struct folder_file files[FOLDER_FILES_MAX];
    size_t count, n_confs; /* the first n_confs are slurm.conf and its included files */
    bool has_no_conf;      /* it is not Slurm's folder */
};

/*
 * Reads slurm.conf and its included files, gres.conf, plugstack.conf, colloc.conf and the Lua
 * scripts. Missing files other than slurm.conf have no text. Included names with * or % are not
 * read.
 *
 * path: of the folder
 *
 * Returns 0, or -errno with a fault; slurm_folder_close must follow in both cases.
 */
int slurm_folder_open(const char *path, struct fault *fault, struct slurm_folder *ret_folder);

/* Reads files of another folder. Neither they nor the folder need exist. As above. `names` ends
 * with NULL. */
int slurm_folder_open_files(const char *path, const char *const *names, struct fault *fault,
    struct slurm_folder *ret_folder);
void slurm_folder_close(struct slurm_folder *folder);

/* Returns the file of this name in the folder, or NULL. */
struct folder_file *slurm_folder_find(struct slurm_folder *folder, const char *name);

/*
 * Finds a setting in slurm.conf and its included files; of several the last one counts, as for
 * Slurm.
 *
 * ret_value: `size` bytes; "" when there is none, or it is longer
 *
 * Returns whether there is one.
 */
bool slurm_folder_setting(
    const struct slurm_folder *folder, const char *key, char *ret_value, size_t size);

/*
 * Writes the files whose new text differs, slurm.conf last (first when `removing`); a file that
 * would be left empty and is not slurm.conf is deleted. Nothing is written when one of them is not
 * in the folder. Mode and owner stay. A missing folder is made.
 *
 * Returns how many were written, or -errno with a fault.
 */
int slurm_folder_write(struct slurm_folder *folder, bool removing, struct fault *fault);

/* Prints what would change: lines with "-" and "+". Returns how many files. */
int slurm_folder_print(const struct slurm_folder *folder);

#endif
