/* SPDX-License-Identifier: Apache-2.0 */
/* What a controller is created with (slurm_controller.h). */
#ifndef COLLOC_SLURM_SLURM_CONTROLLER_OPTIONS_H
#define COLLOC_SLURM_SLURM_CONTROLLER_OPTIONS_H

#include <stdint.h>

#include "core/settings.h"

struct slurm_controller_options {
    struct core_settings settings;
    const char *intake_partition, *run_partition; /* borrowed */
    int64_t gpu_memory_bytes;                     /* of a GPU without a report of an agent */
};

#endif
