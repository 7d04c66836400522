/* SPDX-License-Identifier: Apache-2.0 */
/* The CPUs near a task's GPUs. */
#ifndef COLLOC_EXEC_NEAR_CPUS_H
#define COLLOC_EXEC_NEAR_CPUS_H

#include <sched.h>
#include <stdint.h>

/*
 * Reads a list of CPUs.
 *
 * list:    "0-15,64-79", as cpuset.cpus takes it
 * ret_set: those below CPU_SETSIZE
 *
 * Returns 0; -EINVAL for another text, or one without such CPUs.
 */
int near_cpus_parse(const char *list, cpu_set_t *ret_set);

/*
 * Lets the calling process and its children run only on these CPUs, as far as they were allowed
 * before. The process may change that again. Nothing changes if these are fewer than the task
 * needs, or if none of them may be used.
 *
 * needed: CPUs; 0: not known
 *
 * Returns 0, -EINVAL for a text that is no list, or -errno.
 */
int near_cpus_bind(const char *list, int64_t needed);

#endif
