/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel module of the NVIDIA driver, as /proc/driver/nvidia/version describes it. */
#ifndef COLLOC_CHECKPOINT_KERNEL_MODULE_H
#define COLLOC_CHECKPOINT_KERNEL_MODULE_H

#include <stdbool.h>

#include "base/text.h"

#define KERNEL_MODULE_VERSION_FILE "/proc/driver/nvidia/version"

/*
 * May the host hang when a process ends that was resumed under this kernel module?
 *
 * text: of the version file, any bytes
 *
 * Returns false for a module that is not known.
 */
bool kernel_module_may_hang(struct span text);

#endif
