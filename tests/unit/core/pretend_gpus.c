/* SPDX-License-Identifier: Apache-2.0 */
/* The check compares what the state holds twice (a task's GPUs and a GPU's residents, for example);
 * a digest prints the state, so that two cores can be compared as text. */
#include "pretend_gpus.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define GPUS_MAX 64

struct core *world_core(const struct policy *policy, int n_gpus)
{
    struct gpu_identity list[GPUS_MAX] = {0};
    struct core_settings settings = core_settings_default();
    settings.policy = policy;
    struct core *core = core_create(&settings);
    assert_non_null(core);
    for (int i = 0; i < n_gpus; i++) {
        snprintf(list[i].uuid, sizeof list[i].uuid, "GPU-%d", i);
        snprintf(list[i].label, sizeof list[i].label, "%d", i);
        list[i].is_place = true;
        list[i].mem_total_bytes = 40 * GIB;
    }
    struct event event = {.kind = EVENT_GPUS, .gpus = {.list = list, .n = n_gpus}};
    assert_int_equal(core_step(core, &event), 0);
    return core;
}

struct core *world_instances_core(const struct policy *policy, int n_sharing, int n_others)
{
    struct gpu_identity list[GPUS_MAX] = {0};
    struct core *core = world_core(policy, 0);
    int n = n_sharing + n_others;
    for (int i = 0; i < n; i++) {
        snprintf(list[i].uuid, sizeof list[i].uuid, "MIG-%d", i);
        snprintf(list[i].label, sizeof list[i].label, "0:%d", i);
        list[i].is_place = list[i].is_mig_instance = true;
        list[i].memory_domain = i < n_sharing;
        list[i].mem_total_bytes = 40 * GIB;
    }
    struct event event = {.kind = EVENT_GPUS, .gpus = {.list = list, .n = n}};
    assert_int_equal(core_step(core, &event), 0);
    for (int i = 0; i < n; i++)
        assert_int_equal(world_sample(core, 1, i, 0, 0, 0), 0);
    return core;
}

int world_submit(struct core *core, int64_t time_us, uint64_t task, struct task_request request)
{
    struct event event = {
        .kind = EVENT_SUBMIT, .time_us = time_us, .task = task, .submit = {.request = request}};
    return core_step(core, &event);
}

int world_sample(
    struct core *core, int64_t time_us, int gpu, double used_gib, double smact, double foreign)
{
    struct event event = {.kind = EVENT_SAMPLE, .time_us = time_us};
    event.sample.gpu = gpu;
    event.sample.mem_used_bytes = reading_of(used_gib * (double)GIB);
    event.sample.smact = reading_of(smact);
    event.sample.utilisation = reading_of(smact);
    event.sample.external_processes = reading_of(foreign);
    struct task_memory tasks[16];
    event.sample.tasks = tasks;
    const struct cluster_view *view = core_view(core);
    int n = gpu >= 0 && gpu < view->n_gpus ? view->gpus[gpu].n_residents : 0;
    for (int i = 0; i < n && i < 16; i++)
        tasks[event.sample.n_tasks++] = (struct task_memory){
            .task = view->gpus[gpu].residents[i].task,
            .mem_used_bytes = reading_of(used_gib * (double)GIB / n)};
    return core_step(core, &event);
}

int world_input(struct core *core, int64_t time_us, enum event_kind kind, uint64_t task)
{
    struct event event = {.kind = kind, .time_us = time_us, .task = task};
    return core_step(core, &event);
}

int world_exit(struct core *core, int64_t time_us, uint64_t task, enum failure_class failure)
{
    struct event event = {.kind = EVENT_EXITED, .time_us = time_us, .task = task};
    event.exited.failure = failure;
    event.exited.code = failure != FAILURE_NONE;
    return core_step(core, &event);
}

enum task_state world_state(const struct core *core, uint64_t task)
{
    const struct task *found = core_task(core, task);
    assert_non_null(found);
    return found->state;
}

int world_count(const struct core *core, enum effect_kind kind, uint64_t task)
{
    int n, count = 0;
    const struct effect *effects = core_effects(core, &n);
    for (int i = 0; i < n; i++)
        count += effects[i].kind == kind && effects[i].task == task;
    return count;
}

/* ---- the checker ---- */

static int check_queue(const struct task_queue *queue, enum task_state state)
{
    int n = 0;
    const struct task *last = NULL;
    for (const struct task *task = queue->first; task; last = task, task = task->next, n++) {
        assert_int_equal(task->state, state);
        assert_ptr_equal(task->queue, queue);
        assert_ptr_equal(task->previous, last);
        int before = last ? last->request.priority : task->request.priority;
        assert_true(before >= task->request.priority);
        assert_true(!last || before > task->request.priority || last->id < task->id);
        assert_int_equal(queue_ahead_of(task), n);
    }
    assert_ptr_equal(queue->last, last);
    assert_int_equal(queue->count, n);
    return n;
}

static int check_main_queue(const struct core *core)
{
    const struct task_queue *queue;
    int n = 0;
    for (int i = 0; (queue = core_main_queue(core, i)); i++)
        n += check_queue(queue, TASK_QUEUED);
    assert_int_equal(n, core_queued_count(core));
    return n;
}

static int count_backfilled(const struct cluster_view *view, uint64_t before)
{
    int n = 0;
    for (int i = 0; i < view->n_gpus; i++)
        for (int k = 0; k < view->gpus[i].n_residents; k++)
            n += view->gpus[i].residents[k].backfilled_before == before;
    return n;
}

static void check_task(const struct core *core, const struct task *task)
{
    const struct cluster_view *view = core_view(core);
    assert_true(task_is_sound(task));
    assert_int_not_equal(task->state, TASK_EXITED);
    assert_true(
        !task->ending || task_state_is_done(task->state) || task_state_has_attempt(task->state));
    assert_true(task->run->yield.stopped_us >= 0 && task->run->yield.attempt_stopped_us >= 0);
    assert_true(task->waited_us >= 0 && task->executed_us >= 0);
    assert_int_equal(task->n_backfilled, count_backfilled(view, task->id));
    for (int i = 0; i < task->n_gpus; i++) {
        const struct gpu_view *gpu = &view->gpus[task->gpus[i]];
        assert_non_null(gpu_view_resident(gpu, task->id));
        if (task->exclusive)
            assert_int_equal(gpu->claims[CLAIM_EXCLUSIVE], task->id);
        for (int k = 0; k < i; k++)
            assert_int_not_equal(task->gpus[k], task->gpus[i]);
    }
}

static void check_gpu(const struct core *core, int i)
{
    const struct gpu_view *gpu = &core_view(core)->gpus[i];
    const struct task *recovering = core_recovery_queue(core)->first;
    for (int k = 0; k < gpu->n_residents; k++) {
        const struct task *task = core_task(core, gpu->residents[k].task);
        int times = 0;
        assert_non_null(task);
        for (int j = 0; j < task->n_gpus; j++)
            times += task->gpus[j] == i;
        assert_int_equal(times, 1);
    }
    double open_bytes = gpu_view_open_bytes(gpu);
    assert_memory_equal(&core_view(core)->open_bytes[i], &open_bytes, sizeof open_bytes);
    assert_true(gpu->claims[CLAIM_EXCLUSIVE] == 0 ||
                (gpu->n_residents == 1 && gpu->residents[0].task == gpu->claims[CLAIM_EXCLUSIVE]));
    assert_true(gpu->claims[CLAIM_DRAIN] == 0 ||
                (recovering && recovering->id == gpu->claims[CLAIM_DRAIN]));
}

static bool waits_for_host(const struct task *task)
{
    return task->state == TASK_QUEUED && task->request.gpus == 0;
}

void world_check(const struct core *core)
{
    int queued = check_main_queue(core);
    int recovering = check_queue(core_recovery_queue(core), TASK_RECOVERING);
    int suspended = check_queue(core_suspended_queue(core), TASK_SUSPENDED);
    int blocked = check_queue(core_blocked_queue(core), TASK_BLOCKED);
    int waiting = 0, reserved = 0, residents = 0;
    for (const struct task *task = core_next_task(core, 0); task;
         task = core_next_task(core, task->id)) {
        check_task(core, task);
        waiting += task->queue && !waits_for_host(task);
        reserved += task->n_gpus;
    }
    for (int i = 0; i < core_view(core)->n_gpus; i++) {
        check_gpu(core, i);
        residents += core_view(core)->gpus[i].n_residents;
    }
    assert_int_equal(waiting, queued + recovering + suspended + blocked);
    assert_int_equal(reserved, residents);
}

/* ---- digests ---- */

static void print_yield(FILE *out, const struct task *task)
{
    const struct task_yield *yield = &task->run->yield;
    fprintf(out, " yield=%d,%" PRIu64 ",%d,%d,%d,%d,%d,%.0f", (int)yield->reason, yield->to_task,
        yield->by_user, yield->cannot_suspend, yield->cannot_pause, yield->is_frozen,
        yield->from_gpu, reading_or(yield->bytes, 0));
    fprintf(out, " %" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64, yield->since_us,
        yield->retry_us, yield->stopped_us, yield->attempt_stopped_us, yield->cost_us);
    fprintf(out, " %d,%d,%d,%d", yield->failures, yield->suspensions, yield->moves, yield->pauses);
    for (int i = 0; i < yield->n_to_gpus; i++)
        fprintf(out, " to%d", yield->to_gpus[i]);
    fprintf(out, " memory_wait=%" PRId64 ",%" PRId64 ",%d,%d,%" PRId64,
        task->run->memory_wait.bytes, task->run->memory_wait.since_us,
        task->run->memory_wait.is_unconfirmed, task->run->memory_wait.count,
        task->run->memory_wait.waited_us);
}

static void print_order(FILE *out, const struct task *task)
{
    const struct dependency_end *broken = &task->run->broken;
    char text[64];
    fprintf(out, " array=%" PRIu64 ",%d,%d", task->array.id, task->array.index, task->array.limit);
    fprintf(out, " order=%d,%d,%" PRId64 " broken=%" PRIu64 ",%" PRIu64 ",%d",
        task->request.priority, task->request.once, task->request.begin_us,
        broken->dependency.first, broken->by, broken->holds);
    for (int i = 0; i < task->n_after; i++)
        fprintf(out, " %s", dependency_format(&task->after[i], text, sizeof text));
}

static void print_task(FILE *out, const struct task *task)
{
    const struct task_request *request = &task->request;
    fprintf(out,
        "task %" PRIu64
        " uid=%u %s ending=%d whole=%d company=%d process=%d sharing=%d attempts=%d ooms=%d",
        task->id, task->uid, task_state_name(task->state), (int)task->ending, task->exclusive,
        task->had_coresidents, task->has_process, (int)task->run->share.sharing, task->attempts,
        task->oom_count);
    const struct task_service *service = &task->run->service; /* what no report says */
    fprintf(out, " service=%d,%" PRId64 ",%" PRId64 ",%" PRId64 ",%d,%d,%d",
        request->service.is_service, request->service.p99_us, service->joined_us,
        service->changed_us, service->doublings, service->quick_ends, service->restarts);
    fprintf(out, " exit=%d,%d,%d", (int)task->run->exit.failure, task->run->exit.code,
        task->run->exit.signal);
    fprintf(out, " share=%d,%d,%" PRId64 " not_at_fault=%d,%d,%d,%d", (int)task->run->share.reason,
        task->run->share.thread_percent, task->run->share.mem_limit_bytes, task->not_at_fault,
        task->possible_cause, task->requeue_count, task->mps_failures);
    fprintf(out, " times=%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64,
        task->submitted_us, task->queued_us, task->started_us, task->ended_us, task->waited_us,
        task->executed_us);
    fprintf(out, " latest=%" PRId64 " since %" PRId64, task->latest_start_us, task->fair_since_us);
    fprintf(out, " wants=%d,%s,%d,%d,%d,%" PRId64 ",%" PRId64, request->gpus,
        request->policy ? request->policy->name : "-", request->exclusive, (int)request->sharing,
        (int)request->need.kind, request->need.bytes, request->time_limit_us);
    for (int i = 0; i < task->n_gpus; i++)
        fprintf(out, " gpu%d", task->gpus[i]);
    print_order(out, task);
    print_yield(out, task);
    fputc('\n', out);
}

static void print_queue(FILE *out, const char *name, const struct task_queue *queue)
{
    fprintf(out, "%s:", name);
    for (const struct task *task = queue->first; task; task = task->next)
        fprintf(out, " %" PRIu64, task->id);
    fputc('\n', out);
}

/* That of a task that recovers comes from samples, which are not in the log (recovery_need.c). */
static double logged_need(const struct core *core, const struct resident *resident)
{
    const struct task *task = core_task(core, resident->task);
    return task && task->oom_count > 0 ? -1 : reading_or(resident->need_bytes, 0);
}

static void print_gpu(FILE *out, const struct core *core, const struct gpu_view *gpu)
{
    fprintf(out, "%s total=%" PRId64 " place=%d,%d whole=%" PRIu64, gpu->id.uuid,
        gpu->id.mem_total_bytes, gpu->id.is_place, gpu->id.is_gone, gpu->claims[CLAIM_EXCLUSIVE]);
    for (int i = 0; i < gpu->n_residents; i++)
        fprintf(out, " %" PRIu64 "(%u,%" PRId64 ",%.0f)", gpu->residents[i].task,
            gpu->residents[i].uid, gpu->residents[i].since_us,
            logged_need(core, &gpu->residents[i]));
    fputc('\n', out);
}

/* What each has used, and its rank, follow from the log. */
static void print_users(FILE *out, const struct core *core)
{
    const struct task_queue *queue;
    for (int i = 0; (queue = core_main_queue(core, i)); i++)
        print_queue(out, "main", queue);
    for (int i = 0; i < core_user_count(core); i++) {
        struct user_standing user = core_user_standing(core, i, 0);
        fprintf(out, "user %u: %s shares=%d gpus=%d usage=%" PRId64 " rank=%d\n", user.uid,
            user.project, user.shares, user.n_gpus, user.recorded_us, user.fair_rank);
    }
}

static void print_advances(FILE *out, const struct core *core)
{
    int n;
    const struct advance *advances = core_advances(core, &n);
    for (int i = 0; i < n; i++)
        fprintf(out, "reservation %d: %d GPUs\n", (int)advances[i].id, advances[i].gpus);
    fprintf(out, "next reservation: %d\n", (int)core_next_advance_id(core));
}

char *world_digest(const struct core *core)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    for (const struct task *task = core_next_task(core, 0); task;
         task = core_next_task(core, task->id))
        print_task(out, task);
    print_users(out, core);
    print_queue(out, "recovery", core_recovery_queue(core));
    print_queue(out, "suspended", core_suspended_queue(core));
    print_queue(out, "blocked", core_blocked_queue(core));
    for (int i = 0; i < core_view(core)->n_gpus; i++)
        print_gpu(out, core, &core_view(core)->gpus[i]);
    fprintf(out, "last placed: %d\n", core_view(core)->last_placed);
    print_advances(out, core);
    fclose(out);
    return text;
}

static void print_reading(FILE *out, struct reading reading)
{
    fprintf(out, reading.valid ? " %a" : " -", reading.value);
}

char *world_digest_view(const struct core *core)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    for (int i = 0; i < core_view(core)->n_gpus; i++) {
        const struct gpu_view *gpu = &core_view(core)->gpus[i];
        fprintf(out, "%d %" PRId64 " %" PRIu64 " %" PRId64, (int)gpu->health, gpu->sampled_us,
            gpu->claims[CLAIM_DRAIN], gpu->mix_since_us);
        print_reading(out, gpu->mem_used_bytes);
        print_reading(out, gpu->external_processes);
        print_reading(out, gpu->smact_level);
        print_reading(out, gpu->utilisation_level);
        for (int k = 0; k < gpu->n_residents; k++)
            fprintf(out, " %d%d", residence_has_risen(gpu->residents[k].residence),
                residence_has_settled(gpu->residents[k].residence));
        fputc('\n', out);
    }
    fclose(out);
    return text;
}
