/* SPDX-License-Identifier: Apache-2.0 */
/* How long this machine takes to copy a process's GPU memory away and back, by GPU: learned. */
#ifndef COLLOC_CHECKPOINT_COPY_SPEED_H
#define COLLOC_CHECKPOINT_COPY_SPEED_H

#include <stddef.h>
#include <stdint.h>

#include "base/text.h"
#include "checkpoint/helper_line.h"

/* By the driver's checkpoint; and by the carrier, to the host before the driver's checkpoint of the
 * rest, and to a neighbour GPU. */
enum copy_way {
    COPY_TO_HOST,
    COPY_TO_GPU,
    CARRY_TO_HOST,
    CARRY_TO_GPU,
    CARRY_TO_NEIGHBOUR,
    CARRY_FROM_NEIGHBOUR,
    COPY_WAYS
};

/* Chosen: twice as many as there are on any server. */
enum { COPY_SPEED_GPUS = 32, COPY_SPEED_TEXT_SIZE = (COPY_SPEED_GPUS + 1) * COPY_WAYS * 96 };

struct copy_rates {
    double s_per_gib[COPY_WAYS];
    int64_t learned[COPY_WAYS]; /* from how many copies; 0: the value is not learned */
};

struct copy_speed {
    struct copy_rates machine; /* for GPUs whose copies by a way were not seen yet */
    struct copy_speed_gpu {
        char uuid[GPU_UUID_SIZE];
        struct copy_rates rates;
    } gpus[COPY_SPEED_GPUS]; /* the one learned last is the last */
    size_t n_gpus;
};

/* The values of an H200 (docs/measured/). */
struct copy_speed copy_speed_default(void);

/*
 * Takes a copy's time into account. Small copies, which the fixed costs rule, teach nothing. Of
 * more GPUs than COPY_SPEED_GPUS, the one of which nothing was learned for longest is forgotten.
 *
 * uuid: of the GPU that the memory left or came back to; NULL: it was of several
 */
void copy_speed_learn(
    struct copy_speed *speed, const char *uuid, enum copy_way way, int64_t bytes, int64_t us);

/* Was a copy of this GPU, by this way, seen? */
bool copy_speed_is_known(const struct copy_speed *speed, const char *uuid, enum copy_way way);

/* Returns how many microseconds a copy of `bytes` will take. `uuid`: NULL: of any GPU. */
int64_t copy_speed_expect_us(
    const struct copy_speed *speed, const char *uuid, enum copy_way way, int64_t bytes);

/* Returns after how many microseconds a copy counts as stuck: far beyond what is expected. */
int64_t copy_speed_limit_us(
    const struct copy_speed *speed, const char *uuid, enum copy_way way, int64_t bytes);

/* Writes the speed as text, for a file, of at most COPY_SPEED_TEXT_SIZE. Returns its length. */
size_t copy_speed_write(const struct copy_speed *speed, char *text, size_t size);

/* Reads such a text; any bytes are fine. A missing or invalid value is the default. */
struct copy_speed copy_speed_read(struct span text);

#endif
