/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Moves a resident along residence.h, driven by the readings of its memory: a placed process shows
 * its CUDA context, then takes its memory, and has settled when it has not grown for a while.
 */
#include "core/state/resident_memory.h"

#include "base/units.h"

/* A process with less has little beside its CUDA context. Measured contexts take 287 to 667 MiB
 * (docs/measured/h200.md). */
#define CONTEXT_BYTES (768 * MIB)
/* Growth below both is ignored. Chosen: an allocator's small segments are no growth. */
#define GROWTH_BYTES (64 * MIB)
#define GROWTH_SHARE 0.02

/* A resident that took this part of its requirement is past its context. Chosen: frameworks take
 * the rest in a few large pieces. */
#define NEED_SHARE 0.5

static bool is_beyond_context(const struct resident *resident, double used)
{
    double enough = resident->need_bytes.valid ? NEED_SHARE * resident->need_bytes.value
                                               : (double)CONTEXT_BYTES;
    return used >= enough;
}

static enum residence after_absence(enum residence residence)
{
    return residence_has_settled(residence) ? RESIDENCE_ABSENT_SETTLED : RESIDENCE_ABSENT;
}

/* The first memory is seen. */
static void on_appearance(struct resident *resident, int64_t now_us)
{
    if (resident->residence == RESIDENCE_PLACED_SETTLED) {
        resident->residence = RESIDENCE_CONTEXT_SETTLED;
        return;
    }
    if (resident->residence != RESIDENCE_PLACED)
        resident->held_us = now_us;
    resident->residence = RESIDENCE_CONTEXT;
}

static enum residence after_settling(enum residence residence)
{
    switch (residence) {
    case RESIDENCE_PLACED:
        return RESIDENCE_PLACED_SETTLED;
    case RESIDENCE_ABSENT:
        return RESIDENCE_ABSENT_SETTLED;
    case RESIDENCE_CONTEXT:
        return RESIDENCE_CONTEXT_SETTLED;
    default:
        return RESIDENCE_SETTLED;
    }
}

static bool has_waited_enough(
    const struct core_settings *settings, const struct resident *resident, int64_t now_us)
{
    bool is_quiet = now_us - resident->grew_us >= settings->settle_us;
    return (resident->residence == RESIDENCE_RISING && is_quiet) ||
           now_us - resident->held_us >= settings->settle_max_us;
}

bool resident_follow_memory(
    const struct core_settings *settings, struct resident *resident, int64_t now_us)
{
    struct reading used = resident->mem_used_bytes;
    bool rises = false;
    if (used.valid && !residence_has_appeared(resident->residence)) {
        if (used.value > 0)
            on_appearance(resident, now_us);
        else
            resident->residence = after_absence(resident->residence);
    }
    if (resident->residence == RESIDENCE_CONTEXT_SETTLED && resident->need_bytes.valid &&
        used.valid && is_beyond_context(resident, used.value)) {
        resident->residence = RESIDENCE_CONTEXT;
        resident->level_bytes = used.value;
        resident->held_us = resident->grew_us = now_us;
    }
    if (residence_has_settled(resident->residence))
        return false;
    if (used.valid &&
        used.value > resident->level_bytes * (1 + GROWTH_SHARE) + (double)GROWTH_BYTES) {
        resident->level_bytes = used.value;
        resident->grew_us = now_us;
    }
    if (resident->residence == RESIDENCE_CONTEXT && used.valid &&
        is_beyond_context(resident, used.value)) {
        resident->residence = RESIDENCE_RISING;
        rises = true;
    }
    if (has_waited_enough(settings, resident, now_us))
        resident->residence = after_settling(resident->residence);
    return rises;
}
