/* SPDX-License-Identifier: Apache-2.0 */
/* #SBATCH lines: a script for Slurm's sbatch is submitted as it is (docs/slurm-scripts.md). */
#ifndef COLLOC_TASKFILE_SLURM_LINES_H
#define COLLOC_TASKFILE_SLURM_LINES_H

#include "base/text.h"
#include "taskfile/description.h"

/* Returns what follows "#SBATCH" and a blank; size 0: it is no such line. */
struct span slurm_line_options(struct span line);

/*
 * Reads the options of one line.
 *
 * options: as slurm_line_options gives them
 * number:  of the line, for warnings
 * values:  of the task's options: those that colloc has, too, are set
 * facts:   the others; warnings are added for options that are ignored
 *
 * Returns 0; -ENOTSUP or -EINVAL with a fault for what would change the meaning of the script.
 */
int slurm_line_read(struct span options, size_t number, struct option_value *values,
    struct slurm_facts *facts, struct fault *fault);

/* Sets what follows from several options together. Returns 0 or a fault. */
int slurm_lines_finish(
    struct option_value *values, const struct slurm_facts *facts, struct fault *fault);

#endif
