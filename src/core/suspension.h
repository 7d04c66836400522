/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a running task gives way. It is
 *
 *   - suspended: NVIDIA's driver copies its GPU memory to the host and takes it off its GPUs; later
 *     it is resumed there or on other GPUs, as if nothing had happened. The driver refuses clients
 *     of MPS: from these the carrier takes the memory alone, their context stays on the GPU, and
 *     they are resumed there;
 *   - moved: suspended and resumed on other GPUs in one step, which are its own from the start; not
 *     clients of MPS;
 *   - paused: its processes are frozen, its GPU memory stays. For what NVIDIA's driver cannot
 *     suspend.
 *
 *     RUNNING ──SUSPENDING──> suspending ──SUSPENDED──> suspended ──RESUMING──> resuming ─┐
 *        ^  └──MOVING──────── moving ───────MOVED──────────────────────────────────────┐  │
 *        │  └──PAUSE───────── paused ───────CONTINUE──────────────────────────────────┐│  │
 *        └────────────────────────────────────────────────────────────RESUMED─────────┴┴──┘
 *
 * The core decides SUSPENDING, RESUMING, MOVING, PAUSE and CONTINUE, and leaves an effect for each;
 * the driver of the core answers the first three with SUSPENDED, RESUMED, MOVED or
 * SUSPENSION_FAILED. The others need no answer, but where a process could not be frozen a pause
 * fails, too: the task runs, and has run meanwhile. All effects may be repeated: after a restart,
 * STARTED leaves the effect of the state again, and an effect that is already done is answered at
 * once. So if a daemon or a helper is killed between any two events, the task runs or is suspended,
 * and is found in that state.
 */
#ifndef COLLOC_CORE_SUSPENSION_H
#define COLLOC_CORE_SUSPENSION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/units.h"

/* The context and modules of a training, which stay on the GPU of a client of MPS: measured on
 * H200s 0.76 to 0.85 GiB. It counts until the client has been suspended once. */
#define SUSPENSION_CONTEXT_BYTES (900 * MIB)

/* Chosen: after so many refusals of the driver, half a minute after the first, a context counts as
 * one that stays. It is tried again all the same, each time after twice as long, and at once after
 * the next suspension. */
#define SUSPENSION_REFUSALS_MAX 3

/* What is to be free beside the memory of a process when the driver puts its context back: where it
 * finds too little then, the process is lost. Chosen: a block or two that a training beside it may
 * allocate after the last look. */
#define SUSPENSION_RESTORE_SPARE_BYTES (256 * MIB)

/* After this time ranks of NCCL come back, by default. PyTorch's watchdog calls CUDA, so it stands
 * still with its process: after 480 s its monitor ends the process
 * (TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC), and a collective times out 600 s after its start
 * (ProcessGroupNCCL.cpp of PyTorch 2.3 to 2.11). Chosen: half of the shorter one. */
#define SUSPENSION_RANKS_AWAY_US (240 * SECOND_US)

/* Why a task gives way. */
enum yield_reason {
    YIELD_TO_USER,     /* a user's command */
    YIELD_TO_MEMORY,   /* a task waits for GPU memory */
    YIELD_TO_TASK,     /* a task that ends sooner, or has a higher priority, takes its place */
    YIELD_TO_SLOT,     /* its time slot has ended */
    YIELD_TO_ROOM,     /* it makes room for a task that needs a GPU to itself */
    YIELD_GPU_FAILING, /* its GPU is emptied */
    YIELD_UNUSED,      /* it has not used its GPUs for long; it is resumed when it calls CUDA */
    YIELD_TO_SERVICE,  /* a service beside it misses its latency target */
    YIELD_TO_PROMISE,  /* a task beside it does not have the speed that it was promised */
    YIELD_TO_PROBE,    /* a task beside it is measured alone (core/probe.h) */
    YIELD_TO_SPEED,    /* too many share its GPU, as their measured speeds show */
    YIELD_REASONS
};

/* Does the other task want the time of the GPU, not its memory? Then being paused is as good. */
static inline bool yield_is_for_time(enum yield_reason reason)
{
    return reason == YIELD_TO_SERVICE || reason == YIELD_TO_PROMISE || reason == YIELD_TO_PROBE;
}

/* "user", "memory", ...: stable, they stand in logs. */
const char *yield_reason_name(enum yield_reason reason);

/* Why a suspension, a move or a resumption failed. */
enum suspension_failure {
    SUSPENSION_REFUSED,   /* the task cannot be suspended: not tried again in this attempt */
    SUSPENSION_TIMED_OUT, /* the helper was ended after its time limit */
    SUSPENSION_NO_MEMORY, /* too little memory on the host or on the GPUs: may be tried again */
    SUSPENSION_NOT_NOW,   /* a process does not use CUDA yet, or cannot be reached: tried again */
    SUSPENSION_LOST,      /* the process can never be resumed: it is ended and run again */
    SUSPENSION_FAILURES
};

/* "refused", "timed-out", "no-memory", "not-now", "lost": stable, they stand in logs. */
const char *suspension_failure_name(enum suspension_failure failure);

/*
 * What a suspension and a resumption cost. Measured on an H200: 3.6 s and 1.5 s at 7.3 GiB, 32 s
 * and 9.4 s at 48 GiB, 95 s and 22 s at 132 GiB.
 */
struct suspension_cost {
    int64_t fixed_us;           /* of each of the two */
    int64_t suspend_us_per_gib; /* of GPU memory that the task holds on one GPU */
    int64_t resume_us_per_gib;
};

/* Which way the memory of a task goes: all by NVIDIA's driver; or by the carrier but for the
 * context, to the host or to a neighbour GPU (docs/carrier.md). With the carrier on, a task goes by
 * it if it can take all of its processes. */
enum suspension_way {
    SUSPENSION_EITHER_WAY, /* of a cost in the log of a version that had one for both to the host */
    SUSPENSION_BY_DRIVER,
    SUSPENSION_BY_CARRIER,
    SUSPENSION_TO_NEIGHBOUR,
    SUSPENSION_WAYS
};

/* "driver", "carrier", "neighbour": stable, they stand in logs; NULL for SUSPENSION_EITHER_WAY. */
const char *suspension_way_name(enum suspension_way way);

struct suspension_costs {
    struct suspension_cost driver, carrier, neighbour;
};

/* Is it a cost? No stop takes no time at all: all 0 is one that is not known. */
static inline bool suspension_cost_is_known(const struct suspension_cost *cost)
{
    return cost->fixed_us || cost->suspend_us_per_gib || cost->resume_us_per_gib;
}

/* The cost of the way. */
const struct suspension_cost *suspension_costs_of(
    const struct suspension_costs *costs, enum suspension_way way);

/* The measured costs, as a straight line. By the carrier 6.6 GiB took 0.88 s and 0.48 s; the copy
 * of 47.5 GiB alone 2.0 to 2.4 s and 1.2 s. */
struct suspension_cost suspension_cost_by_driver(void);
struct suspension_cost suspension_cost_by_carrier(void);

/* The same for a client of MPS, which the carrier takes off its GPU and whose context stays there:
 * 47 GiB in 2.0 to 2.4 s and 1.2 s, and 30 to 87 ms to unmap and map what was copied. */
struct suspension_cost suspension_cost_of_client(const struct suspension_cost *cost);

/* The same for a copy on a neighbour GPU, over NVLink (sharing/carry_cost.h). The context stays. */
struct suspension_cost suspension_cost_to_neighbour(void);

/* How long the suspension of a task takes that holds `bytes` on each GPU, in microseconds. */
int64_t suspension_time_us(const struct suspension_cost *cost, double bytes);

/* How long its resumption takes, in microseconds. */
int64_t resumption_time_us(const struct suspension_cost *cost, double bytes);

/* How long the two take together, in microseconds. */
int64_t suspension_stop_us(const struct suspension_cost *cost, double bytes);

#endif
