/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Suspends, resumes, moves and pauses tasks: carries out what the core decides (core/suspension.h)
 * by colloc-checkpoint (checkpoint/) and by the freezer of tasks' cgroups.
 *
 * Contract:
 * 1. Each suspend, resume and move is answered with one event: SUSPENDED, RESUMED, MOVED or
 *    SUSPENSION_FAILED. First are those for which another task, a service or an operator waits, and
 *    among equal ones the users take turns. While one waits for its task's own processes, others
 *    are carried out; while one is with the driver, those on other GPUs.
 * 2. Each may be repeated, also by another daemon after a kill at any instant: finished steps are
 *    not done again.
 * 3. A suspended process is restored only where its memory could be reserved before.
 */
#ifndef COLLOC_DAEMON_SUSPENSION_SUSPENSION_H
#define COLLOC_DAEMON_SUSPENSION_SUSPENSION_H

#include "daemon/suspension/suspension_options.h"

struct suspension;

/* Creates the part; `options` is copied. Returns NULL when memory is out. */
struct suspension *suspension_create(const struct suspension_options *options);

/* Stops; the next daemon finds an unfinished order again. NULL is fine. */
void suspension_close(struct suspension *suspension);

/* Releases the part once the loop has run after suspension_close. NULL is fine. */
void suspension_destroy(struct suspension *suspension);

/* Begin to carry out a decision of the core. */
void suspension_suspend(struct suspension *suspension, uint64_t task);
void suspension_resume(struct suspension *suspension, uint64_t task);
void suspension_move(struct suspension *suspension, uint64_t task);
void suspension_relocate(struct suspension *suspension, uint64_t task);

/* Freezes the task's processes, or lets them continue. */
void suspension_pause(struct suspension *suspension, uint64_t task);
void suspension_continue(struct suspension *suspension, uint64_t task);

/* The poll of this number is complete. */
void suspension_polled(struct suspension *suspension, int64_t poll);

/* The task has ended. */
void suspension_task_ended(struct suspension *suspension, uint64_t task);

/* Why the last suspension or move of the task failed, for users; "": none did. */
const char *suspension_why_failed(const struct suspension *suspension, uint64_t task);

/*
 * Can the carrier take the memory of the task's processes off its GPUs now (docs/carrier.md)?
 *
 * ret_why: of CARRIER_CANNOT, for users
 *
 * CARRIER_UNKNOWN: the carrier is off, or no process of the task is listed on its GPUs.
 */
enum carrier_use { CARRIER_UNKNOWN, CARRIER_CAN, CARRIER_CANNOT };
enum carrier_use suspension_ask_carrier(
    const struct suspension *suspension, const struct task *task, char *ret_why, size_t size);

/* Answers a request when the task's present order is done or has failed. Returns false when there
 * is none: the caller answers. */
bool suspension_answer_later(
    struct suspension *suspension, uint64_t task, struct api_request *request);

#endif
