/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A queue has a distribution of latencies, and over a run there are many queues: the p99 of all
 * requests is that of the sum of their distributions, which is kept as a histogram. A queue is the
 * same for many seconds, mostly. So its requests are counted, and put into the bins when it has
 * changed.
 */
#include "sim/service_totals.h"

#include <math.h>
#include <stdlib.h>

#include "base/array.h"

#define REQUEST_BIN_MIN_S 1e-4 /* chosen: faster than any network answers */
#define REQUEST_BIN_RATIO 1.02 /* so the last bin is that of 64,000 s */

/* A queue that differs by less is the same. Chosen: far below the width of a bin. */
#define QUEUE_CHANGE_MAX 1e-3

struct service_total *service_totals_add(
    struct service_totals *totals, uint64_t id, const struct sim_task *type)
{
    struct service_total *total = calloc(1, sizeof *total);
    if (!total || ARRAY_APPEND(totals->list, totals->n, totals->capacity, total) < 0) {
        free(total);
        return NULL;
    }
    total->name = type->name;
    total->service = type->service;
    total->id = id;
    return total;
}

void service_totals_fini(struct service_totals *totals)
{
    for (int i = 0; i < totals->n; i++)
        free(totals->list[i]);
    free(totals->list);
    *totals = (struct service_totals){0};
}

static double upper_end_s(int bin)
{
    return REQUEST_BIN_MIN_S * pow(REQUEST_BIN_RATIO, bin + 1);
}

/* Puts the requests that are counted into the bins, up to the one by which all are answered. */
static void sort_requests(struct service_total *total)
{
    if (total->unsorted <= 0)
        return;
    struct request_latencies latencies = request_latencies_of(&total->before);
    double below = 0, end_s = REQUEST_BIN_MIN_S;
    for (int i = 0; i < REQUEST_BINS && below < 1; i++) {
        end_s *= REQUEST_BIN_RATIO;
        double within = request_latencies_within(&latencies, end_s);
        total->requests_in[i] += total->unsorted * (within - below);
        below = within;
    }
    total->unsorted = 0;
}

static bool is_different(double a, double b)
{
    return fabs(a - b) > QUEUE_CHANGE_MAX * fmax(a, b);
}

static bool is_other_queue(const struct request_queue *a, const struct request_queue *b)
{
    return is_different(a->rate, b->rate) || is_different(a->request_s, b->request_s) ||
           is_different(a->backlog, b->backlog);
}

void service_total_add(
    struct service_total *total, const struct request_queue *queue, double passed_s)
{
    double target_s = (double)total->service->p99_us / 1e6, n = queue->rate * passed_s;
    if (is_other_queue(&total->before, queue)) {
        sort_requests(total);
        total->before = *queue;
    }
    total->unsorted += n;
    total->requests += n;
    total->within += n * request_queue_within(queue, target_s);
    total->up_s += passed_s;
    total->met_s += request_queue_p99_s(queue) <= target_s ? passed_s : 0;
}

void service_total_add_down(struct service_total *total, double rate, double passed_s)
{
    total->requests += rate * passed_s;
    total->up_s += passed_s;
}

struct reading service_total_p99_s(struct service_total *total)
{
    double below = 0;
    sort_requests(total);
    for (int i = 0; i < REQUEST_BINS && total->requests > 0; i++) {
        below += total->requests_in[i];
        if (below >= 0.99 * total->requests)
            return reading_of(upper_end_s(i));
    }
    return READING_NONE;
}
