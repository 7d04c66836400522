/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replays a compiled step (model/compiled_step.h). The caller holds the arguments. A step takes a
 * buffer for each output that overwrites no argument, and one block for its temporaries, which it
 * gives back. Then the outputs take the place of the arguments that they replace:
 *
 *     parameters = step(parameters, batch)
 *
 * The new parameters live beside the old ones until the assignment. After a few steps the pool is
 * as large as it gets.
 *
 * The pool is not empty before the first step, and never shrinks: there the compiler tried kernels.
 * Example: arguments of 11 MiB and temporaries of 554 MiB. A convolution's slowest kernels wanted a
 * workspace of 1,367 MiB, so that the pool has 4,126 MiB, and the steps need no more of them.
 */
#include "estimator/physics/compiled_replay.h"

#include <errno.h>
#include <stdlib.h>

#include "estimator/physics/allocator.h"

enum { STEPS = 3, NO_BLOCK = -1 }; /* chosen: the second may still find no block that fits */

struct player {
    struct allocator pool;
    int *arguments, *outputs; /* blocks */
    int error;                /* the first */
};

static int take_block(struct player *player, int64_t bytes)
{
    int handle = bytes > 0 && player->error == 0 ? allocator_take(&player->pool, bytes) : NO_BLOCK;
    if (handle < NO_BLOCK) {
        player->error = handle;
        return NO_BLOCK;
    }
    return handle;
}

static void play_step(struct player *player, const struct compiled_step *step)
{
    for (size_t i = 0; i < step->n_outputs; i++) {
        int block = take_block(player, step->outputs[i].bytes);
        if (step->outputs[i].replaces == COMPILED_NO_ARGUMENT)
            allocator_release(&player->pool, player->outputs[i]); /* of the step before */
        player->outputs[i] = block;
    }
    allocator_release(&player->pool, take_block(player, step->temp_bytes));
    for (size_t i = 0; i < step->n_outputs; i++) {
        if (step->outputs[i].replaces == COMPILED_NO_ARGUMENT)
            continue;
        int *argument = &player->arguments[step->outputs[i].replaces];
        allocator_release(&player->pool, *argument);
        *argument = player->outputs[i];
    }
}

/* The compiler may lay arguments out with more bytes than their elements have. */
static int64_t padding_of(const struct compiled_step *step, double held)
{
    double more = step->argument_bytes.known ? (double)step->argument_bytes.value - held : 0;
    return more > 0 ? (int64_t)more : 0;
}

static double sum_arguments(const struct compiled_step *step)
{
    double sum = 0;
    for (size_t i = 0; i < step->n_arguments; i++)
        sum += (double)step->arguments[i];
    return sum;
}

static double sum_outputs(const struct compiled_step *step)
{
    double sum = 0;
    for (size_t i = 0; i < step->n_outputs; i++)
        sum += (double)step->outputs[i].bytes;
    return sum;
}

/* Takes a block that is a whole segment. */
static int take_segment(struct player *player, int64_t bytes)
{
    int r = bytes > 0 && player->error == 0 ? allocator_reserve(&player->pool, bytes) : 0;
    if (r < 0)
        player->error = r;
    return take_block(player, bytes);
}

static void add_free(struct player *player, int64_t bytes)
{
    if (bytes > 0 && player->error == 0)
        player->error = allocator_reserve(&player->pool, bytes);
}

/* Tests whether the pool's state is known with the arguments in it. */
static bool is_pool_known(const struct compiled_step *step)
{
    const struct compiled_pool *pool = &step->compiling;
    return pool->pool_bytes.known && pool->largest_free_bytes.known && pool->in_use_bytes.known &&
           (double)pool->in_use_bytes.value >= sum_arguments(step);
}

/* The arguments, in the pool as the compiler left it. How the rest of it is divided is not known:
 * taken for the largest block and one other. */
static void restore_pool(struct player *player, const struct compiled_step *step)
{
    const struct compiled_pool *pool = &step->compiling;
    for (size_t i = 0; i < step->n_arguments; i++)
        player->arguments[i] = take_segment(player, step->arguments[i]);
    (void)take_segment(player, pool->in_use_bytes.value - player->pool.active);
    int64_t left = pool->pool_bytes.value - player->pool.reserved;
    int64_t largest = left < pool->largest_free_bytes.value ? left : pool->largest_free_bytes.value;
    add_free(player, largest);
    add_free(player, left - largest);
}

/* The arguments in a pool that grows; then what the compiler tried, as one block. */
static void fill_pool(struct player *player, const struct compiled_step *step, int64_t padding)
{
    const struct compiled_pool *pool = &step->compiling;
    for (size_t i = 0; i < step->n_arguments; i++)
        player->arguments[i] = take_block(player, step->arguments[i]);
    (void)take_block(player, padding);
    if (pool->peak_bytes.known && pool->in_use_bytes.known)
        allocator_release(
            &player->pool, take_block(player, pool->peak_bytes.value - pool->in_use_bytes.value));
}

static void play_steps(
    struct player *player, const struct compiled_step *step, struct footprint *ret_footprint)
{
    double held = sum_arguments(step);
    int64_t padding = padding_of(step, held);
    if (is_pool_known(step))
        restore_pool(player, step);
    else
        fill_pool(player, step, padding);
    for (size_t i = 0; i < step->n_outputs; i++)
        player->outputs[i] = NO_BLOCK;
    for (int i = 0; i < STEPS; i++)
        play_step(player, step);
    ret_footprint->reserved = (double)player->pool.reserved;
    ret_footprint->active = (double)player->pool.active_peak;
    ret_footprint->next_region = is_pool_known(step) ? (double)player->pool.region : 0;
    ret_footprint->live = held + (double)padding + sum_outputs(step) + (double)step->temp_bytes;
}

int compiled_replay(
    const struct compiled_step *step, struct fault *fault, struct footprint *ret_footprint)
{
    struct player player = {
        .arguments = malloc((step->n_arguments + 1) * sizeof *player.arguments),
        .outputs = malloc((step->n_outputs + 1) * sizeof *player.outputs),
    };
    *ret_footprint = (struct footprint){0};
    allocator_init_bfc(&player.pool);
    if (player.arguments && player.outputs)
        play_steps(&player, step, ret_footprint);
    else
        player.error = -ENOMEM;
    allocator_fini(&player.pool);
    free(player.arguments);
    free(player.outputs);
    if (player.error == -ERANGE)
        return fault_set(fault, ERANGE, "a compiled step that takes more than any device has");
    return player.error < 0 ? fault_set(fault, ENOMEM, "out of memory") : 0;
}
