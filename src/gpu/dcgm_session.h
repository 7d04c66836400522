/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What colloc-dcgm asks of DCGM: a connection to the engine that runs on this machine, or one
 * embedded in this process; the numbers of GPUs and MIG instances; watched fields and their values.
 * Calls block, and may hang.
 */
#ifndef COLLOC_GPU_DCGM_SESSION_H
#define COLLOC_GPU_DCGM_SESSION_H

#include <stddef.h>

#include "base/reading.h"
#include "gpu/dcgm_library.h"

struct dcgm_session {
    struct dcgm_library library;
    dcgm_abi_handle handle;
    const char *engine; /* which it is, for the user */
};

/* Loads libdcgm and connects to nv-hostengine, or starts an embedded engine where none runs.
 * Returns 0 or -errno with a fault. */
int dcgm_session_open(struct dcgm_session *session, struct fault *fault);

enum { DCGM_NOT_LISTED = 1 };

/*
 * Finds a GPU or a GPU instance.
 *
 * card_uuid:    of the GPU, or of the instance's card
 * gpu_instance: NVML's number; -1: the GPU itself
 *
 * Returns 0 with DCGM's number of it, DCGM_NOT_LISTED, or -errno with a fault.
 */
int dcgm_session_find(struct dcgm_session *session, const char *card_uuid, int gpu_instance,
    struct fault *fault, struct dcgm_abi_entity *ret_entity);

/* Has the engine measure the fields of all entities, at this period. Returns 0 or -errno with a
 * fault. */
int dcgm_session_watch(struct dcgm_session *session, const struct dcgm_abi_entity *entities,
    size_t entity_count, const unsigned short *fields, size_t field_count, int64_t period_us,
    struct fault *fault);

/*
 * Reads the last value of each field of one entity.
 *
 * oldest_us:    since 1970; older values are not known
 * ret_readings: in DCGM's units, at the fields' positions
 *
 * Returns 0 or -errno with a fault: the engine is gone.
 */
int dcgm_session_read(struct dcgm_session *session, const struct dcgm_abi_entity *entity,
    const unsigned short *fields, size_t field_count, int64_t oldest_us, struct fault *fault,
    struct reading *ret_readings);

#endif
