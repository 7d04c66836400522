/* SPDX-License-Identifier: Apache-2.0 */
/* How near the GPUs of a server are to each other, and to its CPUs. */
#ifndef COLLOC_GPU_TOPOLOGY_H
#define COLLOC_GPU_TOPOLOGY_H

#include "gpu/source.h"

/*
 * Reads the distances of a card to the cards before it, and the CPUs near it (struct gpu_info). A
 * driver that does not report them leaves the texts empty.
 *
 * at: the card's position in the source, whose cards before it are complete
 */
void topology_read(struct gpu_source *source, size_t at);

/* Returns the distance of two cards, or GPU_DISTANCE_UNKNOWN. */
char topology_distance(const struct nvml *nvml, nvml_device a, nvml_device b);

#endif
