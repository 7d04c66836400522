/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A worker pool: each thread takes the next run of the list. Results are kept in a slot per run,
 * so that the reader gets them in order. A run uses no state outside its thread, so its result is
 * the same on any thread.
 */
#include "sim/sweep.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"

struct sweep {
    const struct simulation *simulations;
    int64_t n;
    atomic_bool cancelled;
    pthread_t *threads;
    int n_threads;

    pthread_mutex_t lock; /* of all below */
    pthread_cond_t one_ended;
    int64_t next, n_ended;
    struct slot {
        bool ended;
        struct sweep_outcome outcome;
    } * slots;
};

static int64_t take_next(struct sweep *sweep)
{
    pthread_mutex_lock(&sweep->lock);
    int64_t i = sweep->cancelled ? sweep->n : sweep->next;
    sweep->next = i < sweep->n ? i + 1 : sweep->n;
    pthread_mutex_unlock(&sweep->lock);
    return i;
}

static void store_outcome(struct sweep *sweep, int64_t i, const struct sweep_outcome *outcome)
{
    pthread_mutex_lock(&sweep->lock);
    sweep->slots[i] = (struct slot){true, *outcome};
    sweep->n_ended++;
    pthread_cond_signal(&sweep->one_ended);
    pthread_mutex_unlock(&sweep->lock);
}

static void *run_worker(void *context)
{
    struct sweep *sweep = context;
    int64_t i;
    while ((i = take_next(sweep)) < sweep->n) {
        struct simulation simulation = sweep->simulations[i];
        struct sweep_outcome outcome = {0};
        struct fault fault = {0};
        simulation.cancelled = &sweep->cancelled;
        outcome.r = simulate_trace(&simulation, &fault, &outcome.result);
        if (outcome.r < 0)
            outcome.fault = strdup(fault.text);
        store_outcome(sweep, i, &outcome);
    }
    return NULL;
}

static void init_lock(struct sweep *sweep)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&sweep->one_ended, &attributes);
    pthread_condattr_destroy(&attributes);
    pthread_mutex_init(&sweep->lock, NULL);
}

struct sweep *sweep_start(const struct simulation *simulations, int64_t n, int threads)
{
    struct sweep *sweep = calloc(1, sizeof *sweep);
    if (!sweep)
        return NULL;
    *sweep = (struct sweep){.simulations = simulations, .n = n};
    init_lock(sweep);
    sweep->threads = calloc((size_t)threads, sizeof *sweep->threads);
    sweep->slots = calloc((size_t)n, sizeof *sweep->slots);
    while (sweep->threads && sweep->slots && sweep->n_threads < threads &&
           pthread_create(&sweep->threads[sweep->n_threads], NULL, run_worker, sweep) == 0)
        sweep->n_threads++;
    if (sweep->n_threads > 0)
        return sweep;
    sweep_destroy(sweep);
    return NULL;
}

const struct sweep_outcome *sweep_wait(struct sweep *sweep, int64_t i, int64_t timeout_us)
{
    struct timespec until;
    int r = 0;
    clock_gettime(CLOCK_MONOTONIC, &until);
    int64_t until_us = (int64_t)until.tv_sec * SECOND_US + until.tv_nsec / 1000 + timeout_us;
    until = (struct timespec){
        .tv_sec = until_us / SECOND_US, .tv_nsec = until_us % SECOND_US * 1000};
    pthread_mutex_lock(&sweep->lock);
    while (!sweep->slots[i].ended && r == 0)
        r = pthread_cond_timedwait(&sweep->one_ended, &sweep->lock, &until);
    bool ended = sweep->slots[i].ended;
    pthread_mutex_unlock(&sweep->lock);
    return ended ? &sweep->slots[i].outcome : NULL;
}

int64_t sweep_ended(struct sweep *sweep)
{
    pthread_mutex_lock(&sweep->lock);
    int64_t n = sweep->n_ended;
    pthread_mutex_unlock(&sweep->lock);
    return n;
}

void sweep_destroy(struct sweep *sweep)
{
    if (!sweep)
        return;
    sweep->cancelled = true;
    for (int i = 0; i < sweep->n_threads; i++)
        pthread_join(sweep->threads[i], NULL);
    for (int64_t i = 0; sweep->slots && i < sweep->n; i++)
        free(sweep->slots[i].outcome.fault);
    pthread_cond_destroy(&sweep->one_ended);
    pthread_mutex_destroy(&sweep->lock);
    free(sweep->threads);
    free(sweep->slots);
    free(sweep);
}
