/* SPDX-License-Identifier: Apache-2.0 */
/* The names and the costs of giving way: suspension.h describes the idea. */
#include "core/suspension.h"

#include <math.h>

#include "base/clock.h"
#include "base/units.h"
#include "sharing/carry_cost.h"

const char *yield_reason_name(enum yield_reason reason)
{
    static const char *const names[YIELD_REASONS] = {
        [YIELD_TO_USER] = "user",
        [YIELD_TO_MEMORY] = "memory",
        [YIELD_TO_TASK] = "task",
        [YIELD_TO_SLOT] = "slot",
        [YIELD_TO_ROOM] = "room",
        [YIELD_GPU_FAILING] = "gpu-failing",
        [YIELD_UNUSED] = "unused",
        [YIELD_TO_SERVICE] = "service",
        [YIELD_TO_PROMISE] = "promise",
        [YIELD_TO_PROBE] = "probe",
        [YIELD_TO_SPEED] = "speed",
    };
    return names[reason];
}

const char *suspension_failure_name(enum suspension_failure failure)
{
    static const char *const names[SUSPENSION_FAILURES] = {
        [SUSPENSION_REFUSED] = "refused",
        [SUSPENSION_TIMED_OUT] = "timed-out",
        [SUSPENSION_NO_MEMORY] = "no-memory",
        [SUSPENSION_NOT_NOW] = "not-now",
        [SUSPENSION_LOST] = "lost",
    };
    return names[failure];
}

const char *suspension_way_name(enum suspension_way way)
{
    static const char *const names[SUSPENSION_WAYS] = {[SUSPENSION_BY_DRIVER] = "driver",
        [SUSPENSION_BY_CARRIER] = "carrier",
        [SUSPENSION_TO_NEIGHBOUR] = "neighbour"};
    return names[way];
}

const struct suspension_cost *suspension_costs_of(
    const struct suspension_costs *costs, enum suspension_way way)
{
    if (way == SUSPENSION_TO_NEIGHBOUR)
        return &costs->neighbour;
    return way == SUSPENSION_BY_CARRIER ? &costs->carrier : &costs->driver;
}

/* Fitted to the measurements of suspension.h: never under by more than a second up to 48 GiB. */
struct suspension_cost suspension_cost_by_driver(void)
{
    return (struct suspension_cost){.fixed_us = 100 * MS_US,
        .suspend_us_per_gib = 690 * MS_US,
        .resume_us_per_gib = 200 * MS_US};
}

/* The context, which goes by NVIDIA's driver, and the copy of all else at PCIe speed. */
struct suspension_cost suspension_cost_by_carrier(void)
{
    return (struct suspension_cost){.fixed_us = CARRY_OUT_FIXED_MS * MS_US,
        .suspend_us_per_gib = CARRY_OUT_MS_PER_GIB * MS_US,
        .resume_us_per_gib = CARRY_BACK_MS_PER_GIB * MS_US};
}

struct suspension_cost suspension_cost_of_client(const struct suspension_cost *cost)
{
    struct suspension_cost of_client = *cost;
    of_client.fixed_us = 100 * MS_US;
    return of_client;
}

struct suspension_cost suspension_cost_to_neighbour(void)
{
    return (struct suspension_cost){.fixed_us = NEAR_FIXED_MS * MS_US,
        .suspend_us_per_gib = NEAR_OUT_MS_PER_GIB * MS_US,
        .resume_us_per_gib = NEAR_BACK_MS_PER_GIB * MS_US};
}

static int64_t time_us(int64_t fixed_us, int64_t us_per_gib, double bytes)
{
    return fixed_us + llround((double)us_per_gib * bytes / (double)GIB);
}

int64_t suspension_time_us(const struct suspension_cost *cost, double bytes)
{
    return time_us(cost->fixed_us, cost->suspend_us_per_gib, bytes);
}

int64_t resumption_time_us(const struct suspension_cost *cost, double bytes)
{
    return time_us(cost->fixed_us, cost->resume_us_per_gib, bytes);
}

int64_t suspension_stop_us(const struct suspension_cost *cost, double bytes)
{
    return suspension_time_us(cost, bytes) + resumption_time_us(cost, bytes);
}
