/* SPDX-License-Identifier: Apache-2.0 */
/* A pretend machine room for tests of the core: GPUs, tasks and samples in one line each, and a
 * checker of the whole state. */
#ifndef COLLOC_TESTS_CORE_WORLD_H
#define COLLOC_TESTS_CORE_WORLD_H

#include <stdio.h>

#include "base/clock.h"
#include "base/units.h"
#include "core/core.h"

/* A core with that many 40 GiB GPUs and the default settings. */
struct core *world_core(const struct policy *policy, int n_gpus);

/* One step each; what core_step returns. A sample's memory is shared evenly by the tasks there. */
int world_submit(struct core *core, int64_t time_us, uint64_t task, struct task_request request);
int world_sample(
    struct core *core, int64_t time_us, int gpu, double used_gib, double smact, double foreign);
int world_input(struct core *core, int64_t time_us, enum event_kind kind, uint64_t task);
int world_exit(struct core *core, int64_t time_us, uint64_t task, enum failure_class failure);

enum task_state world_state(const struct core *core, uint64_t task);
int world_count(const struct core *core, enum effect_kind kind,
    uint64_t task); /* such effects of the last step */

/* Fails the test unless all of the state fits together. */
void world_check(const struct core *core);

/* All that a log must bring back, as text: tasks, queues in order, reservations, the list of GPUs.
 */
char *world_digest(const struct core *core);

/* The same for the view: what samples say and what follows from it. */
char *world_digest_view(const struct core *core);

#endif
