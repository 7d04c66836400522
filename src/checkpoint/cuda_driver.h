/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libcuda, loaded at run time. Only colloc-checkpoint uses it: its calls may hang, and a process
 * that has initialised CUDA cannot fork any more.
 */
#ifndef COLLOC_CHECKPOINT_CUDA_DRIVER_H
#define COLLOC_CHECKPOINT_CUDA_DRIVER_H

#include <stddef.h>

#include "base/fault.h"
#include "checkpoint/cuda_abi.h"
#include "checkpoint/helper_line.h"

typedef struct CUctx_st *cuda_context;

/* The functions by the names of NVIDIA's reference; of the checkpoint functions all are there, or
 * all are NULL. */
struct cuda_driver {
    void *library;
    int version; /* CUDA's, as 13000 */
    int n_gpus;
    char gpu[HELPER_MOVES_MAX][GPU_UUID_SIZE];
    struct cuda_uuid uuid[HELPER_MOVES_MAX];

    int (*init)(unsigned flags);
    int (*driver_version)(int *version);
    int (*error_name)(int error, const char **name);
    int (*device_count)(int *count);
    int (*device_get)(int *device, int ordinal);
    int (*device_uuid)(struct cuda_uuid *uuid, int device);
    int (*context_retain)(cuda_context *context, int device);
    int (*context_release)(int device);
    int (*context_set)(cuda_context context);
    int (*memory_alloc)(uint64_t *at, size_t bytes);
    int (*memory_free)(uint64_t at);
    int (*copy_to_gpu)(uint64_t to, const void *from, size_t bytes);
    int (*copy_to_host)(void *to, uint64_t from, size_t bytes);
    int (*memory_create)(
        uint64_t *handle, size_t bytes, const struct cuda_allocation *, unsigned long long flags);
    int (*memory_release)(uint64_t handle);
    int (*memory_export)(void *descriptor, uint64_t handle, int type, unsigned long long flags);

    int (*process_state)(int pid, int *state);
    int (*process_lock)(int pid, struct cuda_lock_args *);
    int (*process_checkpoint)(int pid, struct cuda_plain_args *);
    int (*process_restore)(int pid, struct cuda_restore_args *);
    int (*process_unlock)(int pid, struct cuda_plain_args *);
};

/*
 * Loads libcuda.so.1, initialises it and lists the GPUs.
 *
 * Returns 0; -ENOENT (no libcuda), -ENODEV (no GPU, or the driver does not work) or -ENOSYS (a
 * function that it needs is missing), with a fault.
 */
int cuda_driver_open(struct cuda_driver *driver, struct fault *fault);

/* Can this driver suspend processes? */
bool cuda_driver_can_suspend(const struct cuda_driver *driver);

/* Returns the device with this UUID, or -1. */
int cuda_driver_find(const struct cuda_driver *driver, const char *uuid);

/* Returns CUDA's name of a result, or "CUDA error N" written to `buffer`. */
const char *cuda_driver_error(
    const struct cuda_driver *driver, int result, char *buffer, size_t size);

#endif
