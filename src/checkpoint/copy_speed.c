/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Learns how long a suspension takes on this machine. A copy takes a time that is nearly
 * proportional to the memory: on an H200 0.50 s per GiB to the host at 7 GiB and 0.72 at 132, and
 * back 0.21 and 0.17. Machines differ (NUMA, memory speed, a VM), so each copy corrects the value
 * by a part of its error:
 *
 *     learned 0.70; 10 GiB in 4.0 s is 0.40: now 0.70 + 0.3 * (0.40 - 0.70) = 0.61
 */
#include "checkpoint/copy_speed.h"

#include <math.h>
#include <stdio.h>

#include "base/units.h"
#include "sharing/carry_cost.h"

/* H200, driver 580.159.04: 48 GiB in 32.0 s and back in 9.4 s. */
static const double DEFAULT_S_PER_GIB[COPY_WAYS] = {
    0.67, 0.20, CARRY_OUT_MS_PER_GIB / 1e3, CARRY_BACK_MS_PER_GIB / 1e3};

/* The part of a copy's error that corrects the value. Chosen: four copies make three quarters. */
static const double LEARN_PART = 0.3;

/* Chosen: a copy that differs more from the learned speed counts as four times that, or a quarter.
 * So one that was held up, or one that its process lies about, moves little for all users. */
static const double LEARN_TIMES = 4;

/* Fixed costs, 0.1 to 0.3 s on an H200, are under a tenth from here on. */
static const int64_t LEARN_MIN_BYTES = 4 * GIB;
/* The upper end of these costs. The ResNet-50 of carry_cost.h took 0.48 s to come back in all. */
static const int64_t FIXED_US[COPY_WAYS] = {300 * INT64_C(1000), 300 * INT64_C(1000),
    INT64_C(1000) * CARRY_OUT_FIXED_MS, 350 * INT64_C(1000)};

/* No copy was ever this slow or fast: 20 MiB/s to 100 GiB/s. */
static const double S_PER_GIB_MAX = 50, S_PER_GIB_MIN = 0.01;

/* Chosen: a copy beside a busy disk and eight others is still no stuck one. */
static const double LIMIT_FACTOR = 10;
/* Chosen: far above any small copy that was measured (docs/measured/checkpoint.md). */
static const int64_t LIMIT_MIN_US = 60 * INT64_C(1000000);

static const char *const names[COPY_WAYS] = {"to-host", "to-gpu", "carry-to-host", "carry-to-gpu"};

struct copy_speed copy_speed_default(void)
{
    struct copy_speed speed = {.learned = {0}};
    for (int way = 0; way < COPY_WAYS; way++)
        speed.s_per_gib[way] = DEFAULT_S_PER_GIB[way];
    return speed;
}

static double clamp_speed(double s_per_gib)
{
    return fmin(S_PER_GIB_MAX, fmax(S_PER_GIB_MIN, s_per_gib));
}

void copy_speed_learn(struct copy_speed *speed, enum copy_way way, int64_t bytes, int64_t us)
{
    if (bytes < LEARN_MIN_BYTES || us <= 0)
        return;
    double seen = clamp_speed((double)us / 1e6 / ((double)bytes / GIB));
    double known = speed->s_per_gib[way];
    seen = fmin(known * LEARN_TIMES, fmax(known / LEARN_TIMES, seen));
    speed->s_per_gib[way] += LEARN_PART * (seen - known);
    speed->learned[way]++;
}

int64_t copy_speed_expect_us(const struct copy_speed *speed, enum copy_way way, int64_t bytes)
{
    return FIXED_US[way] + (int64_t)(speed->s_per_gib[way] * 1e6 * ((double)bytes / GIB));
}

int64_t copy_speed_limit_us(const struct copy_speed *speed, enum copy_way way, int64_t bytes)
{
    return LIMIT_MIN_US + (int64_t)(LIMIT_FACTOR * (double)copy_speed_expect_us(speed, way, bytes));
}

size_t copy_speed_write(const struct copy_speed *speed, char *text, size_t size)
{
    size_t used = 0;
    for (int way = 0; way < COPY_WAYS; way++) {
        int n = snprintf(text + used, size - used, "%s %.4f %lld\n", names[way],
            speed->s_per_gib[way], (long long)speed->learned[way]);
        if (n < 0 || (size_t)n >= size - used)
            return 0;
        used += (size_t)n;
    }
    return used;
}

/* "NAME S_PER_GIB COUNT". */
static void read_line(struct copy_speed *speed, struct span line)
{
    char text[96], name[16], value[32], count[32];
    double s_per_gib;
    int64_t learned;
    if (!span_copy(line, text, sizeof text) ||
        sscanf(text, "%15s %31s %31s", name, value, count) != 3 ||
        parse_double(value, S_PER_GIB_MIN, S_PER_GIB_MAX, &s_per_gib) < 0 ||
        parse_int64(count, 0, INT64_MAX, &learned) < 0)
        return;
    for (int way = 0; way < COPY_WAYS; way++) {
        if (span_is(span_of(name), names[way])) {
            speed->s_per_gib[way] = s_per_gib;
            speed->learned[way] = learned;
        }
    }
}

struct copy_speed copy_speed_read(struct span text)
{
    struct copy_speed speed = copy_speed_default();
    struct span line;
    while (span_next_line(&text, &line))
        read_line(&speed, line);
    return speed;
}
