/* SPDX-License-Identifier: Apache-2.0 */
/* Whose the processes on a GPU are: our tasks' by process tree, MPS's own, and others'. */
#include <math.h>
#include <stdlib.h>

#include "base/units.h"
#include "daemon/daemon.h"

struct roots {
    pid_t pid[RESIDENTS_SEEN_MAX];
    uint64_t task[RESIDENTS_SEEN_MAX];
    size_t count;
};

/* The shims of the tasks on one GPU: nobody else's processes can be theirs. */
static void collect_roots(struct daemon *daemon, const struct gpu_view *gpu, struct roots *roots)
{
    roots->count = 0;
    for (int i = 0; i < gpu->n_residents && roots->count < RESIDENTS_SEEN_MAX; i++) {
        struct job *job = job_find(daemon, gpu->residents[i].task);
        if (!job || job->watch.pidfd < 0)
            continue;
        roots->pid[roots->count] = job->watch.shim;
        roots->task[roots->count++] = job->id;
    }
}

static bool add_foreign(struct gpu_state *state, const struct gpu_process *process)
{
    if (state->n_foreign == state->foreign_room) {
        size_t room = state->foreign_room ? state->foreign_room * 2 : 8;
        struct gpu_process *foreign = realloc(state->foreign, room * sizeof *foreign);
        if (!foreign)
            return false;
        state->foreign = foreign;
        state->foreign_room = room;
    }
    state->foreign[state->n_foreign++] = *process;
    return true;
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

/* NULL when memory is out: then somebody's part is missing until the next look. */
static struct share *add_share(struct gpu_state *state, uint64_t task, unsigned processes)
{
    if (state->n_shares == state->share_room) {
        size_t room = state->share_room ? state->share_room * 2 : 8;
        struct share *shares = realloc(state->shares, room * sizeof *shares);
        if (!shares)
            return NULL;
        state->shares = shares;
        state->share_room = room;
    }
    struct share *share = &state->shares[state->n_shares++];
    *share = (struct share){
        .task = task, .holder = {.processes = processes, .sm_utilisation = reading_of(0)}};
    return share;
}

static void keep_shares_before(struct gpu_state *state)
{
    struct share *room = state->shares_before;
    size_t capacity = state->share_room_before;
    state->shares_before = state->shares;
    state->n_shares_before = state->n_shares;
    state->share_room_before = state->share_room;
    state->shares = room;
    state->n_shares = 0;
    state->share_room = capacity;
}

/* Where the driver lists no processes, each task counts as one. */
static void begin_shares(struct gpu_state *state, const struct gpu_view *gpu)
{
    keep_shares_before(state);
    for (int i = 0; i < gpu->n_residents; i++)
        add_share(state, gpu->residents[i].task, state->sample.processes.valid ? 0 : 1);
}

static void share_with(struct gpu_state *state, uint64_t task, const struct gpu_process *process)
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
    holder->processes++;
    holder->is_mps |= (process->kinds & GPU_PROCESS_MPS) != 0;
    holder->sm_utilisation.valid &= process->sm_utilisation.valid;
    holder->sm_utilisation.value += process->sm_utilisation.value;
}

/* ---- who has no memory there ---- */

/* The smallest CUDA context that was measured has 287 MiB. */
#define UNEXPLAINED_MAX (256 * MIB)
/* Of a server of MPS: more would be its clients', whom old drivers do not list. */
#define MPS_SERVER_MAX (1 * GIB)

/* Memory in use that no listed process is said to have: what a process has that the driver does not
 * show us. */
static struct reading unexplained(const struct gpu_sample *sample)
{
    double bytes = sample->mem_used_bytes.value;
    for (size_t i = 0; i < sample->processes.count; i++) {
        const struct gpu_process *process = &sample->processes.item[i];
        double most = gpu_process_is_mps_server(process->pid) ? (double)MPS_SERVER_MAX : bytes;
        if (!process->used_bytes.valid)
            return READING_NONE;
        bytes -= fmin(process->used_bytes.value, most);
    }
    return sample->mem_used_bytes.valid ? reading_of(bytes) : READING_NONE;
}

static bool is_told(const struct core_sample *sample, uint64_t task)
{
    for (int i = 0; i < sample->n_tasks; i++)
        if (sample->tasks[i].task == task)
            return true;
    return false;
}

/* Tasks of which no process is listed have no memory there, unless they may have what nobody is
 * listed with. */
static void tell_absent(
    const struct gpu_view *gpu, const struct gpu_state *state, struct core_sample *sample)
{
    struct reading left = unexplained(&state->sample);
    if (!left.valid || left.value > (double)UNEXPLAINED_MAX)
        return;
    for (int i = 0; i < gpu->n_residents && sample->n_tasks < RESIDENTS_SEEN_MAX; i++)
        if (!is_told(sample, gpu->residents[i].task))
            sample->tasks[sample->n_tasks++] = (struct task_memory){
                gpu->residents[i].task, reading_of(0)};
}

void attribute(struct daemon *daemon, struct gpu_state *state, struct core_sample *sample)
{
    const struct gpu_view *gpu = &core_view(daemon->core)->gpus[state->view];
    struct roots roots;
    double foreign_compute = 0;
    begin_shares(state, gpu);
    state->n_foreign = 0;
    if (!state->sample.processes.valid)
        return;
    collect_roots(daemon, gpu, &roots);
    for (size_t i = 0; i < state->sample.processes.count; i++) {
        const struct gpu_process *process = &state->sample.processes.item[i];
        bool computes = (process->kinds & ~(unsigned)GPU_PROCESS_GRAPHICS) != 0;
        int root = ancestry_cache_find_root(
            &daemon->ancestry, process->pid, roots.pid, roots.count, state->sample.at_us);
        if (root >= 0) {
            add_to_task(sample, roots.task[root], process->used_bytes);
        } else if (!gpu_process_is_mps_server(process->pid)) {
            add_foreign(state, process);
            foreign_compute += computes;
        } else {
            continue;
        }
        if (computes)
            share_with(state, root >= 0 ? roots.task[root] : 0, process);
    }
    sample->external_processes = reading_of(foreign_compute);
    tell_absent(gpu, state, sample);
}
