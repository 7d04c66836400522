/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much each user may have cuDNN asked in a day: a user whose networks have ever new shapes
 * neither drives the answers of others out of the store nor keeps the process from them.
 *
 *     09:00   512 answers in 14 s      a day of the user begins
 *     10:00   9,400 more               88 are left: a network with 100 new questions is refused
 *     09:01   of the next day          all of it again
 *
 * Pure.
 */
#ifndef COLLOC_DAEMON_KERNELS_ASKING_BUDGET_H
#define COLLOC_DAEMON_KERNELS_ASKING_BUDGET_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/clock.h"

enum { ASKING_ANSWERS_A_DAY = 10000 }; /* chosen: a tenth of KERNEL_ANSWERS_MAX, 50 networks */

/* Chosen: 50 of the largest networks, 13.5 s each (docs/measured/kernels.md). */
#define ASKING_TIME_A_DAY_US (12 * MINUTE_US)

/* Start with {0}, end with asking_budget_fini. */
struct asking_budget {
    struct asking_day {
        uid_t uid;
        int64_t begun_us; /* with the first request */
        int64_t busy_us;
        size_t answers;
    } * days; /* of users whose day is not over, and some others */
    size_t n, capacity;
};

/* Releases the list of users. */
void asking_budget_fini(struct asking_budget *budget);

/* Notes new answers of a user's request, and how long the process was busy with it. */
void asking_budget_note(
    struct asking_budget *budget, uid_t uid, size_t answers, int64_t busy_us, int64_t now_us);

/* May the user have so many new questions asked? Returns NULL, or the reason why not, for people.
 */
const char *asking_budget_check(
    const struct asking_budget *budget, uid_t uid, size_t questions, int64_t now_us);

#endif
