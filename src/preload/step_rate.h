/* SPDX-License-Identifier: Apache-2.0 */
/* The speed of a process in steps a second, from what its page shows at each poll. Pure. */
#ifndef COLLOC_PRELOAD_STEP_RATE_H
#define COLLOC_PRELOAD_STEP_RATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/reading.h"
#include "preload/step_page.h"

enum { STEP_RATE_POINTS = 8 };

/* What a page showed at one moment. Each field was read once: the process may write anything. */
struct step_reading {
    uint64_t count, timed_us, marked;
    uint32_t unit, source;
};

/* All zero: nothing was seen. */
struct step_rate {
    struct step_point {
        int64_t at_us;
        uint64_t count, timed_us;
    } points[STEP_RATE_POINTS]; /* the oldest first */
    int n;
    uint32_t unit;
    int64_t moved_us; /* when the count last rose; 0: never */
};

struct step_reading step_reading_of(struct preload_page *page);

/*
 * Notes what a page shows. Values that no training can have are noted as a new beginning: the speed
 * is unknown then.
 *
 * now_us: of a clock that never goes back
 *
 * ret_timed_us: what the steps since the last time took
 *
 * Returns their number.
 */
uint64_t step_rate_note(struct step_rate *rate, const struct step_reading *reading, int64_t now_us,
    uint64_t *ret_timed_us);

/* Has there been no step for so long that the speed is unknown? `step_us`: what one took. */
bool step_rate_is_silent(double silent_us, double step_us);

/* Returns the steps a second of the last half minute, or of the last steps where these take longer;
 * not valid: unknown. */
struct reading step_rate_per_s(const struct step_rate *rate, int64_t now_us);

#endif
