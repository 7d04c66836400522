/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks in place of cuMemAlloc's memory. A process has them if it uses one GPU, as far as its
 * first allocation can know, and for the primary context, which all frameworks use. Each call is
 * counted as one in the driver, so that the carrier never sees half of it.
 *
 * cuMemFree waits for the GPU's work, unmapping does not: the context is synchronised first. That
 * would break a capture of a stream; a block that is freed meanwhile is only marked, and goes with
 * the next allocation or free after the capture.
 */
#include "preload/carried_memory.h"

#include <stdlib.h>

#include "preload/allocation.h"
#include "preload/call_stubs.h"
#include "preload/context_work.h"
#include "preload/futex.h"
#include "preload/gate.h"
#include "preload/threads.h"

/* As the driver's own allocator: smaller ones share pages there, and would each take 2 MiB here. */
#define BLOCK_BYTES_MIN (UINT64_C(1) << 20)

typedef CUresult get_count(int *count);

/* ---- may the process have blocks? ---- */

static int visible_gpus(void)
{
    DRIVER(get_count, "cuDeviceGetCount");
    int count = 0;
    return call && call(&count) == CUDA_SUCCESS ? count : 0;
}

/* A launcher has begun several processes, each for one of the GPUs that all of them see. */
static bool is_one_rank(void)
{
    static const char *const names[] = {"LOCAL_RANK", /* torchrun, accelerate, DeepSpeed */
        "OMPI_COMM_WORLD_LOCAL_RANK",                 /* Open MPI */
        "MPI_LOCALRANKID"};                           /* MPICH, Intel MPI */
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (getenv(names[i]))
            return true;
    return false;
}

static enum preload_carry_why why_never(struct carrier *carrier, int device)
{
    if (visible_gpus() != 1 && !is_one_rank())
        return PRELOAD_CARRY_SEVERAL_GPUS;
    carrier->traits = mapping_query(device);
    return carrier->traits.granularity && threads_are_there() ? PRELOAD_CARRY_CAN
                                                              : PRELOAD_CARRY_NO_MAPPING;
}

/* With the lock. */
static void decide_blocks(struct process_state *state, int device)
{
    struct carrier *carrier = &state->carrier;
    if (carrier->is_decided)
        return;
    carrier->device = device;
    carrier->context = (CUcontext)(uintptr_t)state->primary_contexts[device];
    carrier->never = why_never(carrier, device);
    atomic_store(&carrier->why, carrier->never);
    carrier_publish(state, process_page(state));
    atomic_store(&carrier->is_decided, 1);
}

static bool may_have_block(struct process_state *state, int device)
{
    struct carrier *carrier = &state->carrier;
    if (!atomic_load(&carrier->is_decided)) {
        futex_lock(&state->lock);
        if (state->primary_contexts[device])
            decide_blocks(state, device);
        futex_unlock(&state->lock);
    }
    return atomic_load(&carrier->is_decided) && carrier->never == PRELOAD_CARRY_CAN &&
           carrier->device == device &&
           allocation_current_context() == (uint64_t)(uintptr_t)carrier->context;
}

/* ---- the end of a block ---- */

/* The block is out of the table. What the driver refuses to free goes back. */
static CUresult end_block(struct process_state *state, struct block *block)
{
    CUresult r = context_synchronise(state->carrier.context);
    if (r == CUDA_SUCCESS)
        r = mapping_destroy(block);
    if (r != CUDA_SUCCESS && block->handle) {
        futex_lock(&state->lock);
        blocks_add(&state->carrier.blocks, block);
        futex_unlock(&state->lock);
    }
    return r;
}

static bool take_dead(struct process_state *state, struct block *ret_block)
{
    struct blocks *blocks = &state->carrier.blocks;
    bool found = false;
    futex_lock(&state->lock);
    for (size_t i = 0; i < blocks->count && !found; i++)
        if (blocks->item[i].is_dead)
            found = blocks_remove(blocks, blocks->item[i].at, ret_block);
    if (found)
        atomic_fetch_sub(&state->carrier.n_dead, 1);
    futex_unlock(&state->lock);
    return found;
}

static void bury_dead(struct process_state *state)
{
    struct block block;
    if (!atomic_load_explicit(&state->carrier.n_dead, memory_order_relaxed))
        return;
    while (!atomic_load(&state->captures) && take_dead(state, &block))
        if (end_block(state, &block) != CUDA_SUCCESS)
            return;
}

/* ---- allocations ---- */

/* Returns whether the block is in the table. */
static bool note_block(struct process_state *state, const struct block *block)
{
    futex_lock(&state->lock);
    bool is_noted = blocks_add(&state->carrier.blocks, block);
    carrier_publish(state, process_page(state));
    futex_unlock(&state->lock);
    return is_noted;
}

bool carried_allocate(
    struct process_state *state, int device, uint64_t bytes, CUdeviceptr *ret_at, CUresult *ret_r)
{
    struct block block;
    if (!calls_are_counted() || bytes < BLOCK_BYTES_MIN || !may_have_block(state, device))
        return false;
    struct preload_page *page = gate_enter(state);
    bury_dead(state);
    CUresult r = mapping_create(&state->carrier.traits, device, bytes, &block);
    bool is_noted = r == CUDA_SUCCESS && note_block(state, &block);
    if (r == CUDA_SUCCESS && !is_noted)
        mapping_destroy(&block);
    gate_leave(page);
    if (is_noted)
        carrier_begin(state);
    *ret_at = is_noted ? block.at : *ret_at;
    *ret_r = r;
    return is_noted || r == CUDA_ERROR_OUT_OF_MEMORY;
}

bool carried_free(CUdeviceptr at, CUresult *ret_r)
{
    struct process_state *state = process_state_peek();
    struct block block;
    if (!state || !state->carrier.blocks.count)
        return false;
    struct preload_page *page = gate_enter(state);
    futex_lock(&state->lock);
    struct block *found = blocks_find(&state->carrier.blocks, at);
    bool is_later = found && atomic_load(&state->captures);
    if (is_later) {
        found->is_dead = true;
        atomic_fetch_add(&state->carrier.n_dead, 1);
    } else if (found) {
        blocks_remove(&state->carrier.blocks, at, &block);
    }
    futex_unlock(&state->lock);
    if (found) {
        *ret_r = is_later ? CUDA_SUCCESS : end_block(state, &block);
        bury_dead(state);
    }
    gate_leave(page);
    return found;
}

/* ---- blocks that others use ---- */

void carried_keep(CUdeviceptr at, uint64_t bytes)
{
    struct process_state *state = process_state_peek();
    if (!state || !state->carrier.blocks.count)
        return;
    futex_lock(&state->lock);
    blocks_keep(&state->carrier.blocks, at, bytes);
    carrier_publish(state, process_page(state));
    futex_unlock(&state->lock);
}

/* Memory of cuMemAlloc is seen by a peer once that has asked for it; a mapping has to say so. */
void carried_allow_peer(CUcontext context, int device)
{
    struct process_state *state = process_state_peek();
    if (!state || !state->carrier.is_decided || context != state->carrier.context ||
        device == state->carrier.device || device < 0 || device >= PRELOAD_DEVICES_MAX)
        return;
    struct preload_page *page = gate_enter(state);
    futex_lock(&state->lock);
    state->carrier.traits.peers |= UINT32_C(1) << device;
    for (size_t i = 0; i < state->carrier.blocks.count; i++)
        mapping_allow_peers(
            &state->carrier.traits, state->carrier.device, &state->carrier.blocks.item[i]);
    futex_unlock(&state->lock);
    gate_leave(page);
}

/* ---- questions ---- */

static bool find_own(struct process_state *state, CUdeviceptr address, struct block *ret_block)
{
    if (!state->carrier.blocks.count)
        return false;
    futex_lock(&state->lock);
    const struct block *block = blocks_around(&state->carrier.blocks, address);
    if (block)
        *ret_block = *block;
    futex_unlock(&state->lock);
    return block;
}

bool carried_find(CUdeviceptr address, struct carried_answer *ret_answer)
{
    struct process_state *state = process_state_peek();
    *ret_answer = (struct carried_answer){0};
    if (state && find_own(state, address, &ret_answer->block)) {
        ret_answer->is_own = true;
        ret_answer->context = state->carrier.context;
        return true;
    }
    return state && imports_find(state, address, &ret_answer->block, &ret_answer->context);
}

void carried_forget_context(struct process_state *state, uint64_t context)
{
    struct blocks *blocks = &state->carrier.blocks;
    struct block block;
    if (!context || !state->carrier.is_decided ||
        context != (uint64_t)(uintptr_t)state->carrier.context)
        return;
    struct preload_page *page = gate_enter(state);
    state->carrier.never = PRELOAD_CARRY_CONTEXTS;
    for (;;) {
        futex_lock(&state->lock);
        bool found = blocks->count &&
                     blocks_remove(blocks, blocks->item[blocks->count - 1].at, &block);
        futex_unlock(&state->lock);
        if (!found)
            break;
        mapping_destroy(&block);
    }
    gate_leave(page);
}
