/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long the requests of a service take: one that is answered alone, and the others in line
 * before it. Pure; the formula and its source are in request_queue.c.
 */
#ifndef COLLOC_SIM_REQUEST_QUEUE_H
#define COLLOC_SIM_REQUEST_QUEUE_H

/* The requests of a service at one time. */
struct request_queue {
    double rate;      /* requests per second that arrive */
    double request_s; /* how long one takes when no other is before it */
    double backlog;   /* requests that are in line because more have come than could be answered */
};

/* How long the requests of a queue take that arrive now: request_latencies_of sets it. */
struct request_latencies {
    double shortest_s; /* of a request that waits for no others than those of the backlog */
    double request_s;
    double load, x, c; /* the tail of the waiting time (request_queue.c) */
};

struct request_latencies request_latencies_of(const struct request_queue *queue);

/* Returns the part of the requests that are answered within `limit_s`; it never falls with that. */
double request_latencies_within(const struct request_latencies *latencies, double limit_s);

/* Returns within how many seconds 99 % of the requests that arrive now are answered. */
double request_queue_p99_s(const struct request_queue *queue);

/* Returns the part of the requests that arrive now and are answered within `limit_s`. For many
 * limits, request_latencies_within is faster. */
double request_queue_within(const struct request_queue *queue, double limit_s);

/* Sets the backlog after `passed_s` at the present rate. */
void request_queue_advance(struct request_queue *queue, double passed_s);

#endif
