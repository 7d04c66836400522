/* SPDX-License-Identifier: Apache-2.0 */
/* Frees what a task's description holds. */
#include "taskfile/description.h"

#include <stdlib.h>

void task_description_fini(struct task_description *description)
{
    option_values_fini(description->values, TASK_OPTION_MAX);
    free(description->slurm.folder);
    free(description->slurm.exported);
    free(description->slurm.mail_user);
    free(description->slurm.warnings);
    free(description->file);
    free(description->script);
    free(description->summary);
    *description = (struct task_description){0};
}
