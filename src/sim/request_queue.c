/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests arrive at random (Poisson), are answered one after the other, and take equally long: the
 * queue M/D/1, whose load is r = rate * request_s. A request waits longer than t with the
 * probability
 *
 *     P(t) = min(r, c * exp(-x * t / request_s))
 *
 * where x > 0 solves r * (exp(x) - 1) = x, and c = (1 - r) / (r + x - 1). This is the asymptotic
 * formula of Cramer and Lundberg (Asmussen, "Applied Probability and Queues", 2003, chapter XIII);
 * the requests that find the service busy are r of all. Against a simulated queue its p99 is right
 * within 3 % for loads from 0.1 to 0.9 (tests/unit/sim/test_request_queue.c).
 *
 * Example: 50 requests per second of 10 ms are a load of 0.5. Half of them wait; x is 1.26, c is
 * 0.66, and 99 % wait for at most ln(66) / 1.26 = 3.3 times 10 ms: their p99 is 43 ms. When a
 * training beside the service makes requests take 15 ms, the load is 0.75 and the p99 is 135 ms.
 *
 * If more requests come than can be answered, they form a backlog, which later ones find before
 * them.
 */
#include "sim/request_queue.h"

#include <math.h>

/* Above this load the formula is taken at it. Chosen: a queue takes about request_s / (1 - r)^2 to
 * reach its steady state, 10,000 requests at 0.99; what comes beyond it is backlog. */
#define LOAD_MAX 0.99

/* With less load no request of a hundred waits. */
#define LOAD_MIN 0.01

/* Chosen: Newton's method needs fewer at all loads from LOAD_MIN to LOAD_MAX. */
enum { ROUNDS = 20 };

/* Returns the load: the part of the time in which requests are being answered; above 1, more come
 * than can be answered. */
static double request_queue_load(const struct request_queue *queue)
{
    return queue->rate * queue->request_s;
}

/* Sets the tail of the waiting time: P(t) = c * exp(-x * t / request_s). */
static void set_tail(struct request_latencies *latencies)
{
    double load = latencies->load;
    double x = -3 * log(load); /* above the root, from where Newton's method falls to it */
    for (int i = 0; i < ROUNDS; i++)
        x -= (load * expm1(x) - x) / (load * exp(x) - 1);
    latencies->x = x;
    latencies->c = (1 - load) / (load + x - 1);
}

struct request_latencies request_latencies_of(const struct request_queue *queue)
{
    struct request_latencies latencies = {.shortest_s = queue->request_s * (1 + queue->backlog),
        .request_s = queue->request_s,
        .load = fmin(LOAD_MAX, request_queue_load(queue))};
    if (latencies.load >= LOAD_MIN)
        set_tail(&latencies);
    return latencies;
}

double request_latencies_within(const struct request_latencies *latencies, double limit_s)
{
    double left_s = limit_s - latencies->shortest_s;
    if (left_s < 0)
        return 0;
    if (latencies->load < LOAD_MIN)
        return 1;
    return 1 -
           fmin(latencies->load, latencies->c * exp(-latencies->x * left_s / latencies->request_s));
}

double request_queue_p99_s(const struct request_queue *queue)
{
    struct request_latencies latencies = request_latencies_of(queue);
    double waits = latencies.load > LOAD_MIN ? fmax(0, log(100 * latencies.c) / latencies.x) : 0;
    return latencies.shortest_s + waits * queue->request_s;
}

double request_queue_within(const struct request_queue *queue, double limit_s)
{
    struct request_latencies latencies = request_latencies_of(queue);
    return request_latencies_within(&latencies, limit_s);
}

void request_queue_advance(struct request_queue *queue, double passed_s)
{
    double answered = passed_s / queue->request_s;
    queue->backlog = fmax(0, queue->backlog + queue->rate * passed_s - answered);
}
