/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The conditions that the node of a GPU must meet before the core may place a job there: free CPUs,
 * host memory and shards of the GPU, and the job's -w, -x and -C. A job that Slurm cannot start at
 * once would block all jobs behind it in its partition.
 *
 * The free resources of a node are Slurm's figures, minus the jobs that colloc has not placed,
 * minus the residents of its GPUs that the core has at this moment, including those that it has
 * placed in this step.
 */
#include <string.h>

#include "slurm/controller_state.h"

static const struct tracked_job *find_asked(
    struct slurm_controller *controller, const struct task *task)
{
    if (!controller->asked || controller->asked_task != task->id) {
        controller->asked = id_map_get(&controller->by_task, task->id);
        controller->asked_task = task->id;
    }
    return controller->asked;
}

/* The features of a job that this understands: names that all must be there, with & between. */
static bool has_features(const struct cluster_node *node, const char *features)
{
    char name[NODE_NAME_MAX];
    for (const char *at = features; *at;) {
        size_t size = strcspn(at, "&,|*[](): ");
        struct span word = {at, size};
        if (size == 0 || !span_copy(word, name, sizeof name) ||
            !node_list_has(node->features, name))
            return false;
        at += size;
        if (*at && *at++ != '&')
            return false;
    }
    return true;
}

static int64_t host_memory_of(const struct slurm_controller *controller,
    const struct tracked_job *job, const struct cluster_node *node)
{
    if (!controller->counts_memory)
        return 0;
    return job->memory_bytes < 0 ? node->memory_bytes : job->memory_bytes;
}

bool controller_can_ever_run(
    const struct slurm_controller *controller, const struct tracked_job *job, int number)
{
    const struct cluster_gpu *gpu = &controller->nodes.gpus[number];
    const struct cluster_node *node = controller->nodes.nodes[gpu->node];
    bool is_index_free = !job->indices || controller->can_change_gres ||
                         job->indices >> gpu->index & 1;
    return node->is_listed && is_index_free && job->cpus <= node->cpus &&
           host_memory_of(controller, job, node) <= node->memory_bytes &&
           (!job->rules[0] || node_list_has(job->rules[0], node->name)) &&
           (!job->rules[1] || !node_list_has(job->rules[1], node->name)) &&
           (!job->rules[2] || has_features(node, job->rules[2]));
}

/* Is it the first of the resident's GPUs on the GPU's node? Its host memory and CPUs there are
 * counted with that one. */
static bool is_first_on_node(
    const struct slurm_controller *controller, const struct resident *resident, int gpu)
{
    const struct cluster_gpu *gpus = controller->nodes.gpus;
    int i = 0;
    while (i < resident->gpus && gpus[resident->places[i]].node != gpus[gpu].node)
        i++;
    return i == resident->gpus || resident->places[i] == gpu;
}

static int count_residents(
    const struct slurm_controller *controller, const struct cluster_node *node)
{
    const struct cluster_view *view = core_view(controller->core);
    int n = 0;
    for (int i = 0, seen = 0; seen < node->n_gpus && i < GRES_INDEX_MAX; i++) {
        if (node->gpus[i] < 0)
            continue;
        seen++;
        n += view->gpus[node->gpus[i]].n_residents + view->gpus[node->gpus[i]].n_absent;
    }
    return n;
}

static void add_job(const struct slurm_controller *controller, struct cluster_node *node,
    const struct tracked_job *job)
{
    node->held.cpus += job->record && job->record->node_cpus
                           ? node_cpus_of_job(job->record, node->name)
                           : job->cpus;
    node->held.memory_bytes += host_memory_of(controller, job, node);
}

/* A job that is off its GPUs runs on, to Slurm, with all that it has been given. */
static void add_absent(
    const struct slurm_controller *controller, struct cluster_node *node, int gpu)
{
    const struct gpu_view *view = &core_view(controller->core)->gpus[gpu];
    for (int k = 0; k < view->n_absent; k++) {
        const struct task *task = core_task(controller->core, view->absent[k].task);
        const struct tracked_job *job = id_map_get(&controller->by_task, view->absent[k].task);
        if (job && task && task->run->yield.n_context_gpus > 0 &&
            task->run->yield.context_gpus[0] == gpu)
            add_job(controller, node, job);
    }
}

static void add_held(const struct slurm_controller *controller, struct cluster_node *node, int gpu)
{
    const struct gpu_view *view = &core_view(controller->core)->gpus[gpu];
    for (int k = 0; k < view->n_residents; k++) {
        const struct resident *resident = &view->residents[k];
        const struct tracked_job *job = id_map_get(&controller->by_task, resident->task);
        if (job && is_first_on_node(controller, resident, gpu))
            add_job(controller, node, job);
    }
    add_absent(controller, node, gpu);
}

/* Counts the resources of the node's residents, unless they are known: within an update the core
 * only adds residents. */
static void count_held(const struct slurm_controller *controller, struct cluster_node *node)
{
    int n = count_residents(controller, node);
    if (node->held.update == controller->update && node->held.n_residents == n)
        return;
    node->held.update = controller->update;
    node->held.n_residents = n;
    node->held.cpus = 0;
    node->held.memory_bytes = 0;
    for (int i = 0; i < GRES_INDEX_MAX; i++)
        if (node->gpus[i] >= 0)
            add_held(controller, node, node->gpus[i]);
}

/* Are the CPUs and the memory there, beside all residents of the node's GPUs? The job is none of
 * them: it waits. */
static bool is_host_free(const struct slurm_controller *controller, const struct tracked_job *job,
    struct cluster_node *node)
{
    count_held(controller, node);
    int64_t bytes = node->held.memory_bytes + host_memory_of(controller, job, node);
    if (controller->counts_memory)
        bytes += node->other_memory_bytes;
    return node->other_cpus + node->held.cpus + job->cpus <= node->cpus &&
           (!controller->counts_memory || bytes <= node->memory_bytes);
}

int64_t controller_shards_wanted(
    const struct slurm_controller *controller, const struct tracked_job *job, int gpu)
{
    const struct need *need = &job->request.need;
    int64_t all = controller->nodes.gpus[gpu].shards;
    int64_t bytes = need->kind >= NEED_ESTIMATED
                        ? need->bytes
                        : controller->options.settings.conditions.min_free_bytes;
    int64_t each = node_table_shard_bytes(&controller->nodes, gpu);
    int64_t shards = bytes / each + (bytes % each > 0);
    if (job->ooms > 0 || job->request.exclusive || shards > all)
        return all;
    return shards > 0 ? shards : 1;
}

static int64_t shards_of(const struct slurm_controller *controller, uint64_t task, int gpu,
    const struct tracked_job *except)
{
    const struct tracked_job *job = id_map_get(&controller->by_task, task);
    if (!job || job == except)
        return 0;
    return job->shards ? job->shards : controller_shards_wanted(controller, job, gpu);
}

int64_t controller_shards_left(
    const struct slurm_controller *controller, int gpu, const struct tracked_job *job)
{
    const struct gpu_view *view = &core_view(controller->core)->gpus[gpu];
    int64_t left = controller->nodes.gpus[gpu].shards - controller->nodes.gpus[gpu].other_shards;
    for (int k = 0; k < view->n_residents; k++)
        left -= shards_of(controller, view->residents[k].task, gpu, job);
    for (int k = 0; k < view->n_absent; k++)
        left -= shards_of(controller, view->absent[k].task, gpu, job);
    return left > 0 ? left : 0;
}

/* Does the job need its GPUs without other jobs' shards? */
static bool wants_all_shards(const struct slurm_controller *controller,
    const struct tracked_job *job, const struct task *task)
{
    const struct policy *policy = task->request.policy ? task->request.policy
                                                       : controller->options.settings.policy;
    return job->ooms > 0 || job->request.exclusive || policy->exclusive_gpus;
}

enum node_admission controller_check_node(void *context, const struct task *task, int number)
{
    struct slurm_controller *controller = context;
    const struct tracked_job *job = find_asked(controller, task);
    const struct cluster_gpu *gpu = &controller->nodes.gpus[number];
    struct cluster_node *node = controller->nodes.nodes[gpu->node];
    if (!job || !controller_can_ever_run(controller, job, number))
        return NODE_NEVER;
    if (job->lacks_licences || node->is_down || node->is_drained ||
        !is_host_free(controller, job, node))
        return NODE_NOT_NOW;
    int64_t left = controller_shards_left(controller, number, job);
    bool fits = wants_all_shards(controller, job, task) ? left == gpu->shards : left > 0;
    return fits ? NODE_ADMITS : NODE_NOT_NOW;
}
