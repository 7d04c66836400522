/* SPDX-License-Identifier: Apache-2.0 */
/* What one of several equal tasks does to a GPU while it is alone there, from what all of them do
 * together: the activity of a running task, before any run of its command has ended. */
#ifndef COLLOC_CORE_EQUAL_ACTIVITY_H
#define COLLOC_CORE_EQUAL_ACTIVITY_H

#include "core/view.h"

/*
 * The SM activity of each resident of the GPU, if all are equal.
 *
 * constants: of the interference model; NULL: the built-in ones
 *
 * Not valid where the samples do not show it: not more than RISEN_SAMPLES_ENOUGH since a task came,
 * went or took memory; a resident that does not compute; processes of others, or a GPU that shares
 * its memory with other places; a full GPU (ACTIVITY_FULL), on which more activity shows nothing.
 */
struct reading equal_activity(
    const struct gpu_view *gpu, const struct interference_constants *constants);

#endif
