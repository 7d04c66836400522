/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GPUs that somebody holds and nobody uses. Unknown is not unused: a look that tells no activity,
 * or that comes too late after the one before, begins the time anew.
 */
#include "base/log.h"
#include "base/units.h"
#include "daemon/daemon.h"

#define LOOKS_TOO_LATE 3 /* periods */

/* A kernel of one thread shows as nothing in SMACT, but in GRACT and utilisation it does. */
#define ACTIVE_LEAST 0.005

static bool is_idle(const struct gpu_sample *seen)
{
    const struct reading *tell[] = {&seen->smact, &seen->gract, &seen->utilisation};
    bool known = false;
    for (size_t i = 0; i < sizeof tell / sizeof *tell; i++) {
        if (tell[i]->valid && tell[i]->value > ACTIVE_LEAST)
            return false;
        known |= tell[i]->valid;
    }
    return known;
}

struct reading unused_us(
    const struct daemon *daemon, const struct gpu_state *state, const struct resident *resident)
{
    const struct gpu_sample *seen = &state->sample;
    if (!seen->smact.valid && !seen->utilisation.valid)
        return READING_NONE;
    if (!state->is_idle)
        return reading_of(0);
    int64_t held_us = driver_monotonic_us(daemon->driver, resident->since_us);
    int64_t since_us = held_us > state->idle_since_us ? held_us : state->idle_since_us;
    return reading_of((double)(seen->at_us > since_us ? seen->at_us - since_us : 0));
}

bool unused_for_long(const struct daemon *daemon, struct reading unused)
{
    return unused.valid && unused.value >= (double)daemon->config.unused_after_us;
}

/* Once for each time that it is so. */
static void warn(const struct daemon *daemon, struct gpu_state *state)
{
    const struct gpu_view *gpu = &core_view(daemon->core)->gpus[state->view];
    bool any = false;
    for (int i = 0; i < gpu->n_residents; i++) {
        struct reading unused = unused_us(daemon, state, &gpu->residents[i]);
        if (!unused_for_long(daemon, unused))
            continue;
        char text[32];
        any = true;
        if (!state->unused_said)
            log_warning("task %llu has GPU %s and has not used it for %s",
                (unsigned long long)gpu->residents[i].task, gpu->id.label,
                format_elapsed((int64_t)unused.value, text, sizeof text));
    }
    state->unused_said = any;
}

void unused_watch(struct daemon *daemon, struct gpu_state *state)
{
    const struct gpu_sample *seen = &state->sample;
    int64_t late_us = LOOKS_TOO_LATE * daemon->config.sample_period_us;
    bool is_late = seen->at_us - state->looked_us > late_us, was_idle = state->is_idle && !is_late;
    state->looked_us = seen->at_us;
    state->is_idle = is_idle(seen);
    if (state->is_idle && !was_idle)
        state->idle_since_us = seen->at_us;
    if (state->view >= 0)
        warn(daemon, state);
}
