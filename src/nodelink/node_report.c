/* SPDX-License-Identifier: Apache-2.0 */
/* Reports in memory: bounds, copies, and what they hold. Their form as JSON is that of
 * node_report_json.c. */
#include "nodelink/node_report.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

bool node_name_is_valid(const char *name)
{
    size_t size = strlen(name);
    for (size_t i = 0; i < size; i++)
        if (!isalnum((unsigned char)name[i]) && !strchr("._-", name[i]))
            return false;
    return size > 0 && size < NODE_NAME_SIZE;
}

bool node_report_is_bounded(const struct node_report *report)
{
    for (size_t i = 0; i < report->n_gpus; i++)
        if (report->gpus[i].n_processes > NODE_PROCESSES_MAX)
            return false;
    return report->n_gpus <= NODE_GPUS_MAX && report->n_crashes <= NODE_CRASHES_MAX &&
           report->n_jobs <= NODE_JOBS_MAX;
}

void node_gpu_replace(struct node_gpu *known, const struct node_gpu *gpu)
{
    free(known->processes);
    *known = *gpu;
}

/* Copies `n` items. Returns NULL for none, or when memory is out. */
static void *copy_items(const void *items, size_t n, size_t size)
{
    void *copy = n ? malloc(n * size) : NULL;
    return copy ? memcpy(copy, items, n * size) : NULL;
}

int node_report_copy(const struct node_report *report, struct node_report *ret_copy)
{
    struct node_report *copy = ret_copy;
    *copy = *report;
    copy->gpus = NULL;
    copy->crashes = NULL;
    copy->jobs = NULL;
    copy->n_gpus = copy->n_crashes = copy->n_jobs = 0;
    if (!node_report_is_bounded(report))
        return -EMSGSIZE;
    copy->gpus = copy_items(report->gpus, report->n_gpus, sizeof *copy->gpus);
    copy->crashes = copy_items(report->crashes, report->n_crashes, sizeof *copy->crashes);
    copy->n_crashes = copy->crashes ? report->n_crashes : 0;
    copy->jobs = copy_items(report->jobs, report->n_jobs, sizeof *copy->jobs);
    copy->n_jobs = copy->jobs ? report->n_jobs : 0;
    bool is_whole = copy->n_crashes == report->n_crashes && copy->n_jobs == report->n_jobs;
    for (; copy->gpus && copy->n_gpus < report->n_gpus; copy->n_gpus++) {
        struct node_gpu *gpu = &copy->gpus[copy->n_gpus];
        gpu->processes = copy_items(gpu->processes, gpu->n_processes, sizeof *gpu->processes);
        is_whole &= gpu->processes || gpu->n_processes == 0;
    }
    return is_whole && copy->n_gpus == report->n_gpus ? 0 : -ENOMEM;
}

void node_report_fini(struct node_report *report)
{
    for (size_t i = 0; i < report->n_gpus; i++)
        free(report->gpus[i].processes);
    free(report->gpus);
    free(report->crashes);
    free(report->jobs);
    *report = (struct node_report){0};
}
