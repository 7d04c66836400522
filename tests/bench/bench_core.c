/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What single steps of the core cost over 10,000 tasks and 64 GPUs, in the worst cases that we can
 * think of. Every GPU has a full window of 90 samples first.
 *
 * Rows "without backfill" have the setting --backfill=no: a pass tries the head of the queue only,
 * as in a version that does not backfill.
 */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/units.h"
#include "bench.h"
#include "core/ask/neighbour.h"
#include "core/core.h"
#include "policy/policies.h"

enum { GPUS = 64, TASKS = 10000, STEPS = 2000, FRESH = 120, WINDOW = 90, SHARING = 8 };

static int64_t now_us;
static double took[STEPS];

static void require(int r)
{
    if (r != 0) {
        fprintf(stderr, "the core answered %d\n", r);
        exit(1);
    }
}

static double step(struct core *core, const struct event *event)
{
    double before = bench_now_us();
    require(core_step(core, event));
    return bench_now_us() - before;
}

static double input(struct core *core, enum event_kind kind, uint64_t task)
{
    struct event event = {.kind = kind, .time_us = now_us, .task = task};
    return step(core, &event);
}

/* ---- the machine ---- */

static void add_gpus(struct core *core)
{
    static struct gpu_identity gpus[GPUS];
    for (int i = 0; i < GPUS; i++) {
        gpus[i] = (struct gpu_identity){.mem_total_bytes = 40 * GIB, .is_place = true};
        snprintf(gpus[i].uuid, sizeof gpus[i].uuid, "GPU-%d", i);
        snprintf(gpus[i].label, sizeof gpus[i].label, "%d", i);
    }
    struct event event = {.kind = EVENT_GPUS, .gpus = {.list = gpus, .n = GPUS}};
    step(core, &event);
}

static double sample(struct core *core, int gpu, double used_gib)
{
    struct event event = {.kind = EVENT_SAMPLE, .time_us = now_us};
    event.sample.gpu = gpu;
    event.sample.mem_used_bytes = reading_of(used_gib * (double)GIB);
    event.sample.smact = event.sample.utilisation = reading_of(used_gib > 0 ? 0.5 : 0);
    event.sample.external_processes = reading_of(0);
    return step(core, &event);
}

static void sample_all(struct core *core, double used_gib)
{
    now_us += SECOND_US;
    for (int i = 0; i < GPUS; i++)
        sample(core, i, used_gib);
}

/* The policy of a row, and whether tasks behind the head of the queue are tried. */
struct scheduling {
    const char *policy;
    bool has_no_backfill;
};

static const struct scheduling exclusive = {"exclusive", false}, magm = {"magm", false},
                               magm_in_order = {"magm", true}, mug = {"mug", false},
                               predictive = {"predictive", false};

static struct core *make_core(const struct scheduling *how)
{
    struct core_settings settings = core_settings_default();
    settings.policy = policy_find(how->policy);
    settings.backfill &= !how->has_no_backfill;
    struct core *core = core_create(&settings);
    if (!core)
        exit(1);
    now_us = 0;
    add_gpus(core);
    return core;
}

/* Tasks that stay: `SHARING` on each GPU, which is nearly full then. */
static void fill_gpus(struct core *core)
{
    for (int i = 0; i < GPUS * SHARING; i++) {
        int gpu = i % GPUS;
        uint64_t id = 1000000 + (uint64_t)i;
        struct event submit = {.kind = EVENT_SUBMIT,
            .time_us = now_us,
            .task = id,
            .submit = {.request = {.gpus = 1}}};
        struct event place = {
            .kind = EVENT_PLACE, .time_us = now_us, .task = id, .place = {.gpus = &gpu, .n = 1}};
        require(core_apply(core, &submit));
        require(core_apply(core, &place));
        input(core, EVENT_STARTED, id);
    }
}

static double submit(struct core *core, uint64_t id, int gpus, enum need_kind need)
{
    struct event event = {.kind = EVENT_SUBMIT, .time_us = now_us, .task = id};
    event.submit.request = (struct task_request){.gpus = gpus, .need = {need, 8 * GIB}};
    return step(core, &event);
}

/* A task that has run out of memory beside others. */
static void add_recovering(struct core *core, uint64_t id, int gpus, char *kind)
{
    int place[] = {0, 1};
    struct event events[] = {
        {.kind = EVENT_SUBMIT, .submit = {.request = {.gpus = gpus, .gpu_kind = kind}}},
        {.kind = EVENT_PLACE, .place = {.gpus = place, .n = gpus}},
        {.kind = EVENT_EXITED, .exited = {.failure = FAILURE_GPU_OOM, .code = 1}},
        {.kind = EVENT_RECOVER},
    };
    for (size_t i = 0; i < ARRAY_SIZE(events); i++) {
        events[i].time_us = now_us;
        events[i].task = id;
        require(core_apply(core, &events[i]));
    }
}

/* ---- the table ---- */

static void report(const char *what, const struct scheduling *how, size_t n)
{
    char text[160];
    snprintf(text, sizeof text, "%s (%s%s)", what, how->policy,
        how->has_no_backfill ? ", without backfill" : "");
    bench_row(text, "us", "p99 < 1000", took, n);
}

static void sample_steps(
    struct core *core, const char *what, const struct scheduling *how, double used_gib)
{
    for (int i = 0; i < WINDOW; i++)
        sample_all(core, used_gib);
    for (int i = 0; i < STEPS; i++) {
        now_us += SECOND_US / GPUS;
        took[i] = sample(core, i % GPUS, used_gib);
    }
    report(what, how, STEPS);
}

/* ---- the cases ---- */

static void head_blocked(const struct scheduling *how)
{
    struct core *core = make_core(how);
    fill_gpus(core);
    sample_all(core, 39);
    for (uint64_t id = 1; id <= TASKS; id++) {
        double us = submit(core, id, 1, NEED_ESTIMATED);
        if (id > TASKS - STEPS)
            took[id - (TASKS - STEPS) - 1] = us;
    }
    report("a submission behind 10,000 tasks", how, STEPS);
    sample_steps(core, "a sample, 10,000 queued, 8 tasks on each of 64 GPUs", how, 39);
    core_destroy(core);
}

/* The first task's estimate arrives, and 64 tasks get a GPU in one step. */
static void all_free(const struct scheduling *how)
{
    for (int run = 0; run < FRESH; run++) {
        struct core *core = make_core(how);
        submit(core, 1, 1, NEED_PENDING);
        for (uint64_t id = 2; id <= TASKS; id++)
            submit(core, id, 1, NEED_UNKNOWN);
        sample_all(core, 0);
        struct event event = {.kind = EVENT_ESTIMATE, .time_us = now_us, .task = 1};
        event.estimate.need = (struct need){NEED_ESTIMATED, 8 * GIB};
        took[run] = step(core, &event);
        if (core_queued_count(core) != TASKS - GPUS)
            exit(1);
        core_destroy(core);
    }
    report("64 free GPUs filled in one step", how, FRESH);
}

static void all_recovering(const char *what, int gpus, double used_gib, bool one_idle)
{
    struct core *core = make_core(&magm);
    for (int i = one_idle; i < GPUS; i++) {
        uint64_t id = 1000000 + (uint64_t)i;
        struct event begin = {.kind = EVENT_SUBMIT,
            .time_us = now_us,
            .task = id,
            .submit = {.request = {.gpus = 1}}};
        struct event place = {
            .kind = EVENT_PLACE, .time_us = now_us, .task = id, .place = {.gpus = &i, .n = 1}};
        require(core_apply(core, &begin));
        require(core_apply(core, &place));
    }
    for (uint64_t id = 1; id <= TASKS; id++)
        add_recovering(core, id, gpus, NULL);
    sample_steps(core, what, &magm, used_gib);
    core_destroy(core);
}

/* Of each GPU whether a task wants its memory, when all wait for GPUs of a kind that there is not:
 * no task answers the question early. */
static void wanted_gpus(void)
{
    static char kind[] = "H100";
    struct core *core = make_core(&magm);
    for (uint64_t id = 1; id <= TASKS; id++)
        add_recovering(core, id, 1, kind);
    for (int i = 0; i < STEPS; i++) {
        double before = bench_now_us();
        core->has_wanters = false;
        for (int gpu = 0; gpu < GPUS; gpu++)
            core_is_memory_wanted(core, gpu, 0);
        took[i] = bench_now_us() - before;
    }
    report("which of 64 GPUs 10,000 recovering want, in a pass", &magm, STEPS);
    core_destroy(core);
}

static void explain_all(const struct core *core, const char *what)
{
    char text[256];
    double before = bench_now_us();
    for (const struct task *task = core_next_task(core, 0); task;
         task = core_next_task(core, task->id))
        core_explain(core, task->id, now_us, text, sizeof text);
    took[0] = bench_now_us() - before;
    bench_row(what, "us", "", took, 1);
}

/* 200 users with 100 tasks each: one of eight on each GPU ends, and the next user's task starts. */
static void many_users(const struct scheduling *how)
{
    enum { USERS = 200 };
    struct core *core = make_core(how);
    sample_all(core, 0);
    for (uint64_t id = 1; id <= 2 * TASKS; id++) {
        struct event event = {.kind = EVENT_SUBMIT, .time_us = now_us, .task = id};
        event.submit.uid = (uint32_t)(id % USERS);
        event.submit.request = (struct task_request){.gpus = 1, .need = {NEED_ESTIMATED, 8 * GIB}};
        step(core, &event);
    }
    int n = 0;
    for (uint64_t id = 1; n < STEPS; id = id % (2 * TASKS) + 1) {
        const struct task *task = core_task(core, id);
        if (!task || !task_state_holds_gpus(task->state))
            continue;
        int gpu = task->gpus[0];
        now_us += SECOND_US;
        input(core, EVENT_STARTED, id);
        took[n] = input(core, EVENT_EXITED, id);
        took[n++] += sample(core, gpu, 0);
    }
    report("an end among 20,000 tasks of 200 users", how, STEPS);
    explain_all(core, "why each of 20,000 tasks of 200 users waits, all of them");
    core_destroy(core);
}

static void middle_of_the_queue(void)
{
    struct core *core = make_core(&magm);
    sample_all(core, 39);
    for (uint64_t id = 1; id <= TASKS; id++)
        submit(core, id, 1, NEED_ESTIMATED);
    for (int i = 0; i < STEPS; i += 2) {
        took[i] = input(core, EVENT_HOLD, TASKS / 4 + (uint64_t)i);
        took[i + 1] = input(core, EVENT_RELEASE, TASKS / 4 + (uint64_t)i);
    }
    report("a hold and a release in the middle of the queue", &magm, STEPS);
    explain_all(core, "why each of 10,000 tasks waits, all of them");
    core_destroy(core);
}

static double submit_known(struct core *core, uint64_t id)
{
    struct event event = {.kind = EVENT_SUBMIT, .time_us = now_us, .task = id};
    event.submit.request = (struct task_request){.gpus = 1 + (int)(id % 4),
        .need = {NEED_ESTIMATED, 8 * GIB},
        .expect = {.time_us = reading_of((double)(60 + id % 1000) * (double)SECOND_US)}};
    return step(core, &event);
}

/* Tasks of known time. Each that is cancelled gives its time back, at the TICK after it
 * (core/decide/fifo_schedule.c), which also makes the pass. */
static void known_times(bool preempt)
{
    struct core *core = make_core(&predictive);
    struct core_settings settings = *core_get_settings(core);
    settings.preempt = preempt;
    core_configure(core, &settings);
    fill_gpus(core);
    sample_all(core, 39);
    for (uint64_t id = 1; id <= TASKS; id++) {
        double us = submit_known(core, id);
        if (id > TASKS - STEPS)
            took[id - (TASKS - STEPS) - 1] = us;
    }
    report(preempt ? "a submission behind 10,000 tasks, preemption"
                   : "a submission behind 10,000 tasks of known time",
        &predictive, STEPS);
    for (uint64_t i = 0; i < STEPS; i++)
        took[i] = input(core, EVENT_CANCEL, TASKS / 2 + i);
    report(preempt ? "a cancel among 10,000 tasks, preemption"
                   : "a cancel among 10,000 tasks of known time",
        &predictive, STEPS);
    for (uint64_t i = 0; i < STEPS; i++) {
        input(core, EVENT_CANCEL, TASKS / 4 + i);
        took[i] = input(core, EVENT_TICK, 0);
    }
    report(preempt ? "the tick after a cancel, 10,000 tasks, preemption"
                   : "the tick after a cancel, 10,000 tasks of known time",
        &predictive, STEPS);
    core_destroy(core);
}

int main(void)
{
    known_times(true);
    known_times(false);
    head_blocked(&exclusive);
    head_blocked(&magm);
    head_blocked(&magm_in_order);
    all_free(&exclusive);
    all_free(&magm);
    all_free(&magm_in_order);
    all_free(&mug);
    all_recovering("a sample, 10,000 recovering, no GPU idle", 1, 39, false);
    all_recovering("a sample, 10,000 recovering want 2 GPUs, 1 idle", 2, 0, true);
    wanted_gpus();
    middle_of_the_queue();
    many_users(&exclusive);
    many_users(&predictive);
    return 0;
}
