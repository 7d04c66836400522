/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of the GPUs, as samples for the core.
 *
 * A node with an agent reports its GPUs each second. A GPU without an agent is not measured: there
 * only estimates decide. It counts with the memory requirements and expected activities of its
 * jobs, and a job of unknown requirement or activity counts as the whole GPU: unknown is never
 * idle.
 */
#include <errno.h>
#include <stdio.h>

#include "base/clock.h"
#include "slurm/controller_state.h"
#include "slurm/slurm_controller.h"

/* Chosen: agents report each second; after five missing reports the node counts as without one. */
#define REPORT_VALID_US (5 * SECOND_US)

enum { SAMPLE_TASKS_MAX = 64 }; /* on one GPU; more are not listed */

bool controller_hears_agent(
    const struct slurm_controller *controller, const struct cluster_node *node)
{
    return node->reported_us && controller->now_us - node->reported_us <= REPORT_VALID_US;
}

/* The sum of the requirements and activities of the jobs on the GPU, as far as they are known. */
static void expect_use(const struct slurm_controller *controller, int number,
    struct core_sample *sample, struct task_memory *tasks)
{
    const struct gpu_view *gpu = &core_view(controller->core)->gpus[number];
    double total = (double)gpu->id.mem_total_bytes, bytes = 0, smact = 0;
    bool is_smact_known = true;
    for (int i = 0; i < gpu->n_residents; i++) {
        const struct resident *resident = &gpu->residents[i];
        double need = reading_assume(resident->need_bytes, total);
        bytes += need;
        is_smact_known &= resident->expect.smact.valid;
        smact += reading_assume(resident->expect.smact, 0);
        if (sample->n_tasks < SAMPLE_TASKS_MAX)
            tasks[sample->n_tasks++] = (struct task_memory){
                .task = resident->task, .mem_used_bytes = reading_of(need)};
    }
    int64_t others = controller->nodes.gpus[number].other_shards;
    bytes += (double)(others * node_table_shard_bytes(&controller->nodes, number));
    is_smact_known &= others == 0;
    sample->mem_used_bytes = reading_of(bytes < total ? bytes : total);
    sample->smact = is_smact_known ? reading_of(smact < 1 ? smact : 1) : READING_NONE;
    sample->external_processes = reading_of(others > 0);
    sample->tasks = tasks;
}

/* Samples are applied without a step of the core, which would record this. */
static void note_external(struct slurm_controller *controller, int number)
{
    const struct gpu_view *gpu = &core_view(controller->core)->gpus[number];
    if (!gpu->external_processes.valid || gpu->external_processes.value == 0)
        return;
    for (int i = 0; i < gpu->n_residents; i++) {
        const struct task *task = core_task(controller->core, gpu->residents[i].task);
        if (task && !task->had_coresidents)
            controller_apply(
                controller, (struct event){.kind = EVENT_EXTERNAL_SEEN, .task = task->id});
    }
}

void controller_sample_silent_gpus(struct slurm_controller *controller)
{
    struct task_memory tasks[SAMPLE_TASKS_MAX];
    const struct node_table *nodes = &controller->nodes;
    for (size_t i = 0; i < nodes->n_gpus && !controller->is_broken; i++) {
        const struct cluster_node *node = nodes->nodes[nodes->gpus[i].node];
        struct event event = {.kind = EVENT_SAMPLE};
        event.sample.gpu = (int)i;
        event.sample.lost = node->is_down || !node->is_listed;
        if (controller_hears_agent(controller, node) && !event.sample.lost)
            continue;
        expect_use(controller, (int)i, &event.sample, tasks);
        controller_apply(controller, event);
        note_external(controller, (int)i);
    }
}

/* ---- reports of agents ---- */

/* The core's task that the process is of; 0: of none. */
static uint64_t find_task_of(
    const struct slurm_controller *controller, const struct slurm_gpu_process *process)
{
    const struct tracked_job *job = process->job ? id_map_get(&controller->by_id, process->job)
                                                 : NULL;
    return job && (!process->is_claimed || process->uid == job->uid) ? job->task : 0;
}

static void add_processes(const struct slurm_controller *controller,
    const struct slurm_gpu_reading *reading, struct core_sample *sample, struct task_memory *tasks)
{
    double external = reading->processes_known ? 0 : reading->external_at_least;
    for (size_t i = 0; i < reading->n_processes; i++) {
        const struct slurm_gpu_process *process = &reading->processes[i];
        uint64_t task = find_task_of(controller, process);
        int at = 0;
        while (at < sample->n_tasks && tasks[at].task != task)
            at++;
        external += task == 0;
        if (task == 0 || at == SAMPLE_TASKS_MAX)
            continue;
        const struct tracked_job *job = id_map_get(&controller->by_task, task);
        struct reading *sum = &tasks[at].mem_used_bytes;
        if (at == sample->n_tasks)
            tasks[sample->n_tasks++] = (struct task_memory){
                .task = task, .mem_used_bytes = reading_of(0)};
        tasks[at].hooked++;
        tasks[at].carried += job && job->is_carried;
        sum->valid &= process->mem_used_bytes.valid;
        sum->value += reading_or(process->mem_used_bytes, 0);
    }
    sample->tasks = tasks;
    bool is_sure = reading->processes_known || external > 0; /* some are seen, there may be more */
    sample->external_processes = is_sure ? reading_of(external) : READING_NONE;
}

/* Without a step of the core: of many agents, each report would cost a pass over all GPUs. */
static void feed_reading(
    struct slurm_controller *controller, int number, const struct slurm_gpu_reading *reading)
{
    struct task_memory tasks[SAMPLE_TASKS_MAX];
    struct event event = {.kind = EVENT_SAMPLE};
    event.sample.gpu = number;
    event.sample.faulty = reading->is_faulty;
    event.sample.mem_used_bytes = reading->mem_used_bytes;
    event.sample.smact = reading->smact;
    add_processes(controller, reading, &event.sample, tasks);
    controller_apply(controller, event);
    note_external(controller, number);
}

int slurm_controller_report(struct slurm_controller *controller, const char *name,
    const struct slurm_gpu_reading *gpus, size_t n, int64_t now_us)
{
    int number = node_table_find(&controller->nodes, span_of(name));
    if (number < 0)
        return -ENOENT;
    struct cluster_node *node = controller->nodes.nodes[number];
    controller->now_us = now_us > controller->now_us ? now_us : controller->now_us;
    node->reported_us = controller->now_us;
    for (size_t i = 0; i < n; i++) {
        int index = gpus[i].index;
        int gpu = index >= 0 && index < GRES_INDEX_MAX ? node->gpus[index] : -1;
        if (gpu < 0)
            continue;
        double total = reading_assume(gpus[i].mem_total_bytes, 0);
        struct cluster_gpu *known = &controller->nodes.gpus[gpu];
        if (total > 0 && (int64_t)total != known->mem_total_bytes) {
            known->mem_total_bytes = (int64_t)total;
            controller->is_gpu_changed = true;
        }
        known->smact = gpus[i].smact;
        known->power_w = gpus[i].power_w;
        snprintf(known->uuid, sizeof known->uuid, "%s", gpus[i].uuid ? gpus[i].uuid : "");
        feed_reading(controller, gpu, &gpus[i]);
    }
    return controller->is_broken ? -ENOMEM : 0;
}
