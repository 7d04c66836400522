/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A probe measures how fast a promised task is alone on its GPUs, where that is not known: it was
 * never alone, and no earlier run of its command was. The tasks beside it are paused for two to
 * five seconds, at most the setting probe-share of their time.
 *
 *     t=0    promised task p and task a share a GPU; a step of p takes 60 ms
 *     t=250  a has run for a hundred times as long as p needs: 1 s and 25 steps, 2.5 s
 *     t=250  a is paused; from t=250.5 on its kernels have ended, and steps of p are counted
 *     t=252  25 steps were counted: p makes 28 a second alone, and a goes on
 *
 * A task that is paused for a probe goes on at a time that was decided with its pause, whatever
 * becomes of the promised task. So it does after a crash of the daemon, too.
 */
#ifndef COLLOC_CORE_PROBE_H
#define COLLOC_CORE_PROBE_H

#include "base/clock.h"

/* Chosen: where a step differs by 10 % from the others, the mean of 25 is known to 2 %. */
enum { PROBE_STEPS = 25 };

/* Chosen: a training has launched the kernels of some steps in advance, which end meanwhile. */
#define PROBE_SETTLE_US (500 * MS_US)

/* Chosen: the driver reads the steps in such periods. */
#define PROBE_PERIOD_US (250 * MS_US)

/* Chosen: the least time that is counted. With the half second before, a pause takes two seconds.
 * The single seconds of a training that waits for its host differ by 8 % from their mean, and a
 * probe of one second was 13 % off (docs/measured/promise.md). */
#define PROBE_MEASURE_US (1500 * MS_US)

/* No pause for a probe is longer. */
#define PROBE_MAX_US (5 * SECOND_US)

/* Chosen: a probe fails where the promised task makes no steps at that moment, in an evaluation
 * perhaps. Then it is repeated, but not without end. */
#define PROBE_AGAIN_US (60 * SECOND_US)
enum { PROBE_TRIES = 3 };

#endif
