/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which task each process on a GPU belongs to.
 *
 * A process is a task's when it descends from the shim of that task, or is in the task's cgroup
 * (exec/process_owner.h); a server of MPS is neither a task's nor external; every other process is
 * external. That is found out once for the process, whatever GPU it is on: a script that sets
 * CUDA_VISIBLE_DEVICES itself brings its process to a GPU that its task was not given. Such a
 * process is misplaced: its task has its memory and activity, the GPU is used, and people are
 * warned.
 *
 *     task 2 has GPU 1; its process is on GPU 0     GPU 0: misplaced, of task 2; GPU 1: none
 *
 * A process of a suspended client of MPS, whose context stays, is neither misplaced nor external,
 * while the task has no more there than stayed: its script may start another process meanwhile. Nor
 * is one whose copy lies on a neighbour GPU, where the driver may list it.
 *
 * The owner of a process that ended before /proc was read is unknown. Such a process is counted
 * nowhere. The number of external processes is then unknown too, unless another process is
 * external: a task that ran out of memory is judged by whether it was alone.
 *
 * A task of which the driver lists no process may still have memory there: old drivers do not list
 * the clients of MPS. It counts as having none only where the listed processes explain all memory
 * in use:
 *
 *     in use 10.0 GiB, listed 6.1 (task 3) and 3.8 (external)    task 4 has none
 *     in use 10.0 GiB, listed 6.1 (task 3)                       task 4 may have 3.9 GiB: not known
 */
#include <math.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/units.h"
#include "core/memory_domain.h"
#include "daemon/gpus/gpus_state.h"

/* ---- whose processes there can be ---- */

void task_roots_collect(struct gpus *gpus)
{
    struct task_roots *roots = &gpus->roots;
    roots->count = 0;
    for (const struct task *task = core_next_task(gpus->parts.core, 0); task;
         task = core_next_task(gpus->parts.core, task->id)) {
        pid_t shim = gpus->parts.hooks.find_shim(gpus->parts.hooks.context, task->id);
        if (!shim)
            continue;
        if (ARRAY_RESERVE(roots->shims, roots->shim_capacity, roots->count + 1) < 0 ||
            ARRAY_RESERVE(roots->tasks, roots->task_capacity, roots->count + 1) < 0 ||
            ARRAY_RESERVE(roots->attempts, roots->attempt_capacity, roots->count + 1) < 0)
            return;
        roots->shims[roots->count] = shim;
        roots->tasks[roots->count] = task->id;
        roots->attempts[roots->count++] = task->attempts;
    }
}

void task_roots_fini(struct task_roots *roots)
{
    free(roots->shims);
    free(roots->tasks);
    free(roots->attempts);
    *roots = (struct task_roots){0};
}

/* Returns the index of the task of the process among the roots; -1: none. */
static int find_root(struct gpus *gpus, pid_t pid, int64_t at_us)
{
    const struct attempt_roots attempts = {.shims = gpus->roots.shims,
        .count = gpus->roots.count,
        .cgroup_home = gpus->parts.hooks.cgroup_home(gpus->parts.hooks.context),
        .state_dir = gpus->parts.config->state_dir,
        .tasks = gpus->roots.tasks,
        .attempts = gpus->roots.attempts};
    return ancestry_cache_find_root(&gpus->ancestry, pid, &attempts, at_us);
}

/* The task that the listed process was of, while that attempt runs; 0: none. */
static uint64_t former_task(const struct gpus *gpus, const struct listed_process *process)
{
    for (size_t i = 0; i < gpus->roots.count; i++)
        if (process->task && gpus->roots.tasks[i] == process->task &&
            gpus->roots.attempts[i] == process->attempt)
            return process->task;
    return 0;
}

/* Is it known already that the process is of this attempt? */
static bool is_known_of(const struct listed_process *process, uint64_t task, int attempt)
{
    return process->task == task && process->attempt == attempt;
}

/* Returns the task of the process; 0: none. The pid of a process that has ended may be another
 * process's by now: that is not asked, and before a process becomes a task's it is made sure that
 * it is still the one that was listed. `process` may be NULL. */
static uint64_t find_task(
    struct gpus *gpus, pid_t pid, struct listed_process *process, int64_t at_us)
{
    if (process && process->gone_us)
        return former_task(gpus, process);
    int root = find_root(gpus, pid, at_us);
    if (root < 0)
        return 0;
    uint64_t task = gpus->roots.tasks[root];
    int attempt = gpus->roots.attempts[root];
    if (!process || is_known_of(process, task, attempt))
        return task;
    listed_process_check(process, at_us);
    if (process->gone_us)
        return former_task(gpus, process);
    process->task = task;
    process->attempt = attempt;
    return task;
}

/*
 * Has the task a place on another instance that shares this GPU's memory? Whether NVML lists a
 * process on each instance of its GPU instance was not seen on a real GPU.
 */
static bool is_beside(const struct gpu_view *gpu, uint64_t task)
{
    const struct resident *resident;
    struct domain_walk walk = memory_domain_walk(gpu);
    while ((resident = memory_domain_resident(&walk)))
        if (resident->task == task && walk.at != gpu)
            return true;
    return false;
}

/* Chosen: contexts grow with the code that is loaded. Less than the smallest that was measured, 287
 * MiB: one more process is seen. */
#define CONTEXT_GROWS_MAX (256 * MIB)

/* The memory of the task's processes in the sample, up to process `last`. */
static double listed_bytes(
    struct gpus *gpus, const struct gpu_state *state, uint64_t task, size_t last)
{
    double bytes = 0;
    for (size_t i = 0; i <= last; i++) {
        const struct gpu_process *process = &state->sample.processes.item[i];
        const struct listed_process *listed = listed_process_note(
            gpus, process->pid, state->sample.at_us);
        if (listed && listed->task == task)
            bytes += reading_or(process->used_bytes, 0);
    }
    return bytes;
}

/* Has the scheduler left process `i` of the task on the GPU, which the task was not given? */
static bool is_expected(struct gpus *gpus, const struct gpu_state *state, uint64_t task, size_t i)
{
    const struct gpu_view *gpu = &core_view(gpus->parts.core)->gpus[state->view];
    if (gpu_view_has_copy(gpu, task) || is_beside(gpu, task))
        return true;
    if (!gpu_view_has_context(gpu, task))
        return false;
    const struct task *suspended = core_task(gpus->parts.core, task);
    double left = reading_or(suspended->run->yield.context_bytes, INFINITY);
    return listed_bytes(gpus, state, task, i) <= left + (double)CONTEXT_GROWS_MAX;
}

/* ---- a task's memory ---- */

static void add_to_task(const struct gpus *gpus, struct core_sample *sample, uint64_t task,
    const struct gpu_process *process)
{
    const struct gpus_hooks *hooks = &gpus->parts.hooks;
    struct reading used = process->used_bytes;
    bool is_mps_client = process->kinds & GPU_PROCESS_MPS;
    bool is_hooked = hooks->is_hooked(hooks->context, task, gpu_process_id(process));
    bool is_carried = is_hooked && hooks->can_carry(hooks->context, task, gpu_process_id(process));
    const struct job *job = jobs_find(gpus->parts.jobs, task);
    for (int i = 0; i < sample->n_tasks; i++) {
        struct task_memory *memory = &sample->tasks[i];
        if (memory->task != task)
            continue;
        memory->mem_used_bytes.valid &= used.valid;
        memory->mem_used_bytes.value += used.value;
        memory->mps_clients += is_mps_client;
        memory->hooked += is_hooked;
        memory->unhooked += !is_hooked;
        memory->carried += is_carried;
        return;
    }
    sample->tasks[sample->n_tasks++] = (struct task_memory){.task = task,
        .mem_used_bytes = used,
        .mps_clients = is_mps_client,
        .hooked = is_hooked,
        .unhooked = !is_hooked,
        .carried = is_carried,
        .is_inactive = job && job->is_inactive};
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
        idle = hooks->calls_idle_us(hooks->context, share->task, gpu_process_id(process));
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
                .task = gpu->residents[i].task, .mem_used_bytes = reading_of(0)};
}

/* ---- misplaced processes ---- */

/* Chosen: while clients of MPS make their contexts on one GPU, NVML lists them on all GPUs of the
 * server: for one or two samples on two H200s (docs/measured/start.md). */
#define MISPLACED_MIN_US (10 * SECOND_US)

static const struct misplaced_process *find_misplaced_before(
    const struct gpu_state *state, uint64_t task)
{
    for (size_t i = 0; i < state->n_misplaced_before; i++)
        if (state->misplaced_before[i].task == task)
            return &state->misplaced_before[i];
    return NULL;
}

static void keep_misplaced_before(struct gpu_state *state)
{
    struct misplaced_process *spare = state->misplaced_before;
    size_t capacity = state->misplaced_capacity_before;
    state->misplaced_before = state->misplaced;
    state->n_misplaced_before = state->n_misplaced;
    state->misplaced_capacity_before = state->misplaced_capacity;
    state->misplaced = spare;
    state->n_misplaced = 0;
    state->misplaced_capacity = capacity;
}

static void add_misplaced(const struct gpus *gpus, struct gpu_state *state, uint64_t task,
    const struct gpu_process *process)
{
    const struct misplaced_process *before = find_misplaced_before(state, task);
    int64_t at_us = state->sample.at_us, since_us = before ? before->since_us : at_us;
    const struct misplaced_process one = {
        task, process->pid, process->used_bytes, since_us, at_us - since_us >= MISPLACED_MIN_US};
    bool is_news = one.is_lasting && before && !before->is_lasting;
    for (size_t i = 0; i < state->n_misplaced; i++)
        is_news &= state->misplaced[i].task != task;
    if (ARRAY_APPEND(state->misplaced, state->n_misplaced, state->misplaced_capacity, one) == 0 &&
        is_news)
        log_warning("task %llu uses GPU %s, which it was not given (process %d): %s",
            (unsigned long long)task, gpus->set->gpu[state - gpus->states].index, (int)process->pid,
            gpu_view_has_context(&core_view(gpus->parts.core)->gpus[state->view], task)
                ? "it is suspended, and its script has started another process"
                : "its script sets CUDA_VISIBLE_DEVICES; colloc sets it, so remove that line");
}

struct reading gpus_misplaced_bytes(const struct gpus *gpus, uint64_t task, bool only_again)
{
    struct reading sum = READING_NONE;
    for (size_t i = 0; gpus->set && i < gpus->set->count; i++)
        for (size_t k = 0; k < gpus->states[i].n_misplaced; k++) {
            const struct misplaced_process *one = &gpus->states[i].misplaced[k];
            bool is_first = one->since_us == gpus->states[i].sample.at_us;
            if (one->task == task && !(is_first && only_again))
                sum = reading_of(reading_or(sum, 0) + reading_or(one->used_bytes, 0));
        }
    return sum;
}

/* ---- all processes of a GPU ---- */

static void add_external(struct gpus *gpus, struct gpu_state *state, struct listed_process *listed,
    const struct gpu_process *process)
{
    if (ARRAY_APPEND(state->external, state->n_external, state->external_capacity, *process) == 0 &&
        listed && listed_process_is_left(listed, state->sample.at_us))
        left_memory_add(gpus, state, listed, process->used_bytes);
}

void gpu_attribute(struct gpus *gpus, struct gpu_state *state, struct core_sample *sample)
{
    const struct gpu_view *gpu = &core_view(gpus->parts.core)->gpus[state->view];
    double external_compute = 0;
    bool is_any_unknown = false;
    begin_shares(state, gpu);
    keep_misplaced_before(state);
    state->n_external = state->n_left = 0;
    if (!state->sample.processes.valid)
        return;
    for (size_t i = 0; i < state->sample.processes.count; i++) {
        struct gpu_process *process = &state->sample.processes.item[i];
        bool computes = (process->kinds & ~(unsigned)GPU_PROCESS_GRAPHICS) != 0;
        int64_t at_us = state->sample.at_us;
        struct listed_process *listed = listed_process_note(gpus, process->pid, at_us);
        uint64_t task = find_task(gpus, process->pid, listed, at_us);
        process->born = listed ? listed->born : 0;
        bool is_resident = task && gpu_view_resident(gpu, task);
        if (process->is_mps_server || (task && !is_resident && is_expected(gpus, state, task, i)))
            continue;
        if (!task && listed && listed_process_is_unknown(listed, at_us)) {
            is_any_unknown |= computes;
            continue;
        }
        if (is_resident)
            add_to_task(gpus, sample, task, process);
        else if (task)
            add_misplaced(gpus, state, task, process);
        else
            add_external(gpus, state, listed, process);
        external_compute += computes && !is_resident;
        if (computes)
            count_process(gpus, state, task, process);
    }
    sample->external_processes = is_any_unknown && external_compute == 0
                                     ? READING_NONE
                                     : reading_of(external_compute);
    add_absent(gpus, gpu, state, sample);
}
