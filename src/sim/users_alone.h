/* SPDX-License-Identifier: Apache-2.0 */
/* Runs of one trace: first as requested, then for each user alone. */
#ifndef COLLOC_SIM_USERS_ALONE_H
#define COLLOC_SIM_USERS_ALONE_H

#include "sim/simulate.h"
#include "sim/user_totals.h"

/*
 * As simulate_trace, and fills in the figures of the trace's users: a second run for each user
 * whose tasks alone are submitted, to as many GPUs as are the user's share (at least one, and as
 * many as the largest of the tasks has). Users have equal shares.
 *
 * ret_users: filled; user_totals_fini must follow in each case. Without a second user nothing is
 *            compared.
 *
 * Returns as simulate_trace, of any of the runs; -EDEADLK only of the first one.
 */
int simulate_with_users(const struct simulation *simulation, struct fault *fault,
    struct simulation_result *ret_result, struct user_totals *ret_users);

#endif
