/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The trainings of a group begin their epochs together: the first epoch of one would otherwise run
 * while another still loads its libraries, and be faster than beside it.
 *
 * The barrier is a pipe. Each training inherits its end for reading, as the file descriptor that
 * COLLOC_BENCH_START_FD names, and reads from it once it is ready. Nothing is ever written: the
 * read ends when the bench closes the other end, or dies. A training that does not know of it does
 * not wait.
 *
 *     training 1   load ---- ready  read ......... | epochs
 *     training 2   load ----------------- ready    | epochs
 */
#ifndef COLLOC_BENCH_START_BARRIER_H
#define COLLOC_BENCH_START_BARRIER_H

#include "bench/experiment.h"

struct start_barrier {
    int read_end, write_end; /* -1: there is none, or it is open */
};

/* A barrier that stops no training. */
#define START_BARRIER_NONE ((struct start_barrier){-1, -1})

/* Does the group need a barrier? Yes, if its trainings run at the same time and each reports when
 * it is ready. Users' scripts may not report it. */
bool start_barrier_is_for(const struct bench_group *group);

/* Returns 0 or -errno. */
int start_barrier_init(struct start_barrier *barrier);

/* In the child that becomes a training: lets it inherit the barrier. */
void start_barrier_inherit(const struct start_barrier *barrier);

/* All may begin. May be called more than once. */
void start_barrier_open(struct start_barrier *barrier);

#endif
