/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The helper processes of one daemon: each group of processes that is with the driver has one for
 * itself, and one more is there for what is under way before that (daemon/suspension/order_driver.c
 * has an example).
 *
 * Contract:
 * 1. Which groups may be with the driver at once is the owner's to decide: none that have a GPU in
 *    common. A restore frees what its helper holds for it: another helper that reserves memory
 *    there in that moment would take it, and the process would be lost.
 * 2. A group that is with the driver stays where it is in memory, until its answer is taken or the
 *    pool is closed.
 */
#ifndef COLLOC_CHECKPOINT_HELPER_POOL_H
#define COLLOC_CHECKPOINT_HELPER_POOL_H

#include "checkpoint/group_runner.h"

enum {
    HELPERS_MAX = 17, /* chosen: one for each GPU of NVIDIA's largest servers, and one for what is
                         under way */
};

/* A group that is with the driver, or was. */
struct pooled_group {
    struct pooled_group *next, **link; /* among those with the driver */
    struct helper_pool *pool;
    struct group_runner runner; /* the owner sets what group_runner.h says, but for its client, and
                                   for `on_done` and its context */
    double host_bytes;          /* that the driver copies to the host; set by the owner */
    bool is_at_work;            /* until its answer is taken */
    bool is_answered;
    enum group_answer answer;
};

struct helper_pool {
    uv_loop_t *loop; /* borrowed, as the program */
    const char *program;
    struct helper_client *helpers[HELPERS_MAX]; /* NULL: not made yet */
    struct pooled_group *at_work;
    void (*on_answer)(void *context); /* a group has an answer; also from within the start */
    void *context;
};

/* Prepares a pool whose members above `at_work` and below are set. Returns false when memory is
 * out. */
bool helper_pool_open(struct helper_pool *pool);

/* Ends the helpers: nothing more is answered. */
void helper_pool_close(struct helper_pool *pool);

/* Returns a helper that no group uses; NULL: there is none. */
struct helper_client *helper_pool_find(const struct helper_pool *pool);

/* Gives the group to the driver.
 *   client: one that helper_pool_find has returned, which makes no call */
void helper_pool_start(
    struct helper_pool *pool, struct pooled_group *group, struct helper_client *client);

/* The group is no longer with the driver; its answer is read by its owner. */
void helper_pool_take(struct pooled_group *group);

/* Returns whether one of the group's processes has memory on the GPU. */
bool pooled_group_is_on(const struct pooled_group *group, const char *uuid);

/* Returns the host memory that the driver still fills: it is not free for others. */
double helper_pool_host_bytes(const struct helper_pool *pool);

#endif
