/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's count of processes that it killed for lack of memory. */
#ifndef COLLOC_EXEC_OOM_COUNTER_H
#define COLLOC_EXEC_OOM_COUNTER_H

#include <stdint.h>

/* Returns the count of this process's cgroup (v2) where that has one, else of the machine; -1 when
 * the kernel reports neither. */
int64_t oom_counter_read(void);

#endif
