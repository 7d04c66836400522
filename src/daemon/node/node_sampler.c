/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples the GPUs in the thread pool, because a driver may be slow, and converts the samples for
 * the report: whole cards, by the numbers of their device files, with the job of each process.
 * Where the job of one is not known, the GPU's processes are not known, but how many are of no job
 * at least. NVML is opened in the pool,
 * too, and again while there is none: the agent may start before the driver is loaded.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "daemon/node/job_of_process.h"
#include "daemon/node/node_gres.h"
#include "daemon/node/node_state.h"

#define OPEN_AGAIN_US (10 * SECOND_US) /* chosen */
#define GRES_CHECK_US (60 * SECOND_US) /* chosen: gres.conf changes by hand, rarely */
#define GPM_SHARE     0.0032           /* of one processor, as in the daemon (gpus.c) */

static void open_gpus(struct node *node)
{
    struct node_poll *poll = &node->poll;
    const struct config *config = node->parts.config;
    const char *library = *config->nvml_library ? config->nvml_library : NULL;
    struct fault fault = {0};
    int64_t now_us = clock_monotonic_us();
    if (now_us < poll->next_open_us)
        return;
    poll->next_open_us = now_us + OPEN_AGAIN_US;
    if (gpu_set_open(library, &fault, &poll->set) != 0) {
        snprintf(poll->why_none, sizeof poll->why_none, "%s", fault.text);
        return;
    }
    poll->samples = calloc(poll->set->count, sizeof *poll->samples);
    if (!poll->samples) {
        gpu_set_close(poll->set);
        poll->set = NULL;
        return;
    }
    *poll->why_none = '\0';
    gpu_set_gpm_interval(poll->set, config->gpm_interval_us);
    gpu_set_limit_overhead(poll->set, GPM_SHARE);
    if (strcmp(config->dcgmi, "none") != 0)
        gpu_set_use_dcgm(poll->set, config->dcgmi, config->sample_period_us);
}

/* A node whose gres.conf means other GPUs by its types takes no job. */
static void check_gres(struct node *node)
{
    struct node_poll *poll = &node->poll;
    struct fault fault = {.text = ""};
    int64_t now_us = clock_monotonic_us();
    if (now_us < poll->next_gres_us)
        return;
    poll->next_gres_us = now_us + GRES_CHECK_US;
    int r = node_gres_check(node->name, &fault, &poll->gres_numbers);
    if (r != -ENOMEM)
        snprintf(poll->gres_fault, sizeof poll->gres_fault, "%s", r < 0 ? fault.text : "");
}

static int fill_processes(struct node *node, const struct gpu_sample *sample, struct node_gpu *gpu)
{
    size_t n = sample->processes.count < NODE_PROCESSES_MAX ? sample->processes.count
                                                            : NODE_PROCESSES_MAX;
    if (!sample->processes.valid)
        return 0;
    gpu->processes = n > 0 ? calloc(n, sizeof *gpu->processes) : NULL;
    if (n > 0 && !gpu->processes)
        return -ENOMEM;
    gpu->processes_known = sample->processes.count <= NODE_PROCESSES_MAX; /* a part is not all */
    for (size_t i = 0; i < n; i++) {
        const struct gpu_process *process = &sample->processes.item[i];
        if (process->is_mps_server)
            continue;
        const struct process_job of = job_cache_find(node->poll.jobs, process->pid, node->name);
        gpu->processes_known &= of.is_known;
        gpu->external_at_least += of.is_known && of.job == 0;
        gpu->processes[gpu->n_processes++] = (struct node_process){.pid = process->pid,
            .born = of.born,
            .memory_bytes = process->used_bytes,
            .job = of.job,
            .is_claimed = of.is_claimed,
            .uid = of.uid};
    }
    return 0;
}

static const char *why_unusable(
    const struct node *node, const struct gpu_info *info, const struct gpu_sample *sample)
{
    if (sample->health != GPU_HEALTH_OK)
        return sample->health_reason;
    if (!info->is_place)
        return info->why_not;
    return sample->trouble.is_serious ? sample->trouble.text : node->poll.gres_fault;
}

/* The number of its device file, which is that of its type in gres.conf. NVML counts by PCI
 * address, and the driver may number the files otherwise. */
static int index_of(const struct gpu_info *info)
{
    return info->minor.valid ? (int)info->minor.value : atoi(info->index);
}

static int fill_gpu(struct node *node, size_t i, struct node_gpu *gpu)
{
    const struct gpu_info *info = &node->poll.set->gpu[i];
    const struct gpu_sample *sample = &node->poll.samples[i];
    *gpu = (struct node_gpu){.index = index_of(info),
        .memory_total_bytes = info->mem_total_bytes,
        .memory_used_bytes = sample->mem_used_bytes,
        .smact = sample->smact,
        .numa_node = info->numa_node,
        .power_w = sample->power_w};
    snprintf(gpu->uuid, sizeof gpu->uuid, "%s", info->uuid);
    snprintf(gpu->trouble, sizeof gpu->trouble, "%s", why_unusable(node, info, sample));
    text_mend(gpu->trouble); /* after the cut */
    return fill_processes(node, sample, gpu);
}

static void take_new_set(struct node_poll *poll, struct gpu_set *now)
{
    struct gpu_sample *samples = calloc(now->count, sizeof *samples);
    if (!samples) {
        gpu_set_close(now);
        return;
    }
    for (size_t i = 0; i < poll->set->count; i++)
        gpu_sample_fini(&poll->samples[i]);
    free(poll->samples);
    gpu_set_close(poll->set);
    poll->set = now;
    poll->samples = samples;
}

static void in_pool(uv_work_t *work)
{
    struct node *node = work->data;
    struct node_poll *poll = &node->poll;
    struct gpu_set *now = NULL;
    if (!poll->set)
        open_gpus(node);
    else if (gpu_set_renew(poll->set, false, &now) == GPU_SET_CHANGED)
        take_new_set(poll, now);
    check_gres(node);
    poll->n_gpus = 0;
    poll->gpus = poll->set ? calloc(poll->set->count, sizeof *poll->gpus) : NULL;
    for (size_t i = 0; poll->gpus && i < poll->set->count; i++) {
        gpu_set_sample(poll->set, i, &poll->samples[i]);
        if (!poll->set->gpu[i].is_mig && poll->n_gpus < NODE_GPUS_MAX)
            fill_gpu(node, i, &poll->gpus[poll->n_gpus++]);
    }
}

void node_gpus_free(struct node_gpu *gpus, size_t n)
{
    for (size_t i = 0; i < n; i++)
        free(gpus[i].processes);
    free(gpus);
}

static void on_polled(uv_work_t *work, int status)
{
    struct node *node = work->data;
    struct node_poll *poll = &node->poll;
    poll->is_polling = false;
    if (strcmp(poll->why_none, poll->why_logged) != 0 && *poll->why_none)
        log_warning("no GPUs: %s", poll->why_none);
    memcpy(poll->why_logged, poll->why_none, sizeof poll->why_logged);
    if (strcmp(poll->gres_fault, poll->gres_logged) != 0 && *poll->gres_fault)
        log_warning("no job starts on this node: %s", poll->gres_fault);
    node->gres_numbers = poll->gres_numbers;
    memcpy(poll->gres_logged, poll->gres_fault, sizeof poll->gres_logged);
    if (node->is_closing)
        return;
    node_gpus_free(node->gpus, node->n_gpus);
    node->gpus = poll->gpus;
    node->n_gpus = poll->n_gpus;
    node->sampled_us = clock_monotonic_us();
    poll->gpus = NULL;
    poll->n_gpus = 0;
    poll->on_done(node);
}

void node_poll_begin(struct node *node, void (*on_done)(struct node *node))
{
    struct node_poll *poll = &node->poll;
    if (!poll->jobs)
        poll->jobs = job_cache_create();
    if (poll->is_polling || !poll->jobs)
        return;
    poll->is_polling = true;
    poll->on_done = on_done;
    poll->begun_us = clock_monotonic_us();
    poll->work.data = node;
    uv_queue_work(node->parts.loop, &poll->work, in_pool, on_polled);
}

void node_poll_fini(struct node *node)
{
    struct node_poll *poll = &node->poll;
    for (size_t i = 0; poll->set && i < poll->set->count; i++)
        gpu_sample_fini(&poll->samples[i]);
    free(poll->samples);
    gpu_set_close(poll->set);
    node_gpus_free(poll->gpus, poll->n_gpus);
    job_cache_destroy(poll->jobs);
}
