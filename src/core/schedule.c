/* One scheduling pass: the recovery queue first, then the main queue in order of submission. */
#include <errno.h>

#include "core/core_private.h"

const struct policy *core_policy_of(const struct core *core, const struct task *task)
{
    return task->request.policy ? task->request.policy : core->settings.policy;
}

struct placement_query core_query(const struct core *core, const struct task *task, int64_t now_us)
{
    return (struct placement_query){
        .view = &core->view,
        .conditions = &core->settings.conditions,
        .task = task,
        .now_us = now_us,
        .idle_only =
            task->request.exclusive || task->state == TASK_RECOVERING || core_policy_of(core, task)->whole_gpus,
    };
}

/* A task that has crashed beside others twice is left alone for the rest of its life. */
static bool wants_whole_gpus(const struct core *core, const struct task *task)
{
    return task->request.exclusive || core_policy_of(core, task)->whole_gpus || task->oom_count > 1;
}

static int place(struct core *core, struct task *task, int64_t now_us)
{
    struct event event = {.kind = EVENT_PLACE, .time_us = now_us, .task = task->id};
    event.place.gpus = core->chosen;
    event.place.n = task->request.gpus;
    event.place.whole = wants_whole_gpus(core, task);
    event.place.sharing = task->request.sharing;
    int r = core_decide(core, &event);
    return r < 0 ? r : core_add_effect(core, EFFECT_START, task->id, NULL);
}

static enum placement_answer ask_policy(struct core *core, const struct task *task, int64_t now_us)
{
    struct placement_query query = core_query(core, task, now_us);
    return core_policy_of(core, task)->choose(&query, core->chosen, core->verdicts);
}

/* Tells the driver why the first task of a queue waits, once for each change of the reasons (not of their figures). */
static int note_wait(struct core *core, const struct task *task)
{
    uint64_t why = 14695981039346656037u; /* FNV-1a over the kinds and the tasks named */
    for (int i = 0; i < core->view.n_gpus; i++) {
        why = (why ^ (uint64_t)core->verdicts[i].kind) * 1099511628211u;
        why = (why ^ core->verdicts[i].task) * 1099511628211u;
    }
    if (core->waiting_task == task->id && core->waiting_why == why)
        return 0;
    core->waiting_task = task->id;
    core->waiting_why = why;
    return core_add_effect(core, EFFECT_WAIT, task->id, NULL);
}

static bool may_drain(const struct gpu_view *gpu, uint64_t task)
{
    return gpu->id.is_place && gpu->health == VIEW_OK && (!gpu->drained_for || gpu->drained_for == task);
}

/* The GPU that will be free first as far as one can guess: already kept for it, then the fewest tasks, then least used.
 */
static bool drains_sooner(const struct gpu_view *a, const struct gpu_view *b)
{
    if (!b || a->n_residents != b->n_residents)
        return !b || a->n_residents < b->n_residents;
    return reading_or(a->mem_used_bytes, 1e18) < reading_or(b->mem_used_bytes, 1e18);
}

/* Keeps as many GPUs free of newcomers as the first recovering task wants; it keeps those that it has. */
static void drain_for(struct core *core, const struct task *task)
{
    int missing = task->request.gpus;
    for (int i = 0; i < core->view.n_gpus; i++)
        if (core->view.gpus[i].drained_for == task->id)
            missing--;
    for (; missing > 0; missing--) {
        struct gpu_view *best = NULL;
        for (int i = 0; i < core->view.n_gpus; i++) {
            struct gpu_view *gpu = &core->view.gpus[i];
            bool whole_instance_only = gpu->id.is_mig_instance && task->request.gpus > 1;
            if (!gpu->drained_for && may_drain(gpu, task->id) && !whole_instance_only && drains_sooner(gpu, best))
                best = gpu;
        }
        if (!best)
            return;
        best->drained_for = task->id;
    }
}

static int schedule_recovery(struct core *core, int64_t now_us)
{
    struct task *next;
    for (struct task *task = core->recovery_queue.first; task; task = next) {
        next = task->next;
        if (ask_policy(core, task, now_us) == PLACE_NOW) {
            int r = place(core, task, now_us);
            if (r < 0)
                return r;
        } else if (task == core->recovery_queue.first) {
            drain_for(core, task);
        }
    }
    return 0;
}

/* First in, first out: the first task that has to wait keeps those behind it waiting, so that none is starved. */
static int schedule_main(struct core *core, int64_t now_us)
{
    struct task *task;
    while ((task = core->main_queue.first)) {
        if (task->request.need.kind == NEED_PENDING)
            return 0;
        if (ask_policy(core, task, now_us) != PLACE_NOW)
            return note_wait(core, task);
        int r = place(core, task, now_us);
        if (r < 0)
            return r;
    }
    return 0;
}

int core_schedule(struct core *core, int64_t now_us)
{
    int r = schedule_recovery(core, now_us);
    return r < 0 ? r : schedule_main(core, now_us);
}
