/* SPDX-License-Identifier: Apache-2.0 */
/* What comes in and what goes out: events for the core, and changes for Slurm. */
#include "slurm/controller_state.h"

enum { CHANGES_MAX = 256 }; /* of one update; chosen: slurmctld makes 100 to 1000 a second */

void controller_apply(struct slurm_controller *controller, struct event event)
{
    event.time_us = controller->now_us;
    if (core_apply(controller->core, &event) < 0)
        controller->is_broken = true;
}

struct slurm_change *controller_add_change(
    struct slurm_controller *controller, enum slurm_change_kind kind, uint32_t base, uint32_t index)
{
    struct slurm_change change = {.kind = kind, .job = base, .index = index};
    if (controller->n_changes >= CHANGES_MAX)
        return NULL;
    if (ARRAY_APPEND(
            controller->changes, controller->n_changes, controller->changes_capacity, change) < 0) {
        controller->is_broken = true;
        return NULL;
    }
    return &controller->changes[controller->n_changes - 1];
}
