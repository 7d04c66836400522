/* SPDX-License-Identifier: Apache-2.0 */
/* When a GPU is predicted to admit the head of the queue, and whether a task that starts there
 * before it changes that. */
#ifndef COLLOC_POLICY_OPENING_H
#define COLLOC_POLICY_OPENING_H

#include "policy/predict.h"
#include "policy/stage.h"

/* When a GPU is predicted to admit a task, and after how many tasks there, or on other places of
 * its memory domain, have left. */
struct opening {
    int gpu;
    int64_t at_us; /* or START_UNKNOWN */
    int n_left;    /* or OPENING_NEVER: external processes keep it from the task */
    double speed;  /* of the GPU: of equal openings the faster GPU comes first */
};

/* More than can leave. */
enum { OPENING_NEVER = PREDICT_RESIDENTS_MAX + STAGE_OTHERS_MAX + 2 };

/* Does the query's task start sooner by the one opening than by the other? */
bool opening_is_before(const struct opening *one, const struct opening *other);

/*
 * Predicts when GPU `gpu` admits the query's task.
 *
 * before: the prediction ends when it is certain that the GPU opens no sooner than this; NULL: it
 *         does not
 * ret_opening: set where the answer is true
 *
 * Returns whether it opens sooner than `before`; without one, true.
 */
bool opening_predict(const struct placement_query *query, int gpu, const struct opening *before,
    struct opening *ret_opening);

/*
 * Is it certain by the memory alone that the query's task, the head, is not admitted to the GPU
 * beside another task, however many of the tasks there leave up to `n_left`? Then too little is
 * free even if those leave that hold most.
 *
 * gpu: has fewer than PREDICT_RESIDENTS_MAX residents.
 * joining: the other task, which would start there now.
 */
bool opening_is_ruled_out(
    const struct placement_query *query, int gpu, const struct task *joining, int n_left);

/*
 * Is the query's task, the head, still admitted to the GPU in time if another task starts there
 * now? That is at once, by `start_us`, or after as many residents have left as without that task.
 *
 * What is predicted without that task is taken from query->outlooks, and noted there.
 *
 * gpu: has fewer than PREDICT_RESIDENTS_MAX residents.
 * joining: the other task.
 * start_us: when the head is to start at the latest, or START_UNKNOWN.
 */
bool opening_lasts(
    const struct placement_query *query, int gpu, const struct task *joining, int64_t start_us);

#endif
