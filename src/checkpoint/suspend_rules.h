/* SPDX-License-Identifier: Apache-2.0 */
/*
 * May a task be suspended, or moved? Decided beforehand, from facts, so that no process is locked
 * that the driver would refuse, or kill half-way. Pure.
 */
#ifndef COLLOC_CHECKPOINT_SUSPEND_RULES_H
#define COLLOC_CHECKPOINT_SUSPEND_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/reading.h"
#include "checkpoint/cuda_abi.h"

/* The known facts about a task and its machine. An unknown fact is no obstacle, except host memory
 * and NCCL: the driver itself refuses in the other cases, and the processes continue. */
struct suspend_facts {
    bool has_helper;          /* libcuda and a GPU exist */
    const char *driver_fault; /* otherwise why not; NULL: not known */
    int cuda_version;         /* of the driver, or CUDA_VERSION_UNKNOWN */
    bool may_hang_host; /* its kernel module does, when a resumed process ends (kernel_module.h) */
    bool is_move;       /* to other GPUs */
    bool same_kind;     /* of a move: the GPUs are of the same model */
    size_t n_gpus;      /* of the machine */
    size_t n_processes; /* of the task that use CUDA */
    bool has_too_many;  /* more than GROUP_PROCESSES_MAX use it */
    bool is_mps_client, is_mig;
    bool is_by_carrier; /* of a client of MPS: the carrier takes its memory away, and the driver
                           takes no part */
    bool has_32_bit;    /* a program of 32 bits uses CUDA */
    bool is_traced;     /* a debugger is attached */
    bool has_profiler;  /* Nsight or another injected tool */
    bool has_nccl;      /* NCCL is loaded, and may be used */
    bool may_have_nccl; /* it is not known whether it is loaded */
    bool counts_collectives;     /* in all processes: the ranks can be stopped at the same one */
    bool is_paused;              /* stopped or frozen: the driver would hang on it */
    bool uses_managed, uses_ipc; /* kinds of GPU memory, as its preloaded library reports them */
    struct reading gpu_bytes;    /* memory that the host has to hold */
    double pool_bytes;           /* of it, what host memory will hold that exists already */
    struct reading host_available_bytes; /* MemAvailable of /proc/meminfo */
    struct reading cgroup_left_bytes;    /* of the tightest limit above its processes */
    int64_t suspended_bytes;             /* of other tasks, on the host now */
    int64_t suspended_max_bytes;         /* the setting suspend-memory-max */
    int64_t kept_bytes; /* of what they leave of it, for other users (core/copy_share.h) */
};

enum suspend_refusal {
    SUSPEND_ALLOWED = 0,
    SUSPEND_NO_DRIVER,
    SUSPEND_DRIVER_TOO_OLD,
    SUSPEND_DRIVER_HANGS,
    SUSPEND_NO_CUDA,
    SUSPEND_TOO_MANY,
    SUSPEND_MPS,
    SUSPEND_MIG,
    SUSPEND_32_BIT,
    SUSPEND_TRACED,
    SUSPEND_PROFILER,
    SUSPEND_MANAGED_MEMORY,
    SUSPEND_CUDA_IPC,
    SUSPEND_NCCL,
    SUSPEND_NCCL_UNKNOWN,
    SUSPEND_PAUSED,
    SUSPEND_MEMORY_UNKNOWN,
    SUSPEND_OVER_MAX,
    SUSPEND_OVER_SHARE,
    SUSPEND_HOST_MEMORY,
    SUSPEND_CGROUP_MEMORY,
    SUSPEND_MOVE_ONE_GPU,
    SUSPEND_MOVE_TOO_OLD,
    SUSPEND_MOVE_OTHER_KIND,
    SUSPEND_REFUSALS
};

/* Do several processes communicate through NCCL, or may they? */
bool suspend_has_ranks(const struct suspend_facts *facts);

/* Does the memory leave by the carrier, and the contexts stay, as the driver refuses the processes?
 */
bool suspend_is_by_carrier_alone(const struct suspend_facts *facts);

/* The part of the host's memory that suspensions leave alone: 5 %, at least 2 GiB. */
int64_t suspend_host_reserve(int64_t available_bytes);

/* Returns why the task cannot be suspended (or moved), the first reason there is; or
 * SUSPEND_ALLOWED. */
enum suspend_refusal suspend_check(const struct suspend_facts *facts);

/* Is it for want of memory, which may be there later? */
bool suspend_refusal_is_memory(enum suspend_refusal refusal);

/* Writes the reason as a sentence for users, with what to do. Returns `text`. */
const char *suspend_refusal_write(
    enum suspend_refusal refusal, const struct suspend_facts *facts, char *text, size_t size);

#endif
