/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which task each process on a GPU belongs to.
 *
 * A process is a task's when it descends from the shim of a task that was placed on that GPU, or is
 * in the task's cgroup (exec/process_owner.h); a server of MPS is neither a task's nor external;
 * every other process is external. A task of which the driver lists no process may still have
 * memory there: old drivers do not list the clients of MPS. It counts as having none only
 * where the listed processes explain all memory in use:
 *
 *     in use 10.0 GiB, listed 6.1 (task 3) and 3.8 (external)    task 4 has none
 *     in use 10.0 GiB, listed 6.1 (task 3)                       task 4 may have 3.9 GiB: not known
 */
#include <math.h>

#include "base/array.h"
#include "base/units.h"
#include "core/memory_domain.h"
#include "daemon/gpus/gpus_state.h"

struct roots {
    pid_t pid[RESIDENTS_SAMPLED_MAX];
    uint64_t task[RESIDENTS_SAMPLED_MAX];
    int attempt[RESIDENTS_SAMPLED_MAX];
    size_t count;
    size_t n_own; /* the first ones: of tasks on the GPU itself */
};

/*
 * The shims of the tasks on one GPU: only those tasks can have processes there. And those of tasks
 * on other instances that share its memory: whether NVML lists a process on each instance of its
 * GPU instance was not seen on a real GPU. Such a process is not external.
 */
static void collect_roots(const struct gpus *gpus, const struct gpu_view *gpu, struct roots *roots)
{
    const struct resident *resident;
    struct domain_walk walk = memory_domain_walk(gpu);
    roots->count = roots->n_own = 0;
    while (roots->count < RESIDENTS_SAMPLED_MAX && (resident = memory_domain_resident(&walk))) {
        pid_t shim = gpus->parts.hooks.find_shim(gpus->parts.hooks.context, resident->task);
        if (!shim)
            continue;
        const struct task *known = core_task(gpus->parts.core, resident->task);
        roots->pid[roots->count] = shim;
        roots->attempt[roots->count] = known ? known->attempts : 0;
        roots->task[roots->count++] = resident->task;
        roots->n_own += walk.at == gpu;
    }
}

static void add_to_task(struct core_sample *sample, uint64_t task, struct reading used)
{
    for (int i = 0; i < sample->n_tasks; i++) {
        struct task_memory *memory = &sample->tasks[i];
        if (memory->task != task)
            continue;
        memory->mem_used_bytes.valid &= used.valid;
        memory->mem_used_bytes.value += used.value;
        return;
    }
    sample->tasks[sample->n_tasks++] = (struct task_memory){task, used};
}

/* ---- shares ---- */

/* Returns NULL when memory is out: then one part is missing until the next poll. */
static struct share *add_share(struct gpu_state *state, uint64_t task, unsigned processes)
{
    const struct share share = {.task = task,
        .holder = {.processes = processes, .sm_utilisation = reading_of(0)},
        .calls_idle_us = reading_of(0)};
    if (ARRAY_APPEND(state->shares, state->n_shares, state->share_capacity, share) < 0)
        return NULL;
    return &state->shares[state->n_shares - 1];
}

static void keep_shares_before(struct gpu_state *state)
{
    struct share *spare = state->shares_before;
    size_t capacity = state->share_capacity_before;
    state->shares_before = state->shares;
    state->n_shares_before = state->n_shares;
    state->share_capacity_before = state->share_capacity;
    state->shares = spare;
    state->n_shares = 0;
    state->share_capacity = capacity;
}

/* Where the driver lists no processes, each task counts as one. */
static void begin_shares(struct gpu_state *state, const struct gpu_view *gpu)
{
    keep_shares_before(state);
    for (int i = 0; i < gpu->n_residents; i++)
        add_share(state, gpu->residents[i].task, state->sample.processes.valid ? 0 : 1);
}

/* The share has been idle as long as the last of its processes that called CUDA. */
static void count_calls(
    const struct gpus *gpus, struct share *share, const struct gpu_process *process)
{
    const struct gpus_hooks *hooks = &gpus->parts.hooks;
    struct reading idle = READING_NONE, *so_far = &share->calls_idle_us;
    if (share->task)
        idle = hooks->calls_idle_us(hooks->context, share->task, process->pid);
    bool is_first = share->holder.processes == 0;
    if (is_first || (so_far->valid && (!idle.valid || idle.value < so_far->value)))
        *so_far = idle;
}

/* `task`: 0 for an external process, which has its own share. */
static void count_process(const struct gpus *gpus, struct gpu_state *state, uint64_t task,
    const struct gpu_process *process)
{
    struct share *share = NULL;
    for (size_t i = 0; task && i < state->n_shares && !share; i++)
        if (state->shares[i].task == task)
            share = &state->shares[i];
    if (!share)
        share = add_share(state, task, 0);
    if (!share)
        return;
    struct gpu_holder *holder = &share->holder;
    count_calls(gpus, share, process);
    holder->processes++;
    holder->is_mps |= (process->kinds & GPU_PROCESS_MPS) != 0;
    holder->sm_utilisation.valid &= process->sm_utilisation.valid;
    holder->sm_utilisation.value += process->sm_utilisation.value;
}

/* ---- tasks without memory there ---- */

/* Chosen: less than the smallest CUDA context that was measured, 287 MiB. */
#define UNEXPLAINED_MAX (256 * MIB)
/* Chosen: an MPS server takes less; more is its clients', which old drivers do not list. */
#define MPS_SERVER_MAX (1 * GIB)

/* What is left of the bytes without those of the listed processes. */
static struct reading without_processes(struct reading bytes, const struct gpu_sample *sample)
{
    bytes.valid &= sample->processes.valid;
    for (size_t i = 0; i < sample->processes.count; i++) {
        const struct gpu_process *process = &sample->processes.item[i];
        double most = process->is_mps_server ? (double)MPS_SERVER_MAX : bytes.value;
        bytes.valid &= process->used_bytes.valid;
        bytes.value -= fmin(process->used_bytes.value, most);
    }
    return bytes;
}

/* Memory in use beyond that of the listed processes, also of those on other instances that share
 * it: a process has it that the driver does not list. */
static struct reading unexplained_bytes(const struct gpus *gpus, const struct gpu_state *state)
{
    const struct gpu_info *gpu = &gpus->set->gpu[state - gpus->states];
    struct reading bytes = without_processes(state->sample.mem_used_bytes, &state->sample);
    for (size_t i = 0; i < gpus->set->count; i++)
        if (&gpus->states[i] != state && gpu_info_shares_memory(&gpus->set->gpu[i], gpu))
            bytes = without_processes(bytes, &gpus->states[i].sample);
    return bytes;
}

static bool is_listed(const struct core_sample *sample, uint64_t task)
{
    for (int i = 0; i < sample->n_tasks; i++)
        if (sample->tasks[i].task == task)
            return true;
    return false;
}

static void add_absent(const struct gpus *gpus, const struct gpu_view *gpu,
    const struct gpu_state *state, struct core_sample *sample)
{
    struct reading left = unexplained_bytes(gpus, state);
    if (!left.valid || left.value > (double)UNEXPLAINED_MAX)
        return;
    for (int i = 0; i < gpu->n_residents && sample->n_tasks < RESIDENTS_SAMPLED_MAX; i++)
        if (!is_listed(sample, gpu->residents[i].task))
            sample->tasks[sample->n_tasks++] = (struct task_memory){
                gpu->residents[i].task, reading_of(0)};
}

void gpu_attribute(struct gpus *gpus, struct gpu_state *state, struct core_sample *sample)
{
    const struct gpu_view *gpu = &core_view(gpus->parts.core)->gpus[state->view];
    struct roots roots;
    double external_compute = 0;
    begin_shares(state, gpu);
    state->n_external = 0;
    if (!state->sample.processes.valid)
        return;
    collect_roots(gpus, gpu, &roots);
    const struct attempt_roots attempts = {.shims = roots.pid,
        .count = roots.count,
        .cgroup_home = gpus->parts.hooks.cgroup_home(gpus->parts.hooks.context),
        .state_dir = gpus->parts.config->state_dir,
        .tasks = roots.task,
        .attempts = roots.attempt};
    for (size_t i = 0; i < state->sample.processes.count; i++) {
        const struct gpu_process *process = &state->sample.processes.item[i];
        bool computes = (process->kinds & ~(unsigned)GPU_PROCESS_GRAPHICS) != 0;
        int root = ancestry_cache_find_root(
            &gpus->ancestry, process->pid, &attempts, state->sample.at_us);
        if (root >= (int)roots.n_own)
            continue;
        if (root >= 0) {
            add_to_task(sample, roots.task[root], process->used_bytes);
        } else if (!process->is_mps_server) {
            ARRAY_APPEND(state->external, state->n_external, state->external_capacity, *process);
            external_compute += computes;
        } else {
            continue;
        }
        if (computes)
            count_process(gpus, state, root >= 0 ? roots.task[root] : 0, process);
    }
    sample->external_processes = reading_of(external_compute);
    add_absent(gpus, gpu, state, sample);
}
