/* SPDX-License-Identifier: Apache-2.0 */
/* The table of users. */
#ifndef COLLOC_CORE_STATE_USERS_H
#define COLLOC_CORE_STATE_USERS_H

#include "core/state/state.h"

/* The position of the first user with a number of at least `uid`. */
int core_user_position(const struct core_users *users, uint32_t uid);

/* Returns NULL when there is none. */
struct core_user *core_find_user(const struct core *core, uint32_t uid);

/* Finds the user, or adds a user without usage. Returns NULL when memory is out. */
struct core_user *core_add_user(struct core *core, uint32_t uid, int64_t now_us);

/* The ranks are those of before a change, which was now. */
void core_make_ranks_stale(struct core *core, int64_t now_us);

/* Copies the table, NULL: all users are equal, and sets the shares of all users. */
void core_set_shares(struct core *core, const struct share_table *table);

/* A task of the user holds a GPU more (`change` 1) or less (-1). */
void core_count_gpu(struct core *core, uint32_t uid, int change, int64_t now_us);

#endif
