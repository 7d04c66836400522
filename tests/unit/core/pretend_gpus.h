/* SPDX-License-Identifier: Apache-2.0 */
/* Pretend GPUs for tests of the core: GPUs, tasks and samples in one line each, and a check of the
 * whole state. */
#ifndef COLLOC_TESTS_CORE_PRETEND_GPUS_H
#define COLLOC_TESTS_CORE_PRETEND_GPUS_H

#include <stdio.h>

#include "base/clock.h"
#include "base/units.h"
#include "core/core.h"

/* A core with that many 40 GiB GPUs and the default settings. */
struct core *world_core(const struct policy *policy, int n_gpus);

/* A core with MIG compute instances that share 40 GiB, and some that have as much of their own, all
 * sampled at 1 us and idle. */
struct core *world_instances_core(const struct policy *policy, int n_sharing, int n_others);

/* One step each. Return what core_step returns. A sample's memory is divided evenly among the tasks
 * on the GPU. */
int world_submit(struct core *core, int64_t time_us, uint64_t task, struct task_request request);
int world_sample(
    struct core *core, int64_t time_us, int gpu, double used_gib, double smact, double foreign);
int world_input(struct core *core, int64_t time_us, enum event_kind kind, uint64_t task);
int world_exit(struct core *core, int64_t time_us, uint64_t task, enum failure_class failure);

enum task_state world_state(const struct core *core, uint64_t task);
int world_count(const struct core *core, enum effect_kind kind,
    uint64_t task); /* such effects of the last step */

/* Fails the test if two parts of the state contradict each other. */
void world_check(const struct core *core);

/* Returns all that a replay must restore, as text: tasks, queues in order, reservations, the list
 * of GPUs. */
char *world_digest(const struct core *core);

/* Returns the same of the view: the samples and what follows from them. */
char *world_digest_view(const struct core *core);

#endif
