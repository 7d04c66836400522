/* SPDX-License-Identifier: Apache-2.0 */
/* How long this machine takes to copy a process's GPU memory to the host and back: learned. */
#ifndef COLLOC_CHECKPOINT_COPY_SPEED_H
#define COLLOC_CHECKPOINT_COPY_SPEED_H

#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

/* By the driver's checkpoint; and by the carrier, before the driver's checkpoint of the rest. */
enum copy_way { COPY_TO_HOST, COPY_TO_GPU, CARRY_TO_HOST, CARRY_TO_GPU, COPY_WAYS };

struct copy_speed {
    double s_per_gib[COPY_WAYS];
    int64_t learned[COPY_WAYS]; /* from so many copies; 0: the value is the default */
};

/* The values of an H200 (docs/measured/). */
struct copy_speed copy_speed_default(void);

/* Takes a copy's time into account. Small copies, which the fixed costs rule, teach nothing. */
void copy_speed_learn(struct copy_speed *speed, enum copy_way way, int64_t bytes, int64_t us);

/* Returns how long a copy of so many bytes will take, in microseconds. */
int64_t copy_speed_expect_us(const struct copy_speed *speed, enum copy_way way, int64_t bytes);

/* Returns after how many microseconds a copy counts as stuck: far beyond what is expected. */
int64_t copy_speed_limit_us(const struct copy_speed *speed, enum copy_way way, int64_t bytes);

/* Writes the speed as text, for a file. Returns its length. */
size_t copy_speed_write(const struct copy_speed *speed, char *text, size_t size);

/* Reads such a text; any bytes are fine. A missing or invalid value is the default. */
struct copy_speed copy_speed_read(struct span text);

#endif
