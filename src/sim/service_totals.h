/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The requests that the services of a run answered, and their latency: for each service the
 * requests from its first answer on, how many of them were answered within its latency target, and
 * their p99.
 */
#ifndef COLLOC_SIM_SERVICE_TOTALS_H
#define COLLOC_SIM_SERVICE_TOTALS_H

#include <stddef.h>
#include <stdint.h>

#include "base/reading.h"
#include "sim/catalogue.h"
#include "sim/request_queue.h"

/* Bins of the logarithm of a request's time, each 2 % wide, from REQUEST_BIN_MIN_S on. */
enum { REQUEST_BINS = 1024 };

struct service_total {
    const char *name; /* borrowed from the catalogue, as the service is; NULL: of no service */
    const struct sim_service *service;
    uint64_t id;
    double requests, within;          /* of all, and those answered within the target */
    double up_s, met_s;               /* since the first answer; with a p99 within the target */
    double requests_in[REQUEST_BINS]; /* by how long they took */
    struct request_queue before;      /* what has not been put into bins yet ... */
    double unsorted;                  /* ... and of how many requests */
};

struct service_totals {
    struct service_total **list; /* in order of submission */
    int n;
    size_t capacity;
};

/*
 * Adds a service that was submitted. `type` is borrowed as long as the totals are used.
 *
 * Returns its total, which belongs to `totals`; NULL without memory.
 */
struct service_total *service_totals_add(
    struct service_totals *totals, uint64_t id, const struct sim_task *type);
void service_totals_fini(struct service_totals *totals);

/* Adds the requests of a time in which the queue was as it is. */
void service_total_add(
    struct service_total *total, const struct request_queue *queue, double passed_s);

/* Adds the requests of a time in which none was answered. */
void service_total_add_down(struct service_total *total, double rate, double passed_s);

/* Returns the time within which 99 % of all requests were answered; not valid without requests, or
 * when more than 1 % were never answered. */
struct reading service_total_p99_s(struct service_total *total);

#endif
