/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Learns how long a suspension takes on this machine. A copy takes a time that is nearly
 * proportional to the memory: on an H200 0.50 s per GiB to the host at 7 GiB and 0.72 at 132, and
 * back 0.21 and 0.17. Machines differ (NUMA, memory speed, a VM), so each copy corrects the value
 * by a part of its error:
 *
 *     learned 0.70; 10 GiB in 4.0 s is 0.40: now 0.70 + 0.3 * (0.40 - 0.70) = 0.61
 *
 * So do the GPUs of one machine (the generation of their PCIe, their NUMA node). Each has its own
 * values, which begin with the machine's, the mean of its GPUs. A file has the machine's first:
 *
 *     carry-to-host 0.0612 7
 *     GPU-8f... carry-to-host 0.1410 2
 */
#include "checkpoint/copy_speed.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "sharing/carry_cost.h"

/* H200, driver 580.159.04: 48 GiB in 32.0 s and back in 9.4 s. */
static const double DEFAULT_S_PER_GIB[COPY_WAYS] = {0.67, 0.20, CARRY_OUT_MS_PER_GIB / 1e3,
    CARRY_BACK_MS_PER_GIB / 1e3, NEAR_OUT_MS_PER_GIB / 1e3, NEAR_BACK_MS_PER_GIB / 1e3};

/* The part of a copy's error that corrects the value. Chosen: four copies make three quarters. */
static const double LEARN_PART = 0.3;

/* Chosen: a copy that differs more from the learned speed counts as four times that, or a quarter.
 * So one that was held up, or one that its process lies about, moves little for all users. */
static const double LEARN_TIMES = 4;

/* Chosen: more copies than any machine makes. */
static const int64_t LEARNED_MAX = INT64_C(1000000000000);

/* Fixed costs, 0.1 to 0.3 s on an H200, are under a tenth from here on. */
static const int64_t LEARN_MIN_BYTES = 4 * GIB;
/* The upper end of these costs. The ResNet-50 of carry_cost.h took 0.48 s to come back in all. */
static const int64_t FIXED_US[COPY_WAYS] = {300 * INT64_C(1000), 300 * INT64_C(1000),
    INT64_C(1000) * CARRY_OUT_FIXED_MS, 350 * INT64_C(1000), INT64_C(1000) * NEAR_FIXED_MS,
    INT64_C(1000) * NEAR_FIXED_MS};

/* No copy was ever this slow or fast: 20 MiB/s to 1 TiB/s. */
static const double S_PER_GIB_MAX = 50, S_PER_GIB_MIN = 0.001;

/* Chosen: a copy beside a busy disk and eight others is still no stuck one. */
static const double LIMIT_FACTOR = 10;
/* Chosen: far above any small copy that was measured (docs/measured/checkpoint.md). */
static const int64_t LIMIT_MIN_US = 60 * INT64_C(1000000);

static const char *const names[COPY_WAYS] = {"to-host", "to-gpu", "carry-to-host", "carry-to-gpu",
    "carry-to-neighbour", "carry-from-neighbour"};

struct copy_speed copy_speed_default(void)
{
    struct copy_speed speed = {.n_gpus = 0};
    for (int way = 0; way < COPY_WAYS; way++)
        speed.machine.s_per_gib[way] = DEFAULT_S_PER_GIB[way];
    return speed;
}

/* ---- GPUs ---- */

/* Returns the rates of the GPU; NULL: there are none. */
static const struct copy_rates *find_rates(const struct copy_speed *speed, const char *uuid)
{
    for (size_t i = 0; i < speed->n_gpus && uuid; i++)
        if (strcmp(speed->gpus[i].uuid, uuid) == 0)
            return &speed->gpus[i].rates;
    return NULL;
}

/* Returns those of the GPU, which becomes the last. */
static struct copy_rates *take_rates(struct copy_speed *speed, const char *uuid)
{
    const struct copy_rates *known = find_rates(speed, uuid);
    struct copy_speed_gpu gpu = {.rates = known ? *known : (struct copy_rates){.learned = {0}}};
    size_t n = 0;
    snprintf(gpu.uuid, sizeof gpu.uuid, "%s", uuid);
    for (size_t i = !known && speed->n_gpus == COPY_SPEED_GPUS; i < speed->n_gpus; i++)
        if (strcmp(speed->gpus[i].uuid, uuid) != 0)
            speed->gpus[n++] = speed->gpus[i];
    speed->gpus[n] = gpu;
    speed->n_gpus = n + 1;
    return &speed->gpus[n].rates;
}

bool copy_speed_is_known(const struct copy_speed *speed, const char *uuid, enum copy_way way)
{
    const struct copy_rates *rates = find_rates(speed, uuid);
    return rates && rates->learned[way] > 0;
}

static double rate_of(const struct copy_speed *speed, const char *uuid, enum copy_way way)
{
    const struct copy_rates *rates = find_rates(speed, uuid);
    return (rates && rates->learned[way] ? rates : &speed->machine)->s_per_gib[way];
}

/* ---- learning ---- */

static double clamp_speed(double s_per_gib)
{
    return fmin(S_PER_GIB_MAX, fmax(S_PER_GIB_MIN, s_per_gib));
}

static void learn_rate(struct copy_rates *rates, enum copy_way way, double known, double seen)
{
    seen = fmin(known * LEARN_TIMES, fmax(known / LEARN_TIMES, clamp_speed(seen)));
    rates->s_per_gib[way] = known + LEARN_PART * (seen - known);
    rates->learned[way]++;
}

static double mean_of_gpus(const struct copy_speed *speed, enum copy_way way)
{
    double sum = 0;
    int n = 0;
    for (size_t i = 0; i < speed->n_gpus; i++) {
        const struct copy_rates *rates = &speed->gpus[i].rates;
        sum += rates->learned[way] ? rates->s_per_gib[way] : 0;
        n += rates->learned[way] > 0;
    }
    return sum / n;
}

void copy_speed_learn(
    struct copy_speed *speed, const char *uuid, enum copy_way way, int64_t bytes, int64_t us)
{
    struct copy_rates *machine = &speed->machine;
    if (bytes < LEARN_MIN_BYTES || us <= 0)
        return;
    double seen = (double)us / 1e6 / ((double)bytes / GIB), known = rate_of(speed, uuid, way);
    if (!uuid) {
        learn_rate(machine, way, known, seen);
        return;
    }
    learn_rate(take_rates(speed, uuid), way, known, seen);
    machine->s_per_gib[way] = mean_of_gpus(speed, way);
    machine->learned[way]++;
}

int64_t copy_speed_expect_us(
    const struct copy_speed *speed, const char *uuid, enum copy_way way, int64_t bytes)
{
    double s_per_gib = rate_of(speed, uuid, way);
    return FIXED_US[way] + (int64_t)(s_per_gib * 1e6 * ((double)bytes / GIB));
}

int64_t copy_speed_limit_us(
    const struct copy_speed *speed, const char *uuid, enum copy_way way, int64_t bytes)
{
    int64_t expected_us = copy_speed_expect_us(speed, uuid, way, bytes);
    return LIMIT_MIN_US + (int64_t)(LIMIT_FACTOR * (double)expected_us);
}

/* ---- as text ---- */

/* `uuid`: of a GPU, of which only what was learned is written; "": of the machine. Returns the
 * length of the text so far; `size` or more: it is too long. */
static size_t write_rates(
    const struct copy_rates *rates, const char *uuid, char *text, size_t size, size_t used)
{
    for (int way = 0; way < COPY_WAYS && used < size; way++) {
        if (*uuid && !rates->learned[way])
            continue;
        int n = snprintf(text + used, size - used, "%s%s%s %.4f %lld\n", uuid, *uuid ? " " : "",
            names[way], rates->s_per_gib[way], (long long)rates->learned[way]);
        used = n < 0 ? size : used + (size_t)n;
    }
    return used;
}

size_t copy_speed_write(const struct copy_speed *speed, char *text, size_t size)
{
    size_t used = write_rates(&speed->machine, "", text, size, 0);
    for (size_t i = 0; i < speed->n_gpus; i++)
        used = write_rates(&speed->gpus[i].rates, speed->gpus[i].uuid, text, size, used);
    return used < size ? used : 0;
}

/* "[UUID] NAME S_PER_GIB COUNT". */
static void read_line(struct copy_speed *speed, struct span line)
{
    char text[128], words[4][GPU_UUID_SIZE];
    double s_per_gib;
    int64_t learned;
    if (!span_copy(line, text, sizeof text))
        return;
    int n = sscanf(text, "%40s %40s %40s %40s", words[0], words[1], words[2], words[3]);
    if (n < 3)
        return;
    const char *name = words[n - 3], *value = words[n - 2], *count = words[n - 1];
    if (parse_double(value, S_PER_GIB_MIN, S_PER_GIB_MAX, &s_per_gib) < 0 ||
        parse_int64(count, n == 4, LEARNED_MAX, &learned) < 0)
        return;
    for (int way = 0; way < COPY_WAYS; way++) {
        if (strcmp(name, names[way]) != 0)
            continue;
        struct copy_rates *rates = n == 4 ? take_rates(speed, words[0]) : &speed->machine;
        rates->s_per_gib[way] = s_per_gib;
        rates->learned[way] = learned;
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
