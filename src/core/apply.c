/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Applying an event: the only way in which the state changes, live and when a log is replayed.
 *
 * For each event, apply_to_task calls one function, which first tests that the event suits the
 * state of the task (the life-cycle of task.h) and changes nothing if not: CORE_NOT_NOW. It then
 * moves the task and keeps four things in step, which task_is_sound tests after every event:
 *
 *   - its queue: the task is in one exactly while it waits to be placed or resumed;
 *   - its GPUs: `gpus` is set exactly while its state holds GPUs, and the task is then a resident
 *     of each of them;
 *   - its process: known exactly from RUNNING to ENDING;
 *   - its times: waiting, executing and being stopped are added up when they end.
 *
 * How a running task gives way and is resumed is in apply_yield.c.
 *
 * Nothing is decided here, no effect is left, and no clock is read: time is in the event. So a
 * replayed log gives the same state, event by event. Only the samples are not in the log and lost
 * in a restart; the next samples replace them.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "core/core_private.h"
#include "core/kind_speed.h"

/* `hint`: where it is looked for first. A list has known GPUs in the order of the view, mostly. */
static int find_gpu(const struct core *core, const char *uuid, int hint)
{
    const struct cluster_view *view = &core->view;
    if (hint < view->n_gpus && strcmp(view->gpus[hint].id.uuid, uuid) == 0)
        return hint;
    for (int i = 0; i < view->n_gpus; i++)
        if (strcmp(view->gpus[i].id.uuid, uuid) == 0)
            return i;
    return -1;
}

static void set_distance(struct cluster_view *view, int a, int b, char distance)
{
    if (a >= 0 && b >= 0)
        view->distances[a * view->n_gpus + b] = view->distances[b * view->n_gpus + a] = distance;
}

/* The distances of the list, which names GPUs in its own order. When memory is out they stay
 * unknown: they only order sets that are otherwise equal. */
static void set_distances(struct core *core, const struct event *event)
{
    struct cluster_view *view = &core->view;
    const struct gpu_identity *list = event->gpus.list;
    size_t size = (size_t)view->n_gpus * (size_t)view->n_gpus;
    bool any = false;
    for (int i = 0; i < event->gpus.n; i++)
        any |= *list[i].distances;
    free(view->distances);
    view->distances = any && view->n_gpus <= VIEW_DISTANCES_MAX ? malloc(size) : NULL;
    if (!view->distances)
        return;
    memset(view->distances, VIEW_DISTANCE_UNKNOWN, size);
    for (int i = 0; i < event->gpus.n; i++)
        for (int k = 0; k < i && list[i].distances[k]; k++)
            set_distance(view, find_gpu(core, list[i].uuid, i), find_gpu(core, list[k].uuid, k),
                list[i].distances[k]);
}

/* The health of a GPU that was listed again. */
static enum view_health health_as_listed(const struct gpu_view *gpu, bool keeps_samples)
{
    bool is_sound = gpu->health == VIEW_OK || gpu->health == VIEW_OUT_OF_USE;
    if (gpu->id.is_gone)
        return VIEW_LOST;
    if (!keeps_samples || !(is_sound || gpu->health == VIEW_FAULTY))
        return VIEW_UNSEEN;
    if (!is_sound)
        return gpu->health;
    return gpu->id.is_out_of_use ? VIEW_OUT_OF_USE : VIEW_OK;
}

static int apply_gpus(struct core *core, const struct event *event)
{
    struct cluster_view *view = &core->view;
    int most = view->n_gpus + event->gpus.n;
    struct gpu_view *gpus = realloc(view->gpus, (size_t)most * sizeof *gpus + 1);
    if (gpus)
        view->gpus = gpus;
    int *chosen = realloc(core->chosen, (size_t)most * sizeof *chosen + 1);
    if (chosen)
        core->chosen = chosen;
    struct verdict *verdicts = realloc(core->verdicts, (size_t)most * sizeof *verdicts + 1);
    if (verdicts)
        core->verdicts = verdicts;
    struct head_outlook *outlooks = realloc(core->outlooks, (size_t)most * sizeof *outlooks + 1);
    if (outlooks)
        core->outlooks = outlooks;
    double *open_bytes = realloc(view->open_bytes, (size_t)most * sizeof *open_bytes + 1);
    if (open_bytes)
        view->open_bytes = open_bytes;
    if (!gpus || !chosen || !verdicts || !outlooks || !open_bytes)
        return -ENOMEM;

    for (int i = 0; i < view->n_gpus; i++)
        view->gpus[i].is_listed = false;
    for (int i = 0, next = 0; i < event->gpus.n; i++) {
        int known = find_gpu(core, event->gpus.list[i].uuid, next);
        next = known >= 0 ? known + 1 : view->n_gpus + 1;
        struct gpu_view *gpu = &view->gpus[known >= 0 ? known : view->n_gpus];
        if (known < 0) {
            *gpu = (struct gpu_view){0};
            view->n_gpus++;
        }
        gpu->id = event->gpus.list[i];
        gpu->is_listed = true;
        gpu->health = health_as_listed(gpu, event->gpus.keeps_samples);
    }
    for (int i = 0; i < view->n_gpus; i++)
        if (!view->gpus[i].is_listed)
            view->gpus[i].health = VIEW_LOST;
    set_distances(core, event);
    memory_domain_link(view);
    core->any_gone = false;
    view->is_mps_on_some = false;
    double largest = 0;
    for (int i = 0; i < view->n_gpus; i++) {
        const struct gpu_identity *id = &view->gpus[i].id;
        core_note_open(core, i);
        core->any_gone |= id->is_gone;
        view->has_nodes |= id->node != view->gpus[0].id.node;
        view->is_mps_on_some |= id->without_mps && id->is_place && !id->is_mig_instance;
        if ((double)id->mem_total_bytes > largest)
            largest = (double)id->mem_total_bytes;
    }
    view->mem_total_max_bytes = largest > 0 ? reading_of(largest) : READING_NONE;
    kind_speed_compare(view);
    return 0;
}

static void start_waiting(struct core *core, struct task *task, int64_t now_us)
{
    struct task_queue *queue = task->state == TASK_BLOCKED      ? &core->blocked_queue
                               : task->state == TASK_RECOVERING ? &core->recovery_queue
                                                                : core_queue_of(core, task);
    queue_push_in_order(queue, task);
    core_note_blocked(core, task, now_us);
    core_note_arrival(core, task);
    task->queued_us = now_us;
}

static void stop_waiting(struct task *task, int64_t now_us)
{
    task->waited_us += now_us - task->queued_us;
    if (task->queue)
        queue_remove(task);
}

/* A task that has run out of GPU memory waits in the recovery queue, ahead of all others. */
static void return_to_queue(struct core *core, struct task *task, int64_t now_us)
{
    task_move(task, task->oom_count > 0 ? TASK_RECOVERING : TASK_QUEUED);
    start_waiting(core, task, now_us);
}

/* `array`: of the task */
static int add_task(
    struct core *core, const struct event *event, uint64_t id, struct task_array array)
{
    if (!core_add_user(core, event->submit.uid, event->time_us))
        return -ENOMEM;
    struct task *task = core_add_task(core, id);
    if (!task)
        return -ENOMEM;
    task->uid = event->submit.uid;
    task->array = array;
    task->request = event->submit.request;
    task->request.gpu_kind = NULL;
    if (event->submit.request.gpu_kind &&
        !(task->request.gpu_kind = strdup(event->submit.request.gpu_kind)))
        return -ENOMEM;
    core->n_taking_turns += task->request.takes_turns;
    core->any_time_limit |= task->request.time_limit_us > 0;
    core->view.has_services |= task->request.service.is_service;
    if (core_take_dependencies(core, task, id - event->task) < 0)
        return -ENOMEM;
    task->submitted_us = task->queued_us = event->time_us;
    task->state = event->submit.held ? TASK_HELD : core_is_gated(task) ? TASK_BLOCKED : TASK_QUEUED;
    if (!event->submit.held)
        start_waiting(core, task, event->time_us);
    return 0;
}

/* Are the tasks of the array new, by rising id, and above the array? */
static bool are_elements_new(const struct core *core, const struct event *event)
{
    uint64_t last = event->task;
    for (int i = 0; i < event->submit.n_elements; i++) {
        uint64_t id = event->submit.elements[i].task;
        if (id <= last || core_find_task(core, id))
            return false;
        last = id;
    }
    return true;
}

static int apply_submit(struct core *core, const struct event *event)
{
    if (core_find_task(core, event->task) || !are_elements_new(core, event))
        return CORE_NOT_NOW;
    const struct task_request *request = &event->submit.request;
    if (event->task == 0 || request->gpus < 1 ||
        !core_may_depend(event->task, request->after, request->n_after))
        return CORE_NOT_NOW;
    if (!event->submit.elements)
        return add_task(core, event, event->task, (struct task_array){0});
    int r = 0;
    for (int i = 0; i < event->submit.n_elements && r == 0; i++) {
        const struct array_element *element = &event->submit.elements[i];
        r = add_task(core, event, element->task,
            (struct task_array){event->task, element->index, event->submit.array_limit});
    }
    return r;
}

void core_stop_draining(struct core *core)
{
    for (int i = 0; i < core->view.n_gpus && core->drained_for; i++)
        core->view.gpus[i].drained_for = 0;
    core->drained_for = 0;
}

static void forget_drains(struct core *core, uint64_t id)
{
    if (core->drained_for == id)
        core_stop_draining(core);
}

/* The memory that the task requires on each GPU. A suspended task requires the memory that it
 * held. */
static struct reading required_bytes(const struct task *task)
{
    if (task->run->yield.bytes.valid)
        return task->run->yield.bytes;
    const struct need *need = &task->request.need;
    bool is_known = need->kind >= NEED_ESTIMATED && need->bytes > 0;
    return is_known ? reading_of((double)need->bytes) : READING_NONE;
}

/* When the task's time limit ends it; 0: it has none. */
static int64_t limit_ends_us(const struct task *task, int64_t now_us)
{
    int64_t limit_us = task->request.time_limit_us;
    int64_t had_us = task->state == TASK_STARTING ? 0 : task_computed_us(task, now_us);
    return limit_us ? now_us + limit_us - had_us : 0;
}

void core_note_time_limit(struct core *core, const struct task *task, int64_t now_us)
{
    for (int i = 0; i < task->n_gpus; i++) {
        struct resident *resident = gpu_view_resident(&core->view.gpus[task->gpus[i]], task->id);
        if (resident)
            resident->ends_us = limit_ends_us(task, now_us);
    }
}

/* A resident that was backfilled before a task comes (`change` 1) or goes (-1). */
static void count_backfilled(struct core *core, uint64_t before, int change)
{
    struct task *head = before ? core_find_task(core, before) : NULL;
    if (head)
        head->n_backfilled += change;
}

/* Others are held off until the new resident has settled (residence.h). */
static int add_resident(
    struct core *core, struct gpu_view *gpu, const struct task *task, int64_t now_us)
{
    if (ARRAY_RESERVE(gpu->residents, gpu->residents_capacity, gpu->n_residents + 1) < 0)
        return -ENOMEM;
    count_backfilled(core, gpu->reserved_for, 1);
    gpu->residents[gpu->n_residents++] = (struct resident){
        .task = task->id,
        .uid = task->uid,
        .user = core_find_user(core, task->uid),
        .backfilled_before = gpu->reserved_for,
        .gpus = task->n_gpus,
        .places = task->gpus,
        .sharing = task->run->share.sharing,
        .thread_percent = task->run->share.thread_percent,
        .since_us = now_us,
        .ends_us = limit_ends_us(task, now_us),
        .grew_us = now_us,
        .held_us = now_us,
        .service = core_resident_service(core, task, now_us),
        .need_bytes = required_bytes(task),
        .expect = task->request.expect,
        .kind_speed = task->run->kind_speed,
    };
    gpu->mix_since_us = now_us;
    if (task->exclusive)
        gpu->exclusive_for = task->id;
    return 0;
}

void core_remove_resident(struct core *core, int i, uint64_t id, int64_t now_us)
{
    struct gpu_view *gpu = &core->view.gpus[i];
    struct resident *resident = gpu_view_resident(gpu, id);
    if (!resident)
        return;
    core_accrue(core, gpu, now_us);
    core_count_gpu(core, resident->uid, -1, now_us);
    count_backfilled(core, resident->backfilled_before, -1);
    struct resident *end = gpu->residents + gpu->n_residents--;
    memmove(resident, resident + 1, (size_t)(end - resident - 1) * sizeof *resident);
    gpu->mix_since_us = now_us;
    core_note_open(core, i);
    if (gpu->exclusive_for == id)
        gpu->exclusive_for = 0;
    if (gpu->closed_for == id)
        gpu->closed_for = 0;
}

/* One that shares only the memory may cause a lack of memory, too. */
static void record_coresidents(struct core *core, struct task *task, const struct gpu_view *gpu)
{
    const struct resident *resident;
    struct domain_walk walk = memory_domain_walk(gpu);
    while ((resident = memory_domain_resident(&walk))) {
        struct task *other = core_find_task(core, resident->task);
        if (other && other != task)
            task->had_coresidents = other->had_coresidents = true;
    }
}

static bool is_waiting(const struct task *task)
{
    return task->state == TASK_QUEUED || task->state == TASK_RECOVERING;
}

static struct reading least_free(const struct cluster_view *view, const int *gpus, int n)
{
    struct reading least = gpu_view_free_bytes(&view->gpus[gpus[0]]);
    for (int i = 1; i < n && least.valid; i++) {
        struct reading each = gpu_view_free_bytes(&view->gpus[gpus[i]]);
        if (!each.valid || each.value < least.value)
            least = each;
    }
    return least;
}

int core_add_to_gpu(struct core *core, struct task *task, int gpu, int64_t now_us)
{
    core_accrue(core, &core->view.gpus[gpu], now_us);
    core_count_gpu(core, task->uid, 1, now_us);
    record_coresidents(core, task, &core->view.gpus[gpu]);
    if (add_resident(core, &core->view.gpus[gpu], task, now_us) < 0)
        return -ENOMEM;
    core_note_open(core, gpu);
    core_note_joined(core, task, gpu, now_us);
    return 0;
}

/* The task starts before those that are ahead of it in its queue. */
static void count_passed(const struct task *task)
{
    for (struct task *passed = task->previous; passed; passed = passed->previous)
        passed->passed_count++;
}

bool core_are_gpus(const struct core *core, const int *gpus, int n)
{
    for (int i = 0; i < n; i++)
        if (gpus[i] < 0 || gpus[i] >= core->view.n_gpus)
            return false;
    return n > 0;
}

static int apply_place(struct core *core, struct task *task, const struct event *event)
{
    if (!is_waiting(task) || !core_are_gpus(core, event->place.gpus, event->place.n))
        return CORE_NOT_NOW;
    int *gpus = calloc((size_t)event->place.n, sizeof *gpus);
    if (!gpus || task_begin_run(task) < 0) {
        free(gpus);
        return -ENOMEM;
    }

    count_passed(task);
    stop_waiting(task, event->time_us);
    forget_drains(core, task->id);
    task_move(task, TASK_STARTING);
    task->gpus = memcpy(gpus, event->place.gpus, (size_t)event->place.n * sizeof *gpus);
    task->n_gpus = event->place.n;
    task->exclusive = event->place.exclusive;
    task->run->share = event->place.share;
    task->run->kind_speed = kind_speed_on(&core->view, task, gpus, task->n_gpus);
    task->had_coresidents = false;
    core_take_host(core, task);
    task->attempts++;
    task->started_us = event->time_us;
    task->run->free_bytes = least_free(&core->view, gpus, task->n_gpus);
    core_begin_attempt(task);
    for (int i = 0; i < task->n_gpus; i++)
        if (core_add_to_gpu(core, task, gpus[i], event->time_us) < 0)
            return -ENOMEM;
    core->view.last_placed = gpus[task->n_gpus - 1];
    return 0;
}

void core_release_gpus(struct core *core, struct task *task, int64_t now_us)
{
    for (int i = 0; i < task->n_gpus; i++)
        core_remove_resident(core, task->gpus[i], task->id, now_us);
    free(task->gpus);
    task->gpus = NULL;
    task->n_gpus = 0;
}

/* There was no MPS server: the attempt is time-sliced. */
static void use_time_slicing(struct core *core, struct task *task)
{
    task->run->share = (struct sharing_mode){
        .sharing = SHARING_STREAMS, .reason = task->run->share.reason};
    for (int i = 0; i < task->n_gpus; i++) {
        struct resident *resident = gpu_view_resident(&core->view.gpus[task->gpus[i]], task->id);
        resident->sharing = SHARING_STREAMS;
        resident->thread_percent = 0;
    }
}

static int apply_started(struct core *core, struct task *task, const struct event *event)
{
    if (!task_state_has_attempt(task->state))
        return CORE_NOT_NOW;
    if (event->started.by_streams)
        use_time_slicing(core, task);
    if (task->state != TASK_STARTING) {
        task->run->memory_wait.is_unconfirmed = task->run->memory_wait.bytes > 0;
        return 0;
    }
    task_move(task, TASK_RUNNING);
    task->has_process = true;
    if (task->ending)
        task_move(task, TASK_ENDING);
    core_note_time_limit(core, task, event->time_us);
    return 0;
}

/*
 * The start never happened: the task has been waiting since its placement. STARTED may have been
 * logged for a shim that then did not claim the attempt. So a time limit that was reached meanwhile
 * does not end the task; a cancel does.
 */
static int apply_unstarted(struct core *core, struct task *task, const struct event *event)
{
    if (!task_may_move(task->state, TASK_QUEUED) || !task_state_has_attempt(task->state))
        return CORE_NOT_NOW;
    core_end_attempt(core, task, event->time_us);
    core_return_host(core, task);
    core_release_gpus(core, task, event->time_us);
    task->has_process = task->exclusive = false;
    task->run->unstarted++;
    if (task->ending != FAILURE_CANCELLED)
        task->ending = FAILURE_NONE;
    return_to_queue(core, task, task->started_us);
    return 0;
}

/* The process may have ended long before the event, while no daemon ran. */
static int64_t end_of_attempt(const struct task *task, const struct event *event)
{
    int64_t ended_us = event->exited.ended_us;
    return ended_us >= task->started_us && ended_us <= event->time_us && ended_us ? ended_us
                                                                                  : event->time_us;
}

static int apply_exited(struct core *core, struct task *task, const struct event *event)
{
    if (!task_state_has_attempt(task->state))
        return CORE_NOT_NOW;
    core_attribute_exit(core, task, event);
    core_return_host(core, task);
    core_release_gpus(core, task, event->time_us);
    task->exclusive = false;
    task->ended_us = end_of_attempt(task, event);
    core_end_attempt(core, task, task->ended_us);
    int64_t executed_us = task->ended_us - task->started_us - task->run->yield.attempt_stopped_us;
    task->executed_us += executed_us > 0 ? executed_us : 0;
    task->has_process = false;
    task->run->exit = event->exited;
    if (!task_was_ended(task))
        task->ending = FAILURE_NONE;
    if (event->exited.failure == FAILURE_GPU_OOM)
        task->oom_count++;
    task_move(task, TASK_EXITED);
    return 0;
}

static int apply_cancel(struct task *task, int64_t now_us)
{
    if (task_state_is_done(task->state) || task->state == TASK_EXITED || task_was_ended(task))
        return CORE_NOT_NOW;
    task->ending = FAILURE_CANCELLED;
    core_begin_ending(task, now_us);
    return 0;
}

static int apply_expire(struct task *task)
{
    if (task->state != TASK_RUNNING)
        return CORE_NOT_NOW;
    task->ending = FAILURE_TIME_LIMIT;
    task_move(task, TASK_ENDING);
    return 0;
}

static int apply_evict(struct task *task, int64_t now_us)
{
    if (!task_state_has_attempt(task->state) || task->ending)
        return CORE_NOT_NOW;
    task->ending = FAILURE_GPU_GONE;
    core_begin_ending(task, now_us);
    return 0;
}

static int apply_external_seen(struct task *task)
{
    if (!task_state_holds_gpus(task->state))
        return CORE_NOT_NOW;
    task->had_coresidents = true;
    return 0;
}

static int apply_estimate(struct task *task, const struct need *need)
{
    bool waits = is_waiting(task) || task->state == TASK_HELD || task->state == TASK_BLOCKED;
    if (!waits || task->request.need.kind != NEED_PENDING || need->kind == NEED_PENDING)
        return CORE_NOT_NOW;
    task->request.need = *need;
    return 0;
}

void core_leave_queue(struct core *core, struct task *task, int64_t now_us)
{
    stop_waiting(task, now_us);
    task->queued_us = now_us;
    forget_drains(core, task->id);
    core_leave_slot(core, task);
    task_move(task, TASK_HELD);
}

void core_block_task(struct core *core, struct task *task, int64_t now_us)
{
    task_move(task, TASK_BLOCKED);
    start_waiting(core, task, now_us);
}

void core_enter_queue(struct core *core, struct task *task, int64_t now_us)
{
    stop_waiting(task, now_us);
    if (!core_is_gated(task)) {
        return_to_queue(core, task, now_us);
        return;
    }
    core_block_task(core, task, now_us);
}

static int apply_hold(struct core *core, struct task *task, const struct event *event)
{
    if (!is_waiting(task) && task->state != TASK_BLOCKED)
        return CORE_NOT_NOW;
    core_leave_queue(core, task, event->time_us);
    core_leave_fifo(core, task);
    return 0;
}

static int apply_release(struct core *core, struct task *task, const struct event *event)
{
    if (task->state != TASK_HELD)
        return CORE_NOT_NOW;
    core_enter_queue(core, task, event->time_us);
    return 0;
}

static int apply_eligible(struct core *core, struct task *task, const struct event *event)
{
    if (task->state != TASK_BLOCKED || task->n_after)
        return CORE_NOT_NOW;
    stop_waiting(task, event->time_us);
    return_to_queue(core, task, event->time_us);
    return 0;
}

static int apply_recover(struct core *core, struct task *task, const struct event *event)
{
    if (task->state != TASK_EXITED)
        return CORE_NOT_NOW;
    return_to_queue(core, task, event->time_us);
    return 0;
}

static int apply_requeue(struct core *core, struct task *task, const struct event *event)
{
    if (task->state != TASK_EXITED)
        return CORE_NOT_NOW;
    task->requeue_count++;
    task->mps_failures += task->run->exit.failure != FAILURE_GPU_GONE;
    return_to_queue(core, task, event->time_us);
    return 0;
}

static int apply_end(struct core *core, struct task *task, const struct event *event)
{
    if (!task_state_is_done(event->end) || !task_may_move(task->state, event->end))
        return CORE_NOT_NOW;
    if (core_note_end(core, task->id, event->end != TASK_COMPLETED) < 0)
        return -ENOMEM;
    if (task->state != TASK_EXITED) {
        stop_waiting(task, event->time_us);
        task->ended_us = event->time_us;
    }
    forget_drains(core, task->id);
    core_drop_dependencies(core, task);
    core_leave_slot(core, task);
    task_move(task, event->end);
    return 0;
}

static int apply_suspension_cost(struct core *core, const struct suspension_cost *cost)
{
    if (cost->fixed_us < 0 || cost->suspend_us_per_gib < 0 || cost->resume_us_per_gib < 0)
        return CORE_NOT_NOW;
    core->suspension_cost = *cost;
    return 0;
}

static int apply_latest_start(struct task *task, int64_t latest_start_us)
{
    if (task_state_is_done(task->state))
        return CORE_NOT_NOW;
    if (!task->latest_start_us)
        task->fair_since_us = task->queued_us;
    task->latest_start_us = latest_start_us;
    return 0;
}

static int apply_to_task(struct core *core, struct task *task, const struct event *event)
{
    switch (event->kind) {
    case EVENT_ESTIMATE:
        return apply_estimate(task, &event->estimate);
    case EVENT_STARTED:
        return apply_started(core, task, event);
    case EVENT_UNSTARTED:
        return apply_unstarted(core, task, event);
    case EVENT_EXITED:
        return apply_exited(core, task, event);
    case EVENT_CANCEL:
        return apply_cancel(task, event->time_us);
    case EVENT_HOLD:
        return apply_hold(core, task, event);
    case EVENT_RELEASE:
        return apply_release(core, task, event);
    case EVENT_UPDATE:
        return core_apply_update(core, task, event);
    case EVENT_PLACE:
        return apply_place(core, task, event);
    case EVENT_EXPIRE:
        return apply_expire(task);
    case EVENT_EVICT:
        return apply_evict(task, event->time_us);
    case EVENT_EXTERNAL_SEEN:
        return apply_external_seen(task);
    case EVENT_RECOVER:
        return apply_recover(core, task, event);
    case EVENT_REQUEUE:
        return apply_requeue(core, task, event);
    case EVENT_END:
        return apply_end(core, task, event);
    case EVENT_LATENCY:
        return core_apply_latency(core, task, event);
    case EVENT_RESTART:
        return core_apply_restart(core, task, event);
    case EVENT_DEPENDENCY:
        return core_apply_dependency(core, task, event);
    case EVENT_ELIGIBLE:
        return apply_eligible(core, task, event);
    case EVENT_LATEST_START:
        return apply_latest_start(task, event->latest_start_us);
    default:
        return core_apply_yield(core, task, event);
    }
}

int core_apply_event(struct core *core, const struct event *event)
{
    core->users->change++;
    switch (event->kind) {
    case EVENT_GPUS:
        return apply_gpus(core, event);
    case EVENT_SUBMIT:
        return apply_submit(core, event);
    case EVENT_SAMPLE:
        return core_apply_sample(core, event);
    case EVENT_TICK:
        return 0;
    case EVENT_USAGE:
        return core_apply_usage(core, event);
    case EVENT_RESERVE:
    case EVENT_UNRESERVE:
        return core_apply_advance(core, event);
    case EVENT_SUSPENSION_COST:
        return apply_suspension_cost(core, &event->suspension_cost);
    case EVENT_FIFO:
        return core_apply_fifo(core, event);
    default:
        break;
    }
    struct task *task = core_find_task(core, event->task);
    if (!task)
        return CORE_NO_SUCH_TASK;
    int r = apply_to_task(core, task, event);
    assert(r != 0 || task_is_sound(task));
    return r;
}
