/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Brings one task's processes to their goal by the helper: process_group chooses the next call,
 * helper_client makes it, copy_speed computes its time limit and learns from its duration.
 */
#ifndef COLLOC_CHECKPOINT_GROUP_RUNNER_H
#define COLLOC_CHECKPOINT_GROUP_RUNNER_H

#include "checkpoint/copy_speed.h"
#include "checkpoint/helper_client.h"
#include "checkpoint/process_group.h"

/* For one task after the other: at most one group is under way. It stays where it is in memory
 * while it runs. */
struct group_runner {
    struct helper_client *client; /* borrowed, as the next */
    struct copy_speed *speed;

    /* Called once for each group_runner_start, also from within it when there is nothing to do.
     * `error`: the helper's text on the first failure, or "". */
    void (*on_done)(void *context, enum group_answer answer, const char *error);
    void *context;

    struct process_group group;
    struct group_step step;
    struct gpu_move moves[HELPER_MOVES_MAX]; /* of a resumption on other GPUs */
    size_t n_moves;
    int64_t spare_bytes;  /* kept free beside the memory of each process until it is restored */
    bool teaches_nothing; /* the memory goes another way: copies say nothing about the speed */
    char error[256];
    bool is_under_way;
};

/*
 * Starts to bring the group to its goal. The fields above `group` are set, as are `group`, `moves`
 * and `n_moves`. Returns 0, or -EBUSY: a call is under way.
 */
int group_runner_start(struct group_runner *runner);

#endif
