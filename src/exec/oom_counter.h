/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's own count of processes it killed for want of memory. */
#ifndef COLLOC_EXEC_OOM_COUNTER_H
#define COLLOC_EXEC_OOM_COUNTER_H

#include <stdint.h>

/* Of this process's cgroup (v2) where it has one that counts, else of the machine. -1 when the
 * kernel does not tell. */
int64_t oom_counter_read(void);

#endif
