/* SPDX-License-Identifier: Apache-2.0 */
/* What stands behind an NVML handle, for the length of one call. */
#ifndef COLLOC_EMULATOR_NVML_VIEW_H
#define COLLOC_EMULATOR_NVML_VIEW_H

#include "emulator/nvml.h"
#include "emulator/world.h"

struct nvmlDevice_st {
    struct seat seat;
};

struct view {
    struct world *world;
    struct seat seat;
    struct gpu *gpu;
    struct unit *unit;
    const struct gpu_kind *kind;
};

/*
 * Enters the world for a handle; view_close leaves it. Fails (and nothing is to be closed) when
 * NVML is not initialised, the handle or the out-pointer `out` is none, the GPU is lost, or it has
 * one of the troubles in `unsupported`.
 */
nvmlReturn_t view_open(
    nvmlDevice_t device, const void *out, unsigned unsupported, struct view *ret_view);
void view_close(struct view *view);

/* The same, for what only a whole GPU answers: NOT_SUPPORTED for a MIG device. */
nvmlReturn_t view_open_gpu(
    nvmlDevice_t device, const void *out, unsigned unsupported, struct view *ret_view);

/* The world between nvmlInit and nvmlShutdown, else NULL. */
struct world *session_world(void);

nvmlDevice_t device_handle(struct seat seat);

/* As NVML hands out strings: all of it, or INSUFFICIENT_SIZE. */
nvmlReturn_t give_text(const char *text, char *buffer, unsigned length);

#endif
