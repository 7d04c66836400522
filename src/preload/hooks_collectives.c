/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NCCL's functions that launch collectives, sends and receives, and those that make and end
 * communicators (collectives.h). PyTorch is linked with libnccl, so that the dynamic linker binds
 * these. Every NCCL since 2.18 has them but for three of 2.28, which dlsym (dlsym.c) finds only
 * where the loaded NCCL has them.
 */
#include <stddef.h>

#include "preload/collectives.h"
#include "preload/dlsym.h"
#include "preload/hook_table.h"
#include "preload/stream_capture.h"

enum { NCCL_SUCCESS = 0, NCCL_INVALID_USAGE = 5, NCCL_IN_PROGRESS = 7 };

/* Passed by value. */
typedef struct {
    char bytes[128];
} ncclUniqueId;

typedef void *ncclComm_t;

static bool is_ok(int r)
{
    return r == NCCL_SUCCESS || r == NCCL_IN_PROGRESS;
}

/* A process with two copies of NCCL calls that of its caller: then each call is looked up. */
static any_function *find_function(
    _Atomic(any_function *) *slot, const char *name, const void *caller)
{
    bool is_only = false;
    any_function *function = atomic_load_explicit(slot, memory_order_relaxed);
    if (function)
        return function;
    function = dlsym_loaded(name, caller, &is_only);
    if (is_only)
        atomic_store_explicit(slot, function, memory_order_relaxed);
    return function;
}

/* In a function's body: declares `call`, NCCL's function of this name. */
#define NCCL(NAME)                                                                                 \
    static _Atomic(any_function *) slot;                                                           \
    any_function *function = find_function(&slot, #NAME, __builtin_return_address(0));             \
    __typeof__(&(NAME)) call = (__typeof__(&(NAME)))(function ? function                           \
                                                              : (any_function *)no_function)

static int no_function(void)
{
    return NCCL_INVALID_USAGE;
}

/* ---- collectives ---- */

int ncclCommCount(ncclComm_t comm, int *count); /* not ours, as the next one */
int ncclCommUserRank(ncclComm_t comm, int *rank);

static uint32_t count_ranks(void *comm)
{
    NCCL(ncclCommCount);
    int count = 0;
    int r = call(comm, &count);
    return r == NCCL_SUCCESS && count > 0 ? (uint32_t)count : 0;
}

static uint32_t find_place(void *comm)
{
    NCCL(ncclCommUserRank);
    int rank = -1;
    int r = call(comm, &rank);
    return r == NCCL_SUCCESS && rank >= 0 ? (uint32_t)rank + 1 : 0;
}

static struct communicator_size measure_size(void *comm)
{
    return (struct communicator_size){count_ranks(comm), find_place(comm)};
}

#define LAUNCH(NAME, MESSAGE, ARGUMENTS)                                                           \
    {                                                                                              \
        NCCL(NAME);                                                                                \
        collectives_enter();                                                                       \
        collectives_add(comm, MESSAGE, stream_capture(stream), measure_size);                      \
        int r = call ARGUMENTS;                                                                    \
        collectives_leave();                                                                       \
        return r;                                                                                  \
    }

#define COLLECTIVE(NAME, PARAMETERS, ARGUMENTS)                                                    \
    int NAME PARAMETERS;                                                                           \
    int NAME PARAMETERS LAUNCH(NAME, (struct message){0}, ARGUMENTS)

COLLECTIVE(ncclAllReduce,
    (const void *from, void *to, size_t count, int type, int op, ncclComm_t comm, CUstream stream),
    (from, to, count, type, op, comm, stream))
COLLECTIVE(ncclReduce,
    (const void *from, void *to, size_t count, int type, int op, int root, ncclComm_t comm,
        CUstream stream),
    (from, to, count, type, op, root, comm, stream))
COLLECTIVE(ncclBroadcast,
    (const void *from, void *to, size_t count, int type, int root, ncclComm_t comm,
        CUstream stream),
    (from, to, count, type, root, comm, stream))
COLLECTIVE(ncclBcast,
    (void *buffer, size_t count, int type, int root, ncclComm_t comm, CUstream stream),
    (buffer, count, type, root, comm, stream))
COLLECTIVE(ncclReduceScatter,
    (const void *from, void *to, size_t count, int type, int op, ncclComm_t comm, CUstream stream),
    (from, to, count, type, op, comm, stream))
COLLECTIVE(ncclAllGather,
    (const void *from, void *to, size_t count, int type, ncclComm_t comm, CUstream stream),
    (from, to, count, type, comm, stream))

/* Of NCCL 2.28. To the ranks each is one collective, whatever NCCL makes of it. */
COLLECTIVE(ncclAlltoAll,
    (const void *from, void *to, size_t count, int type, ncclComm_t comm, CUstream stream),
    (from, to, count, type, comm, stream))
COLLECTIVE(ncclGather,
    (const void *from, void *to, size_t count, int type, int root, ncclComm_t comm,
        CUstream stream),
    (from, to, count, type, root, comm, stream))
COLLECTIVE(ncclScatter,
    (const void *from, void *to, size_t count, int type, int root, ncclComm_t comm,
        CUstream stream),
    (from, to, count, type, root, comm, stream))

/* ---- between two ranks ---- */

int ncclSend(const void *from, size_t count, int type, int peer, ncclComm_t comm, CUstream stream);
int ncclSend(const void *from, size_t count, int type, int peer, ncclComm_t comm, CUstream stream)
    LAUNCH(
        ncclSend, ((struct message){MESSAGE_SENT, peer}), (from, count, type, peer, comm, stream))

        int ncclRecv(void *to, size_t count, int type, int peer, ncclComm_t comm, CUstream stream);
int ncclRecv(void *to, size_t count, int type, int peer, ncclComm_t comm, CUstream stream) LAUNCH(
    ncclRecv, ((struct message){MESSAGE_RECEIVED, peer}), (to, count, type, peer, comm, stream))

    /* ---- groups of calls ---- */

    int ncclGroupStart(void);
int ncclGroupStart(void)
{
    NCCL(ncclGroupStart);
    collectives_enter();
    int r = call();
    if (r != NCCL_SUCCESS)
        collectives_leave();
    return r;
}

int ncclGroupEnd(void);
int ncclGroupEnd(void)
{
    NCCL(ncclGroupEnd);
    collectives_close();
    int r = call();
    collectives_leave();
    return r;
}

/* ---- communicators ---- */

/* Ends the creation of a communicator, whose calls have `collectives_join` before them.
 * Returns the call's result `r`. */
static int end_creation(int r, const ncclComm_t *comm, uint64_t id, struct communicator_size size)
{
    if (is_ok(r) && comm && *comm)
        collectives_note_communicator(*comm, id, size);
    collectives_leave();
    return r;
}

static struct communicator_size size_of(int n_ranks, int rank)
{
    return (struct communicator_size){(uint32_t)n_ranks, (uint32_t)rank + 1};
}

int ncclCommInitRank(ncclComm_t *comm, int n_ranks, ncclUniqueId id, int rank);
int ncclCommInitRank(ncclComm_t *comm, int n_ranks, ncclUniqueId id, int rank)
{
    NCCL(ncclCommInitRank);
    collectives_join();
    return end_creation(call(comm, n_ranks, id, rank), comm, collectives_hash(&id, sizeof id),
        size_of(n_ranks, rank));
}

int ncclCommInitRankConfig(ncclComm_t *comm, int n_ranks, ncclUniqueId id, int rank, void *config);
int ncclCommInitRankConfig(ncclComm_t *comm, int n_ranks, ncclUniqueId id, int rank, void *config)
{
    NCCL(ncclCommInitRankConfig);
    collectives_join();
    return end_creation(call(comm, n_ranks, id, rank, config), comm,
        collectives_hash(&id, sizeof id), size_of(n_ranks, rank));
}

/* Ranks without a colour get no communicator. How many ranks the part has is asked later if it is
 * not there yet: in a group, or without waiting. */
int ncclCommSplit(ncclComm_t comm, int colour, int key, ncclComm_t *part, void *config);
int ncclCommSplit(ncclComm_t comm, int colour, int key, ncclComm_t *part, void *config)
{
    NCCL(ncclCommSplit);
    collectives_join();
    uint64_t id = collectives_split_id(comm, colour);
    int r = call(comm, colour, key, part, config);
    struct communicator_size size = {0, 0};
    if (r == NCCL_SUCCESS && part && *part)
        size = measure_size(*part);
    return end_creation(r, part, id, size);
}

/* The same handle may belong to another communicator afterwards. */
#define LAST_CALL(NAME)                                                                            \
    int NAME(ncclComm_t comm);                                                                     \
    int NAME(ncclComm_t comm)                                                                      \
    {                                                                                              \
        NCCL(NAME);                                                                                \
        collectives_join();                                                                        \
        collectives_forget_communicator(comm);                                                     \
        int r = call(comm);                                                                        \
        collectives_leave();                                                                       \
        return r;                                                                                  \
    }

LAST_CALL(ncclCommFinalize)
LAST_CALL(ncclCommDestroy)
LAST_CALL(ncclCommAbort)
