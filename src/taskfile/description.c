/* SPDX-License-Identifier: Apache-2.0 */
/* Frees what a task's description holds. */
#include "taskfile/description.h"

#include <stdlib.h>

#include "base/array.h"

static void slurm_facts_fini(struct slurm_facts *facts)
{
    char *const texts[] = {facts->folder, facts->exported, facts->constraint, facts->mail_types,
        facts->mail_user, facts->partition, facts->account, facts->qos, facts->input,
        facts->warnings};
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
        free(texts[i]);
    *facts = (struct slurm_facts){0};
}

void task_description_fini(struct task_description *description)
{
    option_values_fini(description->values, TASK_OPTION_MAX);
    option_values_fini(description->slurm_values, TASK_OPTION_MAX);
    slurm_facts_fini(&description->slurm);
    free(description->file);
    free(description->script);
    free(description->summary);
    *description = (struct task_description){0};
}
