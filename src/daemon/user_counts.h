/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many entries of a bounded table each user has, so that no user's entries drive out those of
 * others: where the table is full, the user with the most loses its oldest one.
 *
 * Example, of a table of 10: ada has 3, bob 7. Of bob's next ten each replaces one of bob's. Of
 * ada's next five the first two replace bob's, then both have 5 and each replaces the own ones.
 */
#ifndef COLLOC_DAEMON_USER_COUNTS_H
#define COLLOC_DAEMON_USER_COUNTS_H

#include <stddef.h>
#include <stdint.h>

/* Starts as zero. */
struct user_counts {
    struct user_count {
        uint32_t uid;
        int64_t n;
    } * users;
    size_t n, capacity;
};

/* Adds to the number of a user's entries. `n` may be negative; what it takes away must be there.
 * Returns 0 or -ENOMEM, and nothing has changed. */
int user_counts_add(struct user_counts *counts, uint32_t uid, int64_t n);

/* Returns the user with the most entries; of equal ones the one that came first. There must be an
 * entry. */
uint32_t user_counts_most(const struct user_counts *counts);

/*
 * Finds the most entries that a user may have, so that all together have no more than `limit`, as
 * many as there are, and users with fewer keep all (max-min fairness).
 *
 * limit: at least 1
 *
 * Returns at least 1, also where there are more users than `limit`.
 */
int64_t user_counts_share(struct user_counts *counts, int64_t limit);

void user_counts_fini(struct user_counts *counts);

#endif
