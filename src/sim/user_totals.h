/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fairness for each user of a trace.
 *
 * Finish-time fairness (Themis, NSDI 2020) compares the mean completion time of a user's tasks with
 * the one that they would have alone, on the user's share of the GPUs. 1: sharing the machine costs
 * the user nothing; above 1: other users had a part of the share.
 */
#ifndef COLLOC_SIM_USER_TOTALS_H
#define COLLOC_SIM_USER_TOTALS_H

#include "core/task.h"

struct user_totals {
    struct user_total {
        char *name;                               /* "": tasks without a user */
        int64_t tasks;                            /* that ended */
        int gpus_max;                             /* of one of them */
        double wait_s, jct_s, stretch;            /* sums over them; the last: of their slowdowns */
        struct reading alone_wait_s, alone_jct_s; /* as sums, alone on the share; not valid where
                                                     tasks never ended there */
    } * list;                                     /* by the number of the user in the trace */
    int n;
    size_t capacity;
};

/* Adds a task that has ended. `user`: its name; `solo_s`: how long it would run alone. Returns 0 or
 * -ENOMEM. */
int user_totals_add(
    struct user_totals *totals, const struct task *ended, const char *user, double solo_s);
void user_totals_fini(struct user_totals *totals);

/* Returns the mean completion time relative to that alone on the share. */
struct reading user_total_fairness(const struct user_total *total);

#endif
