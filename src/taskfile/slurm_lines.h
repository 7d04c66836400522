/* SPDX-License-Identifier: Apache-2.0 */
/* #SBATCH lines: a script for Slurm's sbatch is submitted as it is (docs/slurm-scripts.md). */
#ifndef COLLOC_TASKFILE_SLURM_LINES_H
#define COLLOC_TASKFILE_SLURM_LINES_H

#include "base/text.h"
#include "taskfile/description.h"

/* Returns what follows "#SBATCH" and a blank; size 0: it is no such line. */
struct span slurm_line_options(struct span line);

/*
 * Reads the options of one line into the description's Slurm values and facts.
 *
 * options: as slurm_line_options gives them
 * number:  of the line, for warnings
 *
 * Returns 0; -ENOTSUP or -EINVAL with a fault for what would change the meaning of the script.
 */
int slurm_line_read(
    struct span options, size_t number, struct task_description *description, struct fault *fault);

/*
 * Reads the options of the command line, and sets the task's options by what all Slurm options say
 * together. Those of `description->values` that are set win over #SBATCH lines.
 *
 * name: of the file, for faults of its lines
 *
 * Returns 0 or a fault.
 */
int slurm_lines_finish(const char *name, struct task_description *description, struct fault *fault);

/* The same for options without a task file, of a step: reads them. Returns 0 or a fault. */
int slurm_command_read(struct task_description *description, struct fault *fault);

#endif
