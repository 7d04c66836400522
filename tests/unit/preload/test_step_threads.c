/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Steps counted of trainings whose threads call the driver at the same time, so that their calls
 * change places from step to step:
 *
 *     main       forward .......... | waits            | optimizer | forward ...
 *     autograd                      | backward ........ |
 *     loader       copies of a later batch, its kernels, at any place
 *     collectives                       | a | b    c | at random delays, some joined into one
 *     replicas   the same layers of other GPUs, in turns with the first one's
 *     executor   graph or kernels of a step, while the main thread copies the next batch
 *
 * Each training is drawn: which of these threads it has, how many calls each makes, how late they
 * are. All calls are sorted by their time and played. Where two threads call within
 * `COLLISION_US`, the later call may be lost, as in step_watch.c.
 *
 * COLLOC_THREADED_TRAININGS: how many (`make soak`); COLLOC_THREADED_SEED: of the first one. Those
 * that fail are printed with their seed.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "preload/step_counter.h"

enum {
    TRAININGS_OF_A_FAILURE = 500, /* where calls are lost, one of a thousand fails */
    CALLS = 300000,               /* of a training: four of the longest windows */
    FOUND_AFTER = 140000, /* docs/steps.md: two of the longest windows, and what is under way */
    STEP_CALLS_MAX = 4096,
    AHEAD_MAX = 4,
};
static const double COLLISION_US = 1;

/* What a training does in each step. */
struct training {
    bool has_executor; /* else it is eager */
    unsigned layers, forward, backward, replicas;
    unsigned parameters; /* launches of the optimizer, three kernels each; 1: fused */
    unsigned copies, loader_kernels, loader_ahead; /* of a batch; 0 ahead: by the main thread */
    unsigned buckets;     /* of gradients, for the thread of collectives; 0: none */
    unsigned kernels;     /* of an executor; 0: one graph */
    unsigned print_every; /* 0: never */
    unsigned beside_of_100,
        beside;              /* steps that have other kernels beside, and how many these are */
    unsigned lost_of_100;    /* of calls at the same time */
    bool waits, joins;       /* each step for the GPU; buckets that are late become one */
    double call_us, late_us; /* of a call; mean delay of a thread that was given work */
};

struct call {
    double at_us;
    uint32_t symbol; /* 0: a step has ended */
    unsigned thread;
};

enum thread { MAIN, AUTOGRAD, LOADER, COLLECTIVES, EXECUTOR, REPLICAS };

struct run {
    struct training training;
    uint64_t random;
    struct call *calls;
    unsigned n;
    double main_us, loader_us, collectives_us, executor_us; /* when each is free */
    double began_us[AHEAD_MAX], done_us[AHEAD_MAX];         /* of the last steps */
};

static unsigned random_below(struct run *run, unsigned n)
{
    run->random ^= run->random << 13;
    run->random ^= run->random >> 7;
    run->random ^= run->random << 17;
    return (unsigned)(run->random >> 33) % n;
}

/* An exponential one. */
static double random_delay(struct run *run, double mean)
{
    return -mean * log((1 + random_below(run, 1 << 20)) / (double)(1 << 20));
}

static void draw(struct run *run, uint64_t seed)
{
    struct training *t = &run->training;
    static const unsigned of_100[] = {0, 0, 70, 95, 100}, every[] = {0, 10, 50};
    run->random = UINT64_C(88172645) ^ seed * UINT64_C(0x9e3779b97f4a7c15);
    for (int i = 0; i < 8; i++)
        random_below(run, 2);
    t->has_executor = random_below(run, 3) == 0;
    t->layers = 1 + random_below(run, 24);
    t->forward = 2 + random_below(run, 10);
    t->backward = t->forward + random_below(run, t->forward);
    t->replicas = random_below(run, 4) ? 1 : 2 + random_below(run, 3);
    t->parameters = random_below(run, 2) ? 1 : 1 + t->layers * (1 + random_below(run, 4));
    t->copies = random_below(run, 4);
    t->loader_ahead = random_below(run, 1 + AHEAD_MAX);
    t->loader_kernels = random_below(run, 2) ? 0 : random_below(run, 8);
    t->buckets = random_below(run, 2) ? 0 : 1 + random_below(run, 8);
    t->joins = random_below(run, 2);
    t->kernels = random_below(run, 2) ? 0 : random_below(run, 20);
    t->print_every = every[random_below(run, 3)];
    t->beside_of_100 = t->has_executor ? of_100[random_below(run, 5)] : 0;
    t->beside = 1 + random_below(run, 8);
    t->lost_of_100 = random_below(run, 2) ? 0 : 1 + random_below(run, 10);
    t->waits = random_below(run, 3) == 0;
    t->call_us = 4 + random_below(run, 8);
    t->late_us = random_below(run, 3) ? t->call_us * (1 << random_below(run, 6)) : 0;
    if (t->has_executor) { /* few calls, which take long */
        t->copies += t->copies == 0;
        t->call_us *= 10;
        t->late_us *= 10;
    }
}

/* ---- the threads ---- */

static void add(struct run *run, unsigned thread, double at_us, uint32_t symbol)
{
    if (run->n < CALLS)
        run->calls[run->n++] = (struct call){.at_us = at_us, .symbol = symbol, .thread = thread};
}

/* Returns when it has been made. */
static double call(
    struct run *run, unsigned thread, double at_us, enum step_call kind, unsigned handle)
{
    at_us += run->training.call_us * 0.5 + random_delay(run, run->training.call_us * 0.5);
    add(run, thread, at_us, step_symbol(kind, handle));
    return at_us;
}

static double launch(struct run *run, unsigned thread, double at_us, unsigned first, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        at_us = call(run, thread, at_us, STEP_LAUNCH, first + i);
    return at_us;
}

/* One batch: copies, then what prepares it on the GPU. */
static double load(struct run *run, unsigned thread, double at_us)
{
    const struct training *t = &run->training;
    for (unsigned i = 0; i < t->copies; i++)
        at_us = call(run, thread, at_us, STEP_COPY, 1u << (8 + 4 * i));
    return launch(run, thread, at_us, 9000, t->loader_kernels);
}

/* Returns when the main thread has the batch of step `i`. */
static double get_batch(struct run *run, unsigned i)
{
    const struct training *t = &run->training;
    if (t->loader_ahead == 0)
        return load(run, MAIN, run->main_us);
    double asked_us = i < t->loader_ahead ? 0 : run->began_us[(i - t->loader_ahead) % AHEAD_MAX];
    run->loader_us = fmax(run->loader_us, asked_us) + random_delay(run, t->late_us);
    run->loader_us = load(run, LOADER, run->loader_us);
    return fmax(run->main_us, run->loader_us);
}

/* Of one GPU; the kernels of another GPU have other handles. */
static double pass(
    struct run *run, unsigned thread, double at_us, unsigned first, unsigned of_layer)
{
    at_us = launch(run, thread, at_us, first + 900, 2);
    for (unsigned layer = 0; layer < run->training.layers; layer++)
        at_us = launch(run, thread, at_us, first + 40 * (layer % 2), of_layer);
    return launch(run, thread, at_us, first + 950, 2);
}

static double pass_of_replicas(
    struct run *run, enum thread thread, double at_us, unsigned first, unsigned of_layer)
{
    double end_us = at_us;
    for (unsigned i = 0; i < run->training.replicas; i++) {
        double begins_us = at_us + (i > 0 ? random_delay(run, run->training.late_us) : 0);
        unsigned of_replica = i > 0 ? 2 * REPLICAS * i + thread : thread;
        end_us = fmax(end_us, pass(run, of_replica, begins_us, first + 10000 * i, of_layer));
    }
    return end_us;
}

/* Buckets are ready one after the other in the backward pass. Returns when all are sent. */
static double reduce(struct run *run, double begins_us, double ends_us)
{
    const struct training *t = &run->training;
    for (unsigned i = 0; i < t->buckets; i++) {
        double ready_us = begins_us + (ends_us - begins_us) * (i + 1) / t->buckets;
        if (t->joins && i > 0 && ready_us < run->collectives_us)
            continue; /* sent with the one before */
        run->collectives_us = fmax(run->collectives_us, ready_us) + random_delay(run, t->late_us);
        run->collectives_us = launch(run, COLLECTIVES, run->collectives_us, 7000, 2);
    }
    return fmax(ends_us, run->collectives_us);
}

static void make_eager_step(struct run *run, unsigned i)
{
    const struct training *t = &run->training;
    double at_us = get_batch(run, i);
    run->began_us[i % AHEAD_MAX] = at_us;
    double back_us = pass_of_replicas(run, MAIN, at_us, 100000, t->forward);
    at_us = pass_of_replicas(run, AUTOGRAD, back_us, 200000, t->backward);
    at_us = reduce(run, back_us, at_us);
    for (unsigned k = 0; k < t->parameters; k++)
        at_us = launch(run, MAIN, at_us, 400, 3);
    run->main_us = t->waits ? call(run, MAIN, at_us, STEP_SYNC, 0) : at_us;
}

/* The main thread is some steps ahead of the executor. */
static void make_executed_step(struct run *run, unsigned i)
{
    const struct training *t = &run->training;
    unsigned ahead = 1 + t->loader_ahead % AHEAD_MAX;
    double given_us = load(run, MAIN, run->main_us);
    double at_us = fmax(run->executor_us, given_us) + random_delay(run, t->late_us);
    if (t->kernels == 0)
        at_us = call(run, EXECUTOR, at_us, STEP_GRAPH, 7);
    at_us = launch(run, EXECUTOR, at_us, 5000, t->kernels);
    if (random_below(run, 100) < t->beside_of_100)
        at_us = launch(run, EXECUTOR, at_us, 6000, t->beside);
    run->executor_us = run->done_us[i % AHEAD_MAX] = at_us;
    double room_us = i < ahead ? 0 : run->done_us[(i - ahead) % AHEAD_MAX];
    run->main_us = t->waits ? call(run, MAIN, at_us, STEP_SYNC, 0) : fmax(given_us, room_us);
}

static void make_steps(struct run *run)
{
    const struct training *t = &run->training;
    for (unsigned i = 0; run->n + STEP_CALLS_MAX < CALLS; i++) {
        if (t->has_executor)
            make_executed_step(run, i);
        else
            make_eager_step(run, i);
        if (t->print_every && i % t->print_every == t->print_every - 1) {
            run->main_us = fmax(run->main_us, run->executor_us);
            run->main_us = launch(run, MAIN, run->main_us, 500, 3);
            run->main_us = call(run, MAIN, run->main_us, STEP_SYNC, 0);
        }
        add(run, MAIN, run->main_us, 0);
    }
}

/* ---- played ---- */

static int compare_calls(const void *a, const void *b)
{
    const struct call *left = a, *right = b;
    return (left->at_us > right->at_us) - (left->at_us < right->at_us);
}

/* A call of another thread just before it may have the counter. */
static bool is_lost(struct run *run, unsigned i)
{
    const struct call *call = &run->calls[i];
    return i > 0 && call->thread != call[-1].thread &&
           call->at_us - call[-1].at_us < COLLISION_US &&
           random_below(run, 100) < run->training.lost_of_100;
}

struct result {
    double off;        /* the largest part of steps counted wrong, of any unit */
    unsigned found_at; /* calls; 0: never */
    uint64_t made, units;
};

/* The last steps may be under way. */
static double part_off(double counted, double made)
{
    return fmax(0, fabs(counted - made) - 1 - AHEAD_MAX) / fmax(made, 1);
}

static struct result play(struct run *run)
{
    struct step_counter *counter = calloc(1, sizeof *counter);
    struct result result = {0};
    uint64_t made = 0, marked_made = 0, marked_counter = 0;
    uint32_t unit = 0;
    bool is_known = false;
    assert_non_null(counter);
    for (unsigned i = 0; i < run->n; i++) {
        const struct call *call = &run->calls[i];
        if (call->symbol == 0)
            made++;
        else if (step_counter_is_due(counter, call->symbol) && !is_lost(run, i))
            step_counter_note(counter, call->symbol, 1000 + (int64_t)call->at_us);
        if (counter->unit == unit && i + 1 < run->n)
            continue;
        double counted = (double)(counter->steps - marked_counter);
        if (is_known)
            result.off = fmax(result.off, part_off(counted, (double)(made - marked_made)));
        result.found_at = counter->marks.n == 0 ? 0 : result.found_at ? result.found_at : i;
        marked_made = made;
        marked_counter = counter->steps;
        unit = counter->unit;
        is_known = counter->marks.n > 0;
    }
    result.made = made;
    result.units = unit;
    free(counter);
    return result;
}

static void print_training(uint64_t seed, const struct training *t, const struct result *result)
{
    print_message("seed %llu: %.1f %% off, found at %u, %llu steps, units %llu; executor %d layers "
                  "%ux%u+%u replicas %u parameters %u copies %u ahead %u loader %u buckets %u "
                  "joins %d kernels %u print %u beside %u of %u lost %u waits %d late %.0f\n",
        (unsigned long long)seed, 100 * result->off, result->found_at,
        (unsigned long long)result->made, (unsigned long long)result->units, t->has_executor,
        t->layers, t->forward, t->backward, t->replicas, t->parameters, t->copies, t->loader_ahead,
        t->loader_kernels, t->buckets, t->joins, t->kernels, t->print_every, t->beside_of_100,
        t->beside, t->lost_of_100, t->waits, t->late_us / t->call_us);
}

static uint64_t number_of(const char *name, uint64_t or_else)
{
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 10) : or_else;
}

static void test_threads(void **state)
{
    (void)state;
    uint64_t trainings = number_of("COLLOC_THREADED_TRAININGS", 40);
    uint64_t first = number_of("COLLOC_THREADED_SEED", 1);
    unsigned wrong = 0, late = 0, unknown = 0;
    struct call *calls = calloc(CALLS, sizeof *calls);
    assert_non_null(calls);
    for (uint64_t seed = first; seed < first + trainings; seed++) {
        struct run run = {.calls = calls};
        draw(&run, seed);
        make_steps(&run);
        qsort(calls, run.n, sizeof *calls, compare_calls);
        struct result result = play(&run);
        bool is_wrong = result.off > 0.02;
        bool is_late = result.found_at > FOUND_AFTER, is_unknown = result.found_at == 0;
        wrong += is_wrong;
        late += is_late;
        unknown += is_unknown;
        if (is_wrong || is_late || is_unknown)
            print_training(seed, &run.training, &result);
    }
    free(calls);
    print_message(
        "%u wrong, %u late and %u unknown of %u\n", wrong, late, unknown, (unsigned)trainings);
    assert_in_range(wrong, 0, trainings / TRAININGS_OF_A_FAILURE);
    assert_in_range(late + unknown, 0, trainings / TRAININGS_OF_A_FAILURE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_threads)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
