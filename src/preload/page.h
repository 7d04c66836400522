/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The page that a task's process shares with the daemon: what the process holds on its GPUs, and
 * the gate that keeps it from synchronising while it is suspended.
 *
 * The daemon creates the page (a sealed memfd of PRELOAD_PAGE_SIZE bytes) and hands it over in its
 * WELCOME (protocol.h); libcolloc-preload.so maps and fills it. The page outlives the process: it
 * still has the peak of a killed process.
 *
 * Contract:
 * 1. Each field is written by one side only, but for `gate`, `window_peak_bytes`, `in_flight` and
 *    `called`. The daemon gives `allowed`, and the library clears it for a new communicator.
 * 2. The daemon trusts nothing in it: the process can write anything at any time.
 * 3. Fields are only added, at the end of the reserved room; `version` then stays.
 */
#ifndef COLLOC_PRELOAD_PAGE_H
#define COLLOC_PRELOAD_PAGE_H

#include <stdatomic.h>
#include <stdint.h>

#define PRELOAD_PAGE_MAGIC   0x6c6c6f63u /* "coll" */
#define PRELOAD_PAGE_VERSION 1u

enum {
    PRELOAD_PAGE_SIZE = 4096,
    PRELOAD_DEVICES_MAX = 16, /* more than CUDA ordinals of one process in today's machines */
};

enum preload_gate { PRELOAD_GATE_OPEN, PRELOAD_GATE_CLOSED };

/* Uses of the process that prevent a suspension, and whether the numbers are complete. */
enum preload_flag {
    PRELOAD_USES_MANAGED = 1 << 0, /* managed (unified) memory */
    PRELOAD_USES_IPC = 1 << 1,     /* memory shared with another process */
    PRELOAD_USES_POOLS = 1 << 2,   /* stream-ordered allocations */
    PRELOAD_INCOMPLETE = 1 << 3,   /* something could not be counted: the numbers are too low, and
                                      the daemon takes no peak from them */
    PRELOAD_COUNTS_CALLS = 1 << 4, /* the library sets `called` */
    PRELOAD_EXPORTS = 1 << 5,      /* memory whose handle was exported to another process */
    PRELOAD_HAS_CONTEXTS = 1 << 6, /* contexts beside the primary one of its GPU */
    PRELOAD_SEES_COLLECTIVES = 1 << 7,  /* the library stands before NCCL's functions */
    PRELOAD_OTHER_COLLECTIVES = 1 << 8, /* NCCL is used in a way that is not counted: by another way
                                           to its functions, several GPUs of one process */
};

/* One communicator of NCCL, as this process is a rank of it. */
enum { PRELOAD_COMMUNICATORS_MAX = 32 }; /* chosen: a mesh of three dimensions has about ten */
struct preload_communicator {
    _Atomic uint64_t id;       /* the same in all its ranks; 0: unused */
    _Atomic uint64_t launched; /* its collectives that this rank has launched */
    _Atomic uint64_t allowed;  /* the daemon's: up to this number they pass while they are held */
    _Atomic uint32_t n_ranks;  /* 0: not known */
    _Atomic uint32_t place;    /* which of them this process is, and 1; 0: not known */
};

/* What the daemon orders of the carrier (docs/carrier.md): a serial number, and one of these in the
 * two lowest bits. */
enum preload_carry_goal {
    PRELOAD_CARRY_KEEP,
    PRELOAD_CARRY_AWAY, /* to `carry_place` */
    PRELOAD_CARRY_HERE,
    PRELOAD_CARRY_TO_HOST, /* a copy on a neighbour GPU goes to `carry_place`, on the host */
};
enum { PRELOAD_CARRY_GOAL_MASK = 3, PRELOAD_CARRY_SERIAL = 4 };

/* Where the copy of the blocks lies while they are away (copy_place.h). */
enum preload_place {
    PRELOAD_PLACE_OWN,       /* host memory of the process */
    PRELOAD_PLACE_POOL,      /* host memory of the daemon's, handed over before the order */
    PRELOAD_PLACE_NEIGHBOUR, /* memory of another GPU, handed over before the order */
    PRELOAD_PLACES
};

/* Where the blocks of the process are. From PRELOAD_CARRY_COPYING on, the gate must stay closed
 * until they are here again. */
enum preload_carry_state {
    PRELOAD_CARRY_NONE, /* the process has no blocks */
    PRELOAD_CARRY_IS_HERE,
    PRELOAD_CARRY_WAITING, /* for calls in flight and the work of the GPU; nothing has changed */
    PRELOAD_CARRY_COPYING, /* to the host */
    PRELOAD_CARRY_RELEASING,
    PRELOAD_CARRY_IS_AWAY,
    PRELOAD_CARRY_RETURNING,
    PRELOAD_CARRY_LOST, /* it can never be brought back */
};

/* Why the memory of the process cannot be carried, or why the last order failed. Numbers are part
 * of the interface. */
enum preload_carry_why {
    PRELOAD_CARRY_CAN,
    PRELOAD_CARRY_IS_OFF,         /* the library was not asked to */
    PRELOAD_CARRY_NO_MAPPING,     /* the GPU, the driver or the processor cannot */
    PRELOAD_CARRY_SEVERAL_GPUS,   /* are visible to the process */
    PRELOAD_CARRY_MANAGED,        /* managed memory */
    PRELOAD_CARRY_SHARED,         /* memory shared with another process */
    PRELOAD_CARRY_CONTEXTS,       /* contexts beside the primary one */
    PRELOAD_CARRY_OTHER_MEMORY,   /* most of its memory is in pools or its own mappings */
    PRELOAD_CARRY_LINKED,         /* a library calls the driver past ours */
    PRELOAD_CARRY_CAPTURES,       /* a stream is being captured */
    PRELOAD_CARRY_GATE_OPEN,      /* the gate was not closed before the order */
    PRELOAD_CARRY_CALLS,          /* a call, or the GPU's work, did not end in time */
    PRELOAD_CARRY_NO_HOST_MEMORY, /* for the copy */
    PRELOAD_CARRY_NO_GPU_MEMORY,  /* on the way back; the copy stays */
    PRELOAD_CARRY_DRIVER,         /* a call of the driver failed: `carry_error` */
    PRELOAD_CARRY_NO_ROOM,        /* no memory for the copy was handed over that suits the order */
    PRELOAD_CARRY_WHYS
};

/* One GPU as the process counts them, by CUDA ordinal. All bytes are those that the program asked
 * for; the context, modules and rounding come on top of them. */
struct preload_device {
    unsigned char uuid[16]; /* all zero: the process has allocated nothing there */
    _Atomic uint64_t held_bytes, peak_bytes;
    _Atomic uint64_t window_peak_bytes; /* since the daemon last set it to held_bytes */
    _Atomic uint64_t pool_held_bytes, pool_peak_bytes; /* reserved by its memory pools */
};

struct preload_page {
    uint32_t magic, version;    /* the daemon's */
    _Atomic uint32_t gate;      /* enum preload_gate; a futex. The daemon closes and opens it */
    _Atomic uint32_t in_flight; /* synchronising calls between their entry and their return */
    _Atomic uint32_t at_gate;   /* threads that wait for the gate to open */
    _Atomic uint32_t waiting;   /* threads that wait for memory */
    _Atomic uint64_t cap_bytes; /* on each GPU, the daemon's; 0: none */
    _Atomic uint64_t beat_ms;   /* CLOCK_MONOTONIC of the last call that was seen; at most one
                                   second old while the process calls CUDA */
    _Atomic uint64_t failures;  /* allocations that returned CUDA_ERROR_OUT_OF_MEMORY */
    _Atomic uint64_t waits;     /* allocations that waited */
    _Atomic uint64_t waited_ms;
    _Atomic uint32_t flags;  /* enum preload_flag */
    _Atomic uint32_t called; /* 1: CUDA was called since the daemon last set it to 0 */
    struct preload_device devices[PRELOAD_DEVICES_MAX];

    _Atomic uint32_t carry_order; /* a futex; the daemon's */
    _Atomic uint32_t carry_done;  /* the last order that was carried out, or has failed */
    _Atomic uint32_t carry_state; /* enum preload_carry_state */
    _Atomic uint32_t carry_why;   /* enum preload_carry_why */
    _Atomic int32_t carry_error;  /* the driver's number of the last failed call; 0: none */
    _Atomic uint16_t carry_place; /* the daemon's: where the next copy goes, enum preload_place */
    _Atomic uint8_t carry_lies;   /* where the copy lies; of a process whose blocks are away */
    _Atomic uint8_t carry_places; /* a bit for each place that this library can use */
    _Atomic uint64_t carry_bytes; /* of the blocks, as mapped */
    _Atomic uint64_t carry_out_us, carry_in_us; /* the last way out and back took */

    _Atomic uint32_t collectives_held; /* a futex; the daemon's. 0: they pass; else a number that
                                          is new with each change of `allowed` */
    _Atomic uint32_t collectives_under_way; /* threads in NCCL's calls that were let in */
    struct preload_communicator communicators[PRELOAD_COMMUNICATORS_MAX];
};

_Static_assert(sizeof(struct preload_page) <= PRELOAD_PAGE_SIZE, "the page is one page");
_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2, "processes share these without a lock");

#endif
