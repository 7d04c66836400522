/* SPDX-License-Identifier: Apache-2.0 */
/* The GPU or MIG device of an NVML handle, for the length of one call. */
#ifndef COLLOC_EMULATOR_NVML_VIEW_H
#define COLLOC_EMULATOR_NVML_VIEW_H

#include "emulator/nvml_interface.h"
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
 * Enters the world for a handle.
 *
 * out:         the caller's pointer for results, which must not be NULL.
 * unsupported: the troubles (enum trouble) with which the GPU does not support the call.
 *
 * Returns NVML_SUCCESS, and view_close must follow; or NVML_ERROR_UNINITIALIZED, INVALID_ARGUMENT
 * (no handle, or `out`), GPU_IS_LOST or NOT_SUPPORTED.
 */
nvmlReturn_t view_open(
    nvmlDevice_t device, const void *out, unsigned unsupported, struct view *ret_view);
void view_close(struct view *view);

/* The same for calls that only a whole GPU supports: NVML_ERROR_NOT_SUPPORTED for a MIG device. */
nvmlReturn_t view_open_gpu(
    nvmlDevice_t device, const void *out, unsigned unsupported, struct view *ret_view);

/* The same for calls that only a MIG device supports. */
nvmlReturn_t view_open_instance(
    nvmlDevice_t device, const void *out, unsigned unsupported, struct view *ret_view);

/*
 * Opens a view, gives one number of the device, and closes the view.
 *
 * open:   one of the three above, which says what kinds of devices support the call
 * index:  passed to `number`: a link of the GPU, or the other GPU of a pair; 0 for others
 * number: reads the number in the open view
 *
 * Returns NVML_SUCCESS, or the error of `open`.
 */
nvmlReturn_t give_number(nvmlReturn_t (*open)(nvmlDevice_t, const void *, unsigned, struct view *),
    nvmlDevice_t device, unsigned index, unsigned *out,
    unsigned (*number)(const struct view *v, unsigned index));

/* Returns the world between nvmlInit and nvmlShutdown, otherwise NULL. */
struct world *session_world(void);

/* Returns the handle of a GPU (unit 0) or MIG device. */
nvmlDevice_t device_handle(struct seat seat);

/* Copies a string as NVML does. Returns NVML_SUCCESS, or NVML_ERROR_INSUFFICIENT_SIZE when `length`
 * is too small for all of it. */
nvmlReturn_t give_text(const char *text, char *buffer, unsigned length);

#endif
