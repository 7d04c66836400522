/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The intake partition has to be DOWN: in a partition that is UP, such as one of the site's own of
 * the same name, Slurm starts the jobs itself. The run partition has to be UP, or nothing starts.
 */
#include "slurm/partition_check.h"

#include <slurm/slurm.h>
#include <stdio.h>
#include <string.h>

static const partition_info_t *find_partition(const partition_info_msg_t *list, const char *name)
{
    for (uint32_t i = 0; i < list->record_count; i++)
        if (list->partition_array[i].name && strcmp(list->partition_array[i].name, name) == 0)
            return &list->partition_array[i];
    return NULL;
}

void partition_check(const char *intake, const char *run, char *ret_text, size_t size)
{
    partition_info_msg_t *list = NULL;
    if (slurm_load_partitions(0, &list, SHOW_ALL) != SLURM_SUCCESS)
        return;
    *ret_text = '\0';
    const partition_info_t *from = find_partition(list, intake), *to = find_partition(list, run);
    if (!from || !to)
        snprintf(ret_text, size, "there is no partition %s: `colloc slurm check` says what to do",
            from ? run : intake);
    else if (from->state_up & PARTITION_SCHED)
        snprintf(ret_text, size,
            "partition %s is UP: Slurm itself starts its jobs. Make it DOWN, or name another "
            "intake-partition",
            intake);
    else if (to->state_up != PARTITION_UP)
        snprintf(ret_text, size, "partition %s is not UP: jobs that are placed do not start", run);
    slurm_free_partition_info_msg(list);
}
