/* SPDX-License-Identifier: Apache-2.0 */
/* The core's tasks have Slurm's names for users: of a task of an array "12_3". */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/text_line.h"
#include "slurm/controller_state.h"
#include "slurm/slurm_controller.h"

const char *slurm_controller_job_name(
    const struct slurm_controller *controller, uint64_t task, char *text, size_t size)
{
    const struct tracked_job *job = id_map_get(&controller->by_task, task);
    if (job && job->index != SLURM_NO_INDEX)
        snprintf(text, size, "%" PRIu32 "_%" PRIu32, job->base, job->index);
    else
        snprintf(text, size, "%" PRIu32, job ? job->base : 0);
    return text;
}

static bool is_id(const char *text)
{
    return *text >= '1' && *text <= '9';
}

/* Adds the name of the job instead of the task's id. Returns what follows the id. */
static const char *name_job(
    const struct slurm_controller *controller, const char *id, struct text_line *line)
{
    char *end, name[32];
    slurm_controller_job_name(controller, strtoull(id, &end, 10), name, sizeof name);
    text_line_add(line, "%s", name);
    return end;
}

/* "task 3" becomes "job 12", "tasks 3, 4, and 2 more" "jobs 12, 13_1, and 2 more". */
void controller_name_jobs(
    const struct slurm_controller *controller, const char *text, char *out, size_t size)
{
    struct text_line line = {out, size, 0};
    out[0] = '\0';
    while (*text) {
        bool is_one = strncmp(text, "task ", 5) == 0 && is_id(text + 5);
        bool is_list = strncmp(text, "tasks ", 6) == 0 && is_id(text + 6);
        if (!is_one && !is_list) {
            int plain = 1 + (int)strcspn(text + 1, "t"); /* up to what may be another "task" */
            text_line_add(&line, "%.*s", plain, text);
            text += plain;
            continue;
        }
        text_line_add(&line, is_one ? "job " : "jobs ");
        text = name_job(controller, text + (is_one ? 5 : 6), &line);
        while (is_list && strncmp(text, ", ", 2) == 0 && is_id(text + 2)) {
            text_line_add(&line, ", ");
            text = name_job(controller, text + 2, &line);
        }
    }
}
