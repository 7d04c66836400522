/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The arguments of the CUDA driver's checkpoint functions, declared from the CUDA Driver API
 * reference (docs.nvidia.com/cuda/cuda-driver-api, "CUDA Checkpointing", 12.8 to 13.4), so that
 * neither a build nor a start needs CUDA.
 *
 * Contract: every argument is zeroed before it is filled. The reserved bytes have got meanings
 * since (13.3, 13.4), and zero means the old behaviour.
 */
#ifndef COLLOC_CHECKPOINT_CUDA_ABI_H
#define COLLOC_CHECKPOINT_CUDA_ABI_H

#include <stdint.h>

/* Results that decisions depend on: CUresult of the reference. */
enum cuda_result {
    CUDA_SUCCESS = 0,
    CUDA_ERROR_INVALID_VALUE = 1,
    CUDA_ERROR_OUT_OF_MEMORY = 2,
    CUDA_ERROR_NOT_INITIALIZED = 3,
    CUDA_ERROR_INVALID_CONTEXT = 201,
    CUDA_ERROR_OPERATING_SYSTEM = 304, /* also: no such process */
    CUDA_ERROR_ILLEGAL_STATE = 401,
    CUDA_ERROR_NOT_READY = 600, /* a lock's time limit */
    CUDA_ERROR_NOT_SUPPORTED = 801,
};

/* CUDA versions of drivers, as cuDriverGetVersion reports them. */
enum {
    CUDA_VERSION_UNKNOWN = 0,
    CUDA_SUSPENDS = 12080, /* driver 570: the checkpoint functions */
    CUDA_MOVES = 13000,    /* driver 580: restore on other GPUs */
};

struct cuda_uuid {
    unsigned char bytes[16];
};

struct cuda_lock_args {
    unsigned timeout_ms; /* 0: no limit */
    unsigned reserved0;
    uint64_t reserved[7];
};

struct cuda_plain_args { /* of checkpoint and unlock */
    uint64_t reserved[8];
};

struct cuda_gpu_pair {
    struct cuda_uuid from, to;
};

struct cuda_restore_args {
    struct cuda_gpu_pair *pairs;
    unsigned n_pairs;
    unsigned padding;
    uint64_t reserved[6];
};

_Static_assert(sizeof(struct cuda_lock_args) == 64, "as CUcheckpointLockArgs");
_Static_assert(sizeof(struct cuda_plain_args) == 64, "as CUcheckpointCheckpointArgs");
_Static_assert(sizeof(struct cuda_gpu_pair) == 32, "as CUcheckpointGpuPair");
_Static_assert(sizeof(struct cuda_restore_args) == 64, "as CUcheckpointRestoreArgs");

/* CUmemAllocationProp: memory of a device that is not mapped. */
struct cuda_allocation {
    int type; /* 1: pinned */
    int handle_types;
    int location_type; /* 1: a device */
    int device;
    void *meta_data;
    unsigned char flags[8];
};

/* Of handle_types: a descriptor. */
enum { CUDA_HANDLE_DESCRIPTOR = 1 };

_Static_assert(sizeof(struct cuda_allocation) == 32, "as CUmemAllocationProp");

#endif
