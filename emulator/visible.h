/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA_VISIBLE_DEVICES, read as the CUDA runtime reads it. */
#ifndef COLLOC_EMULATOR_VISIBLE_H
#define COLLOC_EMULATOR_VISIBLE_H

#include "emulator/world.h"

/*
 * The units a process sees, in its own numbering, into `seats` (room for SEATS_MAX). `list` holds
 * indices, GPU UUIDs (or unique beginnings) and MIG UUIDs; NULL means all GPUs. An unknown or
 * repeated item hides itself and all after it. A GPU with MIG enabled stands for its first
 * instance, and behind an instance nothing more is seen. Returns the count.
 */
int visible_seats(const struct world *world, const char *list, struct seat *seats);

#endif
