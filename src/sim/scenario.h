/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A scenario: a story in a text file about GPUs and tasks, run through the core under the virtual
 * clock.
 *
 *     gpus 2x40GiB                          how many, and how large (one line each size; "mig
 * 3x10GiB" for instances) policy magm                           the default policy; then any of set
 * smact-max 0.8 | min-free 5GiB | margin 2GiB | window 90s | settle 10s | settle-max 60s |
 * recoveries 3 | tasks-per-gpu 4 | recovery-step 5GiB | slowdown-max 3 t=0 submit a takes=6GiB
 * smact=0.4 runs=100s    also: gpus=N rise=5s need=6GiB declared=6GiB pending exclusive policy=P
 * limit=60s held exits=1 deaf (ends 5 s after it is told to) sleeps=20s (before it takes memory)
 * unlaunchable mps auto says=0.4 (its SMACT) lasts=100s: what is known of it beforehand t=5 cancel
 * a | hold a | release a | estimate a 6GiB | why a (prints its state and why it waits) t=5 foreign
 * gpu0 20GiB | lost gpu0 | found gpu0 | silent gpu0 | blind gpu0 | nosmact gpu0 | noprocs gpu0 (the
 * driver lists no processes) | hides gpu0 (not ours, as from within a container) run 300s how long;
 * the default is until nothing is left to do, at most a day
 *
 * Pretend tasks take their memory evenly over `rise` (default 5 s) and end after `runs` of
 * execution, wherever they are: how sharing slows them is the simulator's matter. When a GPU is
 * full the task that asks for more dies of it. Every GPU is sampled once a second.
 */
#ifndef COLLOC_SIM_SCENARIO_H
#define COLLOC_SIM_SCENARIO_H

#include <stdio.h>

#include "base/fault.h"
#include "base/text.h"

/* Runs the story and prints its trace (sim/trace.h) to `out`. 0 or -errno with the line in the
 * fault. */
int scenario_run(struct span story, const char *file_name, FILE *out, struct fault *fault);

#endif
