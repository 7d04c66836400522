/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which GPU is drained: the one that will be free first, by the time limits and expected times of
 * its tasks; where these are not known, the one with fewest tasks; of equal ones that with less
 * memory in use. Tasks that hold no memory and compute nothing do not count.
 *
 * A choice compares each GPU with several others, so what is expected of it is computed once.
 * Whether it may be drained at all takes longer to find out than whether it comes before another.
 */
#include "core/pass/drain_order.h"

#include "core/task.h"
#include "core/view.h"

/* ---- what is expected of a GPU ---- */

/* When the resident has ended, by its time limit and the time that it is expected to take.
 * START_UNKNOWN: neither is known, or it takes longer than expected. */
static int64_t expected_end_us(const struct resident *resident, int64_t now_us)
{
    struct reading takes_us = resident->expect.time_us;
    int64_t end_us = resident->ends_us ? resident->ends_us : START_UNKNOWN;
    if (takes_us.valid && (double)resident->since_us + takes_us.value < (double)end_us)
        end_us = resident->since_us + (int64_t)takes_us.value;
    return end_us > now_us ? end_us : START_UNKNOWN;
}

static bool has_free(double free_bytes, double wanted_bytes)
{
    return wanted_bytes > 0 && free_bytes >= wanted_bytes;
}

/* Is the GPU free for the task when all residents have left that end until then? */
static bool is_free_at(
    const struct gpu_view *gpu, double wanted_bytes, int64_t now_us, int64_t at_us)
{
    double free_bytes = reading_assume(gpu_view_free_bytes(gpu), 0);
    bool is_any_left = false;
    for (int i = 0; i < gpu->n_residents; i++) {
        const struct resident *resident = &gpu->residents[i];
        if (resident_is_unused(resident, now_us))
            continue;
        if (expected_end_us(resident, now_us) <= at_us)
            free_bytes += reading_assume(resident->mem_used_bytes, 0);
        else
            is_any_left = true;
    }
    return !is_any_left || has_free(free_bytes, wanted_bytes);
}

/* Counts the users. The GPU is free when the first of its residents has ended that leaves it free
 * for the task, as far as can be expected; mostly no end is known. */
static struct drain_outlook expect_end(
    const struct gpu_view *gpu, double wanted_bytes, int64_t now_us)
{
    struct drain_outlook outlook = {.free_us = START_UNKNOWN};
    for (int i = 0; i < gpu->n_residents; i++) {
        const struct resident *resident = &gpu->residents[i];
        outlook.n_users += !resident_is_unused(resident, now_us);
        if (!resident->ends_us && !resident->expect.time_us.valid)
            continue;
        int64_t end_us = expected_end_us(resident, now_us);
        if (end_us < outlook.free_us && is_free_at(gpu, wanted_bytes, now_us, end_us))
            outlook.free_us = end_us;
    }
    return outlook;
}

void drain_expect(const struct gpu_view *gpus, int n, double wanted_bytes, int64_t now_us,
    struct drain_outlook *ret_outlooks)
{
    for (int i = 0; i < n; i++) {
        const struct gpu_view *gpu = &gpus[i];
        struct drain_outlook outlook = expect_end(gpu, wanted_bytes, now_us);
        if (outlook.n_users == 0 ||
            (wanted_bytes > 0 &&
                has_free(reading_assume(gpu_view_free_bytes(gpu), 0), wanted_bytes)))
            outlook.free_us = now_us;
        ret_outlooks[i] = outlook;
    }
}

bool drain_is_sooner(const void *a, const void *b, const void *context)
{
    return drain_comes_before(context, *(const int *)a, *(const int *)b);
}
