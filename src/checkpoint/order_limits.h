/* SPDX-License-Identifier: Apache-2.0 */
/* How long the steps of a suspension may take: for collocd, and for the agent of a node. */
#ifndef COLLOC_CHECKPOINT_ORDER_LIMITS_H
#define COLLOC_CHECKPOINT_ORDER_LIMITS_H

#include <stdint.h>

#include "base/clock.h"
#include "base/units.h"

/* Chosen: inspecting reads a few files, in milliseconds. Some of them wait while a thread of the
 * process maps a file of a file system that does not answer: the orders of other tasks wait for
 * this limit, and not for that file system. */
static const int64_t INSPECT_LIMIT_US = 2 * SECOND_US;

/* Chosen: to load the driver can take seconds on a machine with many GPUs. */
static const int64_t LOAD_LIMIT_US = 30 * SECOND_US;

/*
 * The limit for all carriers of a task together. Chosen: as long as calls of the task may be in
 * flight, and 30 times what a copy takes.
 *
 * bytes: what the processes hold
 */
static inline int64_t carry_limit_us(double bytes)
{
    static const double LIMIT_US = 35 * SECOND_US, LIMIT_US_PER_GIB = 2 * SECOND_US;
    return (int64_t)(LIMIT_US + bytes / GIB * LIMIT_US_PER_GIB);
}

#endif
