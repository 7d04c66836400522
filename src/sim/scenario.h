/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A scenario is a text file that describes GPUs, tasks and what happens to them. It runs through
 * the core under the virtual clock, and its trace shows each input and decision.
 *
 *     gpus 2x40GiB                 GPUs and their memory; one line for each size
 *     gpus 1x40GiB:A100@700        the same with their kind and its speed
 *     mig 3x10GiB                  the same for MIG instances
 *     mig-shared 3x20GiB           MIG instances that share 20 GiB (1c.3g.20gb)
 *     node 2x40GiB                 the same on one more server
 *     policy magm                  the default policy (magm without this line)
 *     set smact-max 0.8            a setting of the core
 *     t=0 submit a takes=6GiB smact=0.4 runs=100s
 *     t=5 cancel a                 an input about a task
 *     t=5 lost gpu0                a change of a GPU
 *     t=5 set preempt yes          a setting that is changed, after all other lines of settings
 *     run 300s                     how long; default: until all is done, at most a day
 *     # a comment, also at the end of a line
 *
 * Settings: smact-max 0.8, min-free 5GiB, margin 2GiB, window 90s, settle 10s, settle-max 60s,
 * recoveries 3, recovery-step 5GiB, tasks-per-gpu 4, slowdown-max 3, can-suspend no, can-pause no,
 * carries-mps no, starting-max 0, preload no, backfill yes, preempt no, look-ahead no,
 * make-room no, slot-length 600s, suspend-unused-after 0s, service-hold 60s.
 *
 * What a task of `submit` does: takes=6GiB (memory), rise=5s (how long it takes to take it evenly),
 * sleeps=20s (before that), smact=0.4, runs=100s, exits=1 (exit code), deaf (ends 5 s after the
 * signal), unlaunchable, unsuspendable, unanswered (its suspension never ends), without-library
 * (--preload=no), unhooked (its processes run without the library all the same), uncarried (the
 * carrier cannot take one of its two processes off the GPU), ranks (of NCCL: their contexts stay),
 * context-refusals=2 (how often the driver refuses to take its context off its GPU), latency=20ms
 * (p99 of a service that is alone on its GPU).
 *
 * What it requests: user=1000 (whose task it is), gpus=2, nodes=2 (the same GPUs of two servers),
 * need=6GiB (estimated), declared=6GiB, pending (the estimate follows), exclusive, slot, mps, auto,
 * policy=NAME, limit=60s, held, says=0.4 (its SMACT), busy=0.5 (its GRACT), lasts=100s (its time),
 * priority=high, begin=30s (not before t=30), once (not run again), service, p99=50ms (its latency
 * target), after=ok:a,any:b.
 *
 * Inputs about a task: cancel a, hold a, release a, suspend a, resume a, idle a 600s (it has not
 * used its GPUs), wake a (it calls CUDA again), move a gpu1, memory-wait a 6GiB, the same and "again"
 * (the driver has refused the try), memory-wait-end a, estimate a 6GiB, why a (prints its state and
 * why it waits).
 *
 * Changes of a GPU: foreign gpu0 20GiB (memory of external processes; a task on its way back that
 * misses it leaves again if it is carried, else it is lost), lost, faulty, silent (no samples),
 * blind (no activity), nosmact (utilisation only), noprocs (the driver lists no processes), hides
 * (it does not list ours, as within a container), found (none of these any more).
 *
 * A task runs for `runs` whatever runs beside it: how sharing slows tasks is the simulator's part.
 * Only the latency of a service grows, with the SMACT of the tasks that compute beside it: 0.5
 * makes it 1.5 times as long. It is reported once a second.
 * When the memory of a GPU is full, its youngest task dies of it; with preload, its allocation
 * waits for what the task still takes. Of instances that share their memory, a sample has the
 * memory in use of all, and their mean SMACT. Each GPU is sampled once a second.
 */
#ifndef COLLOC_SIM_SCENARIO_H
#define COLLOC_SIM_SCENARIO_H

#include <stdio.h>

#include "base/fault.h"
#include "base/text.h"

/*
 * Runs a scenario and prints its trace, in the lines of sim/event_line.h.
 *
 * text:      of the scenario, any bytes.
 * file_name: for faults.
 *
 * Returns 0; -EINVAL with the line in the fault; -ENOMEM.
 */
int scenario_run(struct span text, const char *file_name, FILE *out, struct fault *fault);

#endif
