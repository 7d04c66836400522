/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's count of processes that it killed for lack of memory. */
#ifndef COLLOC_EXEC_OOM_COUNTER_H
#define COLLOC_EXEC_OOM_COUNTER_H

#include "base/reading.h"

/* Returns the count of this process's cgroup (v2) if that has one, else the machine's; not valid
 * if the kernel reports neither. */
struct reading oom_counter_read(void);

#endif
