/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules, in the order in which they are of use to a reader: what is never possible on this
 * machine, what is not possible for this task, what is not possible now. Each comes from a
 * measurement on H200s with driver 580.159.04 (docs/suspend.md) or from NVIDIA's documentation of
 * cuda-checkpoint.
 */
#include "checkpoint/suspend_rules.h"

#include <math.h>
#include <stdio.h>

#include "base/units.h"
#include "checkpoint/process_group.h"

_Static_assert(GROUP_PROCESSES_MAX == 64, "the number in SUSPEND_TOO_MANY's sentence");

/* Chosen: for page cache, the daemon and other users' programs. */
static const double RESERVE_PART = 0.05;
/* Chosen: for the same on a small machine. */
static const int64_t RESERVE_MIN_BYTES = 2 * GIB;

int64_t suspend_host_reserve(int64_t available_bytes)
{
    int64_t part = (int64_t)(RESERVE_PART * (double)available_bytes);
    return part > RESERVE_MIN_BYTES ? part : RESERVE_MIN_BYTES;
}

static bool is_older(const struct suspend_facts *facts, int version)
{
    return facts->cuda_version != CUDA_VERSION_UNKNOWN && facts->cuda_version < version;
}

static enum suspend_refusal check_machine(const struct suspend_facts *facts)
{
    if (!facts->has_helper)
        return SUSPEND_NO_DRIVER;
    if (is_older(facts, CUDA_SUSPENDS))
        return SUSPEND_DRIVER_TOO_OLD;
    if (facts->may_hang_host)
        return SUSPEND_DRIVER_HANGS;
    if (!facts->is_move)
        return SUSPEND_ALLOWED;
    if (facts->n_gpus < 2)
        return SUSPEND_MOVE_ONE_GPU;
    if (is_older(facts, CUDA_MOVES))
        return SUSPEND_MOVE_TOO_OLD;
    return facts->same_kind ? SUSPEND_ALLOWED : SUSPEND_MOVE_OTHER_KIND;
}

bool suspend_has_ranks(const struct suspend_facts *facts)
{
    return (facts->has_nccl || facts->may_have_nccl) && facts->n_processes > 1;
}

bool suspend_is_by_carrier_alone(const struct suspend_facts *facts)
{
    bool are_ranks = suspend_has_ranks(facts) && facts->counts_collectives;
    return (facts->is_mps_client || are_ranks) && facts->is_by_carrier && !facts->is_mig;
}

static enum suspend_refusal refuse_ranks(const struct suspend_facts *facts)
{
    return facts->has_nccl ? SUSPEND_NCCL : SUSPEND_NCCL_UNKNOWN;
}

/* What the driver does not touch it cannot refuse: the carrier has its own rules, which it checks
 * itself (docs/carrier.md). */
static enum suspend_refusal check_carried(const struct suspend_facts *facts)
{
    if (facts->is_move)
        return facts->is_mps_client ? SUSPEND_MPS : SUSPEND_NCCL;
    if (!facts->n_processes)
        return SUSPEND_NO_CUDA;
    if (facts->has_too_many)
        return SUSPEND_TOO_MANY;
    if (suspend_has_ranks(facts) && !facts->counts_collectives)
        return refuse_ranks(facts); /* one would wait at the gate for the other */
    return facts->is_paused ? SUSPEND_PAUSED : SUSPEND_ALLOWED;
}

static enum suspend_refusal check_task(const struct suspend_facts *facts)
{
    if (facts->is_mps_client)
        return SUSPEND_MPS;
    if (facts->is_mig)
        return SUSPEND_MIG;
    if (!facts->n_processes)
        return SUSPEND_NO_CUDA;
    if (facts->has_too_many)
        return SUSPEND_TOO_MANY;
    if (facts->has_32_bit)
        return SUSPEND_32_BIT;
    if (facts->is_traced)
        return SUSPEND_TRACED;
    if (facts->has_profiler)
        return SUSPEND_PROFILER;
    if (facts->uses_managed)
        return SUSPEND_MANAGED_MEMORY;
    if (facts->uses_ipc)
        return SUSPEND_CUDA_IPC;
    if (suspend_has_ranks(facts))
        return refuse_ranks(facts);
    return facts->is_paused ? SUSPEND_PAUSED : SUSPEND_ALLOWED;
}

/* What host memory is wanted for beside that which exists already. */
static double own_bytes(const struct suspend_facts *facts)
{
    return fmax(0, facts->gpu_bytes.value - facts->pool_bytes);
}

/* Unknown is never "enough": a cgroup without a limit has an unlimited rest, not an unknown one. */
static enum suspend_refusal check_host_memory(const struct suspend_facts *facts)
{
    if (!facts->gpu_bytes.valid || !facts->host_available_bytes.valid ||
        !facts->cgroup_left_bytes.valid)
        return SUSPEND_MEMORY_UNKNOWN;
    double wanted = facts->gpu_bytes.value, available = facts->host_available_bytes.value;
    if (wanted + (double)facts->suspended_bytes > (double)facts->suspended_max_bytes)
        return SUSPEND_OVER_MAX;
    if (wanted + (double)(facts->suspended_bytes + facts->kept_bytes) >
        (double)facts->suspended_max_bytes)
        return SUSPEND_OVER_SHARE;
    double own = own_bytes(facts);
    if (own + (double)suspend_host_reserve((int64_t)available) > available)
        return SUSPEND_HOST_MEMORY;
    return own > facts->cgroup_left_bytes.value ? SUSPEND_CGROUP_MEMORY : SUSPEND_ALLOWED;
}

enum suspend_refusal suspend_check(const struct suspend_facts *facts)
{
    bool is_carried = suspend_is_by_carrier_alone(facts);
    enum suspend_refusal refusal = is_carried ? check_carried(facts) : check_machine(facts);
    if (refusal == SUSPEND_ALLOWED && !is_carried)
        refusal = check_task(facts);
    return refusal == SUSPEND_ALLOWED ? check_host_memory(facts) : refusal;
}

bool suspend_refusal_is_memory(enum suspend_refusal refusal)
{
    return refusal == SUSPEND_OVER_MAX || refusal == SUSPEND_OVER_SHARE ||
           refusal == SUSPEND_HOST_MEMORY || refusal == SUSPEND_CGROUP_MEMORY ||
           refusal == SUSPEND_MEMORY_UNKNOWN;
}

static const char *const refusals[SUSPEND_REFUSALS] = {
    [SUSPEND_ALLOWED] = "",
    [SUSPEND_NO_DRIVER] = "collocd cannot use the NVIDIA driver; its log says why",
    [SUSPEND_DRIVER_TOO_OLD] =
        "this NVIDIA driver cannot suspend processes: driver 570 or newer is needed",
    [SUSPEND_DRIVER_HANGS] =
        "with this driver's open kernel module the host can hang when a resumed process ends: use "
        "the proprietary kernel module or a driver before 595, or set suspend-any-driver",
    [SUSPEND_NO_CUDA] = "no process of the task uses CUDA now",
    [SUSPEND_TOO_MANY] =
        "more than 64 processes of the task have GPU memory: colloc suspends at most 64 together",
    [SUSPEND_MPS] = "the task shares its GPU through MPS, and the driver cannot suspend "
                    "MPS clients: it can be paused",
    [SUSPEND_MIG] = "the task runs on a MIG instance, which the driver cannot suspend: it "
                    "can be paused",
    [SUSPEND_32_BIT] = "a program of the task has 32 bits: the driver suspends only "
                       "programs of 64 bits",
    [SUSPEND_TRACED] = "a debugger or tracer is attached to a process of the task: "
                       "detach it first",
    [SUSPEND_PROFILER] = "a profiler is attached to a process of the task: the "
                         "driver cannot suspend it before the profiler ends",
    [SUSPEND_MANAGED_MEMORY] =
        "the task uses managed memory (cudaMallocManaged, paged optimizers), which the driver "
        "cannot suspend",
    [SUSPEND_CUDA_IPC] = "processes of the task share GPU memory (CUDA IPC), which "
                         "the driver cannot suspend",
    [SUSPEND_NCCL] = "several processes of the task communicate through NCCL; the driver "
                     "can take them off their GPUs, but not put them back",
    [SUSPEND_NCCL_UNKNOWN] =
        "the programs of its several processes cannot be read (/proc/PID/maps), so they may "
        "communicate through NCCL, and the driver could not put them back",
    [SUSPEND_PAUSED] = "the task is paused: resume it first",
    [SUSPEND_MEMORY_UNKNOWN] =
        "it is not known how much memory the task holds or the host has free",
    [SUSPEND_OVER_MAX] =
        "suspended tasks would take more host memory than the setting suspend-memory-max allows",
    [SUSPEND_OVER_SHARE] =
        "suspended tasks of its user would take more than the user's share of the setting "
        "suspend-memory-max, and the rest is kept for tasks of other users",
    [SUSPEND_HOST_MEMORY] = "the host has too little free memory for the task's "
                            "GPU memory",
    [SUSPEND_CGROUP_MEMORY] =
        "a memory limit of its cgroups leaves too little for its GPU memory: the kernel would kill "
        "it",
    [SUSPEND_MOVE_ONE_GPU] = "this machine has no other GPU",
    [SUSPEND_MOVE_TOO_OLD] =
        "this NVIDIA driver cannot restore a process on another GPU: driver 580 or newer is "
        "needed",
    [SUSPEND_MOVE_OTHER_KIND] = "a process can only move to a GPU of the same "
                                "model",
};

const char *suspend_refusal_write(
    enum suspend_refusal refusal, const struct suspend_facts *facts, char *text, size_t size)
{
    char wanted[32], room[32];
    struct reading limit = {0};
    bool is_of_setting = refusal == SUSPEND_OVER_MAX || refusal == SUSPEND_OVER_SHARE;
    double bytes = is_of_setting ? facts->gpu_bytes.value : own_bytes(facts);
    if (refusal == SUSPEND_HOST_MEMORY)
        limit = facts->host_available_bytes;
    if (refusal == SUSPEND_CGROUP_MEMORY)
        limit = facts->cgroup_left_bytes;
    if (is_of_setting)
        limit = reading_of((double)(facts->suspended_max_bytes - facts->suspended_bytes -
                                    (refusal == SUSPEND_OVER_SHARE ? facts->kept_bytes : 0)));
    if (refusal == SUSPEND_NO_DRIVER && facts->driver_fault) {
        snprintf(text, size, "collocd cannot use the NVIDIA driver: %s", facts->driver_fault);
        return text;
    }
    /* A cgroup without a limit leaves infinitely much, which is no number to print. */
    if (limit.valid && isfinite(limit.value) && facts->gpu_bytes.valid)
        snprintf(text, size, "%s (%s wanted, %s free)", refusals[refusal],
            format_size((int64_t)bytes, wanted, sizeof wanted),
            format_size((int64_t)limit.value, room, sizeof room));
    else
        snprintf(text, size, "%s", refusals[refusal]);
    return text;
}
