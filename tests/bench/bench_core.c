/* One scheduling pass: the step that a sample of one GPU costs, over a long queue and many GPUs that are busy. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/units.h"
#include "bench.h"
#include "core/core.h"
#include "policy/policy.h"

enum { GPUS = 64, TASKS = 10000, STEPS = 2000 };

static void require(int r)
{
    if (r < 0) {
        fprintf(stderr, "the core failed: %s\n", strerror(-r));
        exit(1);
    }
}

static void step(struct core *core, const struct event *event)
{
    require(core_step(core, event));
}

static void add_gpus(struct core *core)
{
    static struct gpu_identity gpus[GPUS];
    for (int i = 0; i < GPUS; i++) {
        gpus[i] = (struct gpu_identity){.mem_total_bytes = 40 * GIB, .is_place = true};
        snprintf(gpus[i].uuid, sizeof gpus[i].uuid, "GPU-%d", i);
        snprintf(gpus[i].label, sizeof gpus[i].label, "%d", i);
    }
    struct event event = {.kind = EVENT_GPUS, .gpus = {gpus, GPUS}};
    step(core, &event);
}

/* Full to the last GiB and at work, so that nothing can be placed. */
static void sample(struct core *core, int gpu, int64_t now_us)
{
    struct event event = {.kind = EVENT_SAMPLE, .time_us = now_us};
    event.sample.gpu = gpu;
    event.sample.mem_used_bytes = reading_of((double)(39 * GIB));
    event.sample.smact = reading_of(0.9);
    event.sample.utilisation = reading_of(1);
    event.sample.foreign_processes = reading_of(1);
    step(core, &event);
}

static void submit(struct core *core, uint64_t id, int64_t now_us)
{
    struct event event = {.kind = EVENT_SUBMIT, .time_us = now_us, .task = id};
    event.submit.request = (struct task_request){.gpus = 1, .need = {NEED_ESTIMATED, 8 * GIB}};
    step(core, &event);
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void measure(const char *policy)
{
    struct core_settings settings = core_settings_default();
    settings.policy = policy_find(policy);
    struct core *core = core_create(&settings);
    if (!core || !settings.policy)
        exit(1);
    add_gpus(core);
    for (int i = 0; i < GPUS; i++)
        sample(core, i, 0);
    double began = bench_now_us();
    for (uint64_t id = 1; id <= TASKS; id++)
        submit(core, id, 1);
    double submitted = bench_now_us();

    static double took[STEPS];
    for (int i = 0; i < STEPS; i++) {
        double before = bench_now_us();
        sample(core, i % GPUS, (1 + i / GPUS) * SECOND_US);
        took[i] = bench_now_us() - before;
    }
    qsort(took, STEPS, sizeof *took, compare);

    char what[128];
    snprintf(what, sizeof what, "%s: scheduling pass, %d queued, %d GPUs, median", policy, TASKS, GPUS);
    bench_row(what, took[STEPS / 2], "us", "");
    snprintf(what, sizeof what, "%s: the same, 99 of 100", policy);
    bench_row(what, took[STEPS * 99 / 100], "us", "under 1000");
    snprintf(what, sizeof what, "%s: a submission into the core", policy);
    bench_row(what, (submitted - began) / TASKS, "us", "");
    core_destroy(core);
}

int main(void)
{
    measure("exclusive");
    measure("magm");
    return 0;
}
