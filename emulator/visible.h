/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA_VISIBLE_DEVICES, read as the CUDA runtime reads it. */
#ifndef COLLOC_EMULATOR_VISIBLE_H
#define COLLOC_EMULATOR_VISIBLE_H

#include "emulator/world.h"

/*
 * Lists the units that a process can use, in the order in which it numbers them.
 *
 * list:  indices, GPU UUIDs (or the beginnings of such) and MIG UUIDs; NULL: all GPUs. An unknown
 *        or repeated item hides itself and all after it. A GPU with MIG enabled means its first
 *        instance; items after an instance are hidden.
 * seats: at least SEATS_MAX.
 *
 * Returns how many units there are.
 */
int visible_seats(const struct world *world, const char *list, struct seat *seats);

#endif
