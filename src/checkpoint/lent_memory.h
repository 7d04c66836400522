/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of a GPU that is lent to a process which cannot name that GPU (docs/carrier.md). It is
 * created here, without a context, and goes as a descriptor through the daemon to the process,
 * which maps it for its own GPU:
 *
 *     colloc-checkpoint           daemon                   process
 *     create, export, release
 *     descriptor               -> descriptor            -> import, map, close
 *
 * Contract: this program keeps nothing of it. The memory belongs to the last that holds its
 * descriptor or has it mapped, and is free when that has ended.
 */
#ifndef COLLOC_CHECKPOINT_LENT_MEMORY_H
#define COLLOC_CHECKPOINT_LENT_MEMORY_H

#include "checkpoint/cuda_driver.h"

/* The descriptor of the helper over which descriptors go to the daemon: a Unix socket. */
enum { LENT_MEMORY_SOCKET = 3 };

/*
 * Takes memory of a GPU and sends its descriptor.
 *
 * bytes: rounded up to 2 MiB
 *
 * Returns CUDA's result, CUDA_ERROR_OUT_OF_MEMORY: so much is not free; or -errno of the socket.
 */
int lent_memory_send(const struct cuda_driver *driver, int device, int64_t bytes);

#endif
