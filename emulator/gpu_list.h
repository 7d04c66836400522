/* SPDX-License-Identifier: Apache-2.0 */
/* The list of GPUs that `colloc-emulator create --gpus` takes. */
#ifndef COLLOC_EMULATOR_GPU_LIST_H
#define COLLOC_EMULATOR_GPU_LIST_H

#include "emulator/world.h"

/*
 * Fills world->gpus and world->gpu_count.
 *
 * kinds: what KIND may be; copied.
 * text:  a comma-separated list of [COUNTx]KIND[:PROFILE+PROFILE...]. With profiles
 *        (sharing/mig_division.h) the GPU has MIG enabled.
 *
 * Returns 0, or -EINVAL with the part that is wrong, and why, in the fault.
 */
int gpu_list_parse(
    const struct gpu_kinds *kinds, const char *text, struct world *world, struct fault *fault);

/*
 * Makes a MIG GPU instance without compute instances.
 *
 * profile: its place in the list of the GPU's kind.
 * start:   its first memory slice.
 *
 * Returns its number, or -1 when it must not begin there or slices of it are in use.
 */
int gpu_add_instance(struct gpu *gpu, int profile, int start);

/*
 * Makes a compute instance in a GPU instance.
 *
 * index: of the GPU in the world.
 *
 * Returns its unit, or NULL when the GPU instance has fewer slices left.
 */
struct unit *gpu_add_compute(struct gpu *gpu, int index, int instance, int slices);

#endif
