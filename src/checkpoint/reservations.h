/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Placeholders: GPU memory that is held for a suspended process until it is restored. After a
 * restore on a full GPU the process is lost. So the memory is taken first, which may fail without
 * harm, and freed in the moment of the restore.
 */
#ifndef COLLOC_CHECKPOINT_RESERVATIONS_H
#define COLLOC_CHECKPOINT_RESERVATIONS_H

#include "base/process.h"
#include "checkpoint/cuda_driver.h"

enum { RESERVATIONS_MAX = 256 }; /* of a machine; chosen: 16 suspended processes on 16 GPUs */

struct reservations {
    struct reservation {
        struct process_id process;
        int device;
        uint64_t handle;
    } list[RESERVATIONS_MAX];
    size_t count;
    bool has_context[HELPER_MOVES_MAX]; /* of devices whose memory could not be had without one */
};

/*
 * Takes memory of a GPU for a process.
 *   bytes: rounded up to 2 MiB
 * Returns CUDA's result; CUDA_ERROR_OUT_OF_MEMORY: so much is not free.
 */
int reservations_add(struct reservations *reservations, const struct cuda_driver *driver,
    struct process_id process, int device, int64_t bytes);

/* Frees the memory held for the process. Nothing may come between this and a restore: what another
 * program takes of that memory meanwhile is missing, and the process is lost. */
void reservations_drop(
    struct reservations *reservations, const struct cuda_driver *driver, struct process_id process);

/* Ends the contexts on GPUs where nothing is held any more. */
void reservations_end_contexts(struct reservations *reservations, const struct cuda_driver *driver);

#endif
