/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The forms in which the values of a task are written: colloc's (task_view.h has more of them) and
 * Slurm's.
 */
#ifndef COLLOC_CLI_TASK_FORMS_H
#define COLLOC_CLI_TASK_FORMS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "cli/task_view.h"

/* Of a TASK object that stands for a step of its job: the step's name, "batch". Its ids have it. */
#define STEP_MEMBER "slurm_step"

/* Of a TASK object that `colloc queue --start` shows: its entry in an answer of GET /v1/starts. */
#define START_MEMBER "start"

/*
 * Writes a member of a TASK object.
 *
 * value: NULL, or of any type
 *
 * Returns the text, which is in `cell` or belongs to `value`; or NULL: unknown.
 */
typedef const char *format_value(const json_t *value, char cell[CELL_SIZE]);

format_value short_moment_text; /* "11-20 16:02" in this year, "2025-11-20" in another; or "-" */
format_value slurm_text;
format_value slurm_number_text;   /* "12" */
format_value slurm_moment_text;   /* "2026-11-30T00:53:20" */
format_value slurm_time_text;     /* as squeue: "0:07", "1:30:00", "2-00:00:00" */
format_value slurm_elapsed_text;  /* as sacct and scontrol: "00:00:07", "2-00:00:00" */
format_value slurm_minutes_text;  /* from seconds */
format_value slurm_list_text;     /* NULL for an empty array */
format_value slurm_priority_text; /* of a priority's name: 1 to 4 */

/* Writes a value that is made of several members. Returns false, having written nothing: unknown.
 */
typedef bool write_value(const json_t *task, FILE *out);

write_value write_task_id; /* "12", "12_7", "14_[3-99]"; of a step "12.batch" */
write_value write_raw_id;
write_value write_array_id; /* of a task of no array its id */
write_value write_exit;     /* as Slurm writes it: code:signal */

/* Of colloc. */
write_value write_gpus;       /* after its end those of the last attempt */
write_value write_reason;     /* with the count of its GPU memory crashes */
write_value write_place;      /* its GPUs, or why it waits */
write_value write_long_place; /* with the reason's text */
write_value write_time;       /* how long it has waited or has run, whichever it does now */
write_value write_start;      /* when it is expected to start */

/* Of Slurm. */
write_value write_state;
write_value write_state_letters; /* "PD" */
write_value write_account_state; /* "CANCELLED by 1000" */
write_value write_gid;
write_value write_group;
write_value write_host;
write_value write_host_or_reason;
write_value write_time_left;
write_value write_gres;      /* "gres:gpu:2" */
write_value write_resources; /* "billing=1,cpu=4,gres/gpu=2,node=1" */

/* Values by which tasks are ordered whose text does not sort. */
double order_of_id(const json_t *task);
double order_of_run(const json_t *task);
double order_of_limit(const json_t *task); /* none is the longest */
double order_of_time_left(const json_t *task);

#endif
