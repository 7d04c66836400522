/* SPDX-License-Identifier: Apache-2.0 */
/* GPUs as `colloc-emulator create --gpus` takes them. */
#ifndef COLLOC_EMULATOR_SPEC_H
#define COLLOC_EMULATOR_SPEC_H

#include "emulator/world.h"

/*
 * A list by commas of [COUNTx]KIND[:PROFILE+PROFILE...]; with profiles the GPU has MIG enabled.
 * Fills world->gpus and world->gpu_count. -EINVAL with the part that is wrong, and why, in the
 * fault.
 */
int spec_parse(
    const struct gpu_kinds *kinds, const char *text, struct world *world, struct fault *fault);

/*
 * Puts an instance of the profile at that memory slice. Its unit, or NULL when none may lie there,
 * or one lies there.
 */
struct unit *spec_add_instance(struct gpu *gpu, int index, int profile, int start);

#endif
