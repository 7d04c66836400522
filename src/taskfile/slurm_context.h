/* SPDX-License-Identifier: Apache-2.0 */
/* What the value of a Slurm option is read into, and the form of its readers. */
#ifndef COLLOC_TASKFILE_SLURM_CONTEXT_H
#define COLLOC_TASKFILE_SLURM_CONTEXT_H

#include "base/fault.h"
#include "taskfile/description.h"

/* One option on its way into a description. */
struct slurm_context {
    struct option_value *values; /* of the task's options */
    struct slurm_facts *facts;
    size_t line; /* of the script; 0: it is on a command line */
    struct fault *fault;
};

/*
 * Reads the value of the option `name`; NULL: the option has none.
 *
 * Returns 0; -ENOTSUP or -EINVAL with a fault for what would change the meaning of the script.
 */
typedef int slurm_read(struct slurm_context *context, const char *name, const char *value);

#endif
