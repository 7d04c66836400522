/* SPDX-License-Identifier: Apache-2.0 */
/* The carrier's thread: waits for orders in the page, and carries them out in phases. */
#include "preload/carrier.h"

#include <sys/prctl.h>
#include <time.h>

#include "preload/call_stubs.h"
#include "preload/context_work.h"
#include "preload/futex.h"
#include "preload/hook_table.h"
#include "preload/linked.h"
#include "preload/process_state.h"
#include "preload/threads.h"

enum {
    LOOK_AGAIN_MS = 1000, /* for a new daemon, and for what the process uses by now */
    CALLS_POLL_US = 100,  /* chosen: a call of the driver takes microseconds */
};

/* Those that copy_place.c can open. */
#define PLACES (1U << PRELOAD_PLACE_OWN | 1U << PRELOAD_PLACE_POOL | 1U << PRELOAD_PLACE_NEIGHBOUR)

/* Chosen, as the daemon's limit for calls that synchronise. */
#define CALLS_LIMIT_US UINT64_C(30000000)

static uint64_t now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

/* ---- the page ---- */

void carrier_publish(struct process_state *state, struct preload_page *page)
{
    const struct carrier *carrier = &state->carrier;
    uint32_t where = atomic_load(&carrier->state);
    atomic_store(&page->carry_error, atomic_load(&carrier->error));
    atomic_store(&page->carry_why, atomic_load(&carrier->why));
    atomic_store(&page->carry_bytes, carrier->blocks.mapped_bytes);
    atomic_store(&page->carry_out_us, atomic_load(&carrier->out_us));
    atomic_store(&page->carry_in_us, atomic_load(&carrier->in_us));
    atomic_store(&page->carry_lies, atomic_load(&carrier->lies));
    atomic_store(&page->carry_places, PLACES);
    if (where >= PRELOAD_CARRY_COPYING)
        atomic_store(&page->gate, PRELOAD_GATE_CLOSED);
    atomic_store(&page->carry_state, where);
}

static void publish_phase(struct process_state *state)
{
    futex_lock(&state->lock);
    carrier_publish(state, process_page(state));
    futex_unlock(&state->lock);
}

static void enter_phase(struct process_state *state, enum preload_carry_state phase)
{
    atomic_store(&state->carrier.state, phase);
    publish_phase(state);
}

static enum preload_carry_why note_driver(struct carrier *carrier, CUresult r)
{
    atomic_store(&carrier->error, r);
    return r == CUDA_SUCCESS ? PRELOAD_CARRY_CAN : PRELOAD_CARRY_DRIVER;
}

/* ---- may it be carried? ---- */

/* What NCCL has for itself is not the program's: it may be more than a small part of a pipeline
 * has, and the driver's checkpoint, which would take it, refuses ranks. */
static bool is_mostly_other_memory(struct process_state *state)
{
    const struct carrier *carrier = &state->carrier;
    const struct ledger_device *sums = &state->ledger.devices[carrier->device];
    uint64_t held = sums->held_bytes - sums->nccl_bytes;
    for (int i = 0; i < POOLS_MAX; i++)
        if (state->pools[i].pool && state->pools[i].device == carrier->device)
            held += state->pools[i].held_bytes;
    return carrier->blocks.mapped_bytes < held / 2;
}

/* With the lock. A process that has begun as one rank may use other GPUs later. */
static bool has_other_gpus(const struct process_state *state)
{
    for (int i = 0; i < PRELOAD_DEVICES_MAX; i++)
        if (state->primary_contexts[i] && i != state->carrier.device)
            return true;
    return false;
}

static enum preload_carry_why why_not(struct process_state *state)
{
    uint32_t flags = atomic_load(&process_page(state)->flags);
    if (state->carrier.never != PRELOAD_CARRY_CAN)
        return state->carrier.never;
    if (flags & PRELOAD_USES_MANAGED)
        return PRELOAD_CARRY_MANAGED;
    if (flags & (PRELOAD_USES_IPC | PRELOAD_EXPORTS))
        return PRELOAD_CARRY_SHARED;
    if (flags & PRELOAD_HAS_CONTEXTS)
        return PRELOAD_CARRY_CONTEXTS;
    if (linked_with_driver())
        return PRELOAD_CARRY_LINKED;
    futex_lock(&state->lock);
    bool is_other = is_mostly_other_memory(state), has_gpus = has_other_gpus(state);
    futex_unlock(&state->lock);
    if (has_gpus)
        return PRELOAD_CARRY_SEVERAL_GPUS;
    if (is_other)
        return PRELOAD_CARRY_OTHER_MEMORY;
    return atomic_load(&state->captures) ? PRELOAD_CARRY_CAPTURES : PRELOAD_CARRY_CAN;
}

/* ---- back ---- */

/* Nothing is in the kept room then. */
static void give_back_recalled(struct carrier *carrier)
{
    if (atomic_load(&carrier->kept.is_recalled))
        kept_room_drop(&carrier->kept);
}

static void drop_copy(struct carrier *carrier)
{
    copy_place_close(&carrier->place);
    atomic_store(&carrier->lies, PRELOAD_PLACE_OWN);
    give_back_recalled(carrier);
}

/* Takes away what this way back has put behind blocks: the copy is still whole. */
static void empty_all(struct carrier *carrier)
{
    for (size_t i = 0; i < carrier->blocks.count; i++)
        if (carrier->blocks.item[i].handle && !carrier->blocks.item[i].is_kept)
            mapping_empty(&carrier->blocks.item[i]);
}

static CUresult fill_all(struct carrier *carrier)
{
    CUresult r = CUDA_SUCCESS;
    for (size_t i = 0; i < carrier->blocks.count && r == CUDA_SUCCESS; i++)
        if (!carrier->blocks.item[i].handle)
            r = mapping_fill(&carrier->traits, carrier->device, &carrier->blocks.item[i]);
    return r;
}

static enum preload_carry_why bring_back(struct process_state *state)
{
    struct carrier *carrier = &state->carrier;
    uint64_t begin = now_us();
    enter_phase(state, PRELOAD_CARRY_RETURNING);
    CUresult r = fill_all(carrier);
    if (r != CUDA_SUCCESS) {
        empty_all(carrier);
        note_driver(carrier, r);
        enter_phase(state, PRELOAD_CARRY_IS_AWAY);
        return r == CUDA_ERROR_OUT_OF_MEMORY ? PRELOAD_CARRY_NO_GPU_MEMORY : PRELOAD_CARRY_DRIVER;
    }
    r = copy_place_load(&carrier->place, &carrier->staging, &carrier->blocks);
    if (r != CUDA_SUCCESS) {
        note_driver(carrier, r);
        enter_phase(state, PRELOAD_CARRY_LOST);
        return PRELOAD_CARRY_DRIVER;
    }
    drop_copy(carrier);
    atomic_store(&carrier->in_us, now_us() - begin);
    enter_phase(state, PRELOAD_CARRY_IS_HERE);
    return PRELOAD_CARRY_CAN;
}

/* ---- out ---- */

/* An order that another one has followed is void. */
static bool is_void(struct process_state *state, uint32_t order)
{
    return atomic_load(&process_page(state)->carry_order) != order;
}

static enum preload_carry_why wait_for_calls(struct process_state *state, uint32_t order)
{
    const struct timespec pause = {.tv_nsec = CALLS_POLL_US * 1000};
    uint64_t begin = now_us();
    while (calls_are_in_flight()) {
        if (is_void(state, order) || now_us() - begin > CALLS_LIMIT_US)
            return PRELOAD_CARRY_CALLS;
        nanosleep(&pause, NULL);
    }
    return PRELOAD_CARRY_CAN;
}

static CUresult synchronise_context(struct carrier *carrier)
{
    CUresult r = context_enter(carrier->context);
    return r == CUDA_SUCCESS ? HOOK_INSIDE(cuCtxSynchronize)() : r;
}

static bool is_prepared(const struct carrier *carrier)
{
    return carrier->staging.lanes[STAGING_LANES - 1].buffers;
}

/* Could the memory, which is here, be carried now? */
static enum preload_carry_why why_not_now(struct process_state *state)
{
    return is_prepared(&state->carrier) ? why_not(state) : PRELOAD_CARRY_NO_HOST_MEMORY;
}

/* Opens the place that the daemon wants, by what it has handed over for that. */
static enum preload_carry_why open_place(struct process_state *state, struct copy_place *ret_place)
{
    struct carrier *carrier = &state->carrier;
    struct copy_room room;
    int error = CUDA_SUCCESS;
    uint32_t wanted = atomic_load(&process_page(state)->carry_place);
    if (wanted >= PRELOAD_PLACES)
        return PRELOAD_CARRY_NO_ROOM;
    process_take_room(state, &room);
    enum preload_carry_why why = copy_place_open(ret_place, (enum preload_place)wanted, &room,
        &carrier->kept, carrier->device, &carrier->blocks, &error);
    copy_room_drop(&room);
    if (error != CUDA_SUCCESS)
        note_driver(carrier, error);
    return why;
}

/* Nothing has changed yet when it fails. The order is read again after the phase was written; the
 * daemon writes another order before it reads the phase: one of the two sees the other. */
static enum preload_carry_why make_ready(struct process_state *state, uint32_t order)
{
    struct carrier *carrier = &state->carrier;
    if (atomic_load(&process_page(state)->gate) != PRELOAD_GATE_CLOSED)
        return PRELOAD_CARRY_GATE_OPEN;
    enum preload_carry_why why = wait_for_calls(state, order);
    if (why == PRELOAD_CARRY_CAN)
        why = why_not(state);
    if (why == PRELOAD_CARRY_CAN)
        why = note_driver(carrier, synchronise_context(carrier));
    if (why != PRELOAD_CARRY_CAN)
        return why;
    if (!is_prepared(carrier))
        return PRELOAD_CARRY_NO_HOST_MEMORY;
    why = open_place(state, &carrier->place);
    if (why != PRELOAD_CARRY_CAN)
        return why;
    if (is_void(state, order)) /* the gate may be open by now */
        return PRELOAD_CARRY_CALLS;
    enter_phase(state, PRELOAD_CARRY_COPYING);
    return is_void(state, order) ? PRELOAD_CARRY_CALLS : PRELOAD_CARRY_CAN;
}

static enum preload_carry_why stay_here(struct process_state *state, enum preload_carry_why why)
{
    drop_copy(&state->carrier);
    enter_phase(state, PRELOAD_CARRY_IS_HERE);
    return why;
}

static enum preload_carry_why take_away(struct process_state *state, uint32_t order)
{
    struct carrier *carrier = &state->carrier;
    uint64_t begin = now_us();
    enter_phase(state, PRELOAD_CARRY_WAITING);
    enum preload_carry_why why = make_ready(state, order);
    if (why == PRELOAD_CARRY_CAN)
        why = note_driver(
            carrier, copy_place_store(&carrier->place, &carrier->staging, &carrier->blocks));
    if (why != PRELOAD_CARRY_CAN)
        return stay_here(state, why);
    enter_phase(state, PRELOAD_CARRY_RELEASING);
    CUresult r = CUDA_SUCCESS;
    for (size_t i = 0; i < carrier->blocks.count && r == CUDA_SUCCESS; i++)
        if (!carrier->blocks.item[i].is_kept)
            r = mapping_empty(&carrier->blocks.item[i]);
    if (r != CUDA_SUCCESS) { /* the copy is whole: all of it comes back */
        bring_back(state);
        return note_driver(carrier, r);
    }
    atomic_store(&carrier->out_us, now_us() - begin);
    atomic_store(&carrier->lies, carrier->place.kind);
    enter_phase(state, PRELOAD_CARRY_IS_AWAY);
    return PRELOAD_CARRY_CAN;
}

/* ---- to another place ---- */

/* The blocks stay away. The copy on the neighbour is whole until the other one is. */
static enum preload_carry_why relocate_copy(struct process_state *state)
{
    struct carrier *carrier = &state->carrier;
    struct copy_place to;
    uint64_t begin = now_us();
    enum preload_carry_why why = open_place(state, &to);
    if (why != PRELOAD_CARRY_CAN)
        return why;
    CUresult r = to.host ? copy_place_move(&carrier->place, &to, &carrier->staging)
                         : CUDA_ERROR_INVALID_VALUE;
    if (r != CUDA_SUCCESS) {
        copy_place_close(&to);
        return note_driver(carrier, r);
    }
    copy_place_close(&carrier->place);
    carrier->place = to;
    atomic_store(&carrier->lies, to.kind);
    atomic_store(&carrier->out_us, now_us() - begin);
    return PRELOAD_CARRY_CAN;
}

/* ---- orders ---- */

static bool lies_on_gpu(const struct carrier *carrier)
{
    return carrier->place.kind == PRELOAD_PLACE_NEIGHBOUR;
}

static void carry_out_order(struct process_state *state, uint32_t order)
{
    struct carrier *carrier = &state->carrier;
    uint32_t goal = order & PRELOAD_CARRY_GOAL_MASK, where = atomic_load(&carrier->state);
    enum preload_carry_why why = PRELOAD_CARRY_CAN;
    if (goal == PRELOAD_CARRY_AWAY && where == PRELOAD_CARRY_IS_HERE)
        why = take_away(state, order);
    else if (goal == PRELOAD_CARRY_HERE && where == PRELOAD_CARRY_IS_AWAY)
        why = bring_back(state);
    else if (goal == PRELOAD_CARRY_TO_HOST && where == PRELOAD_CARRY_IS_AWAY &&
             lies_on_gpu(carrier))
        why = relocate_copy(state);
    else if (where == PRELOAD_CARRY_IS_HERE) /* as before the order: the reason stays */
        why = why_not_now(state);
    atomic_store(&carrier->why, why);
    publish_phase(state);
}

/* Between orders it says whether the memory could be carried now. */
static void look_around(struct process_state *state)
{
    if (atomic_load(&state->carrier.state) == PRELOAD_CARRY_IS_HERE) {
        give_back_recalled(&state->carrier);
        atomic_store(&state->carrier.why, why_not_now(state));
    }
    futex_lock(&state->lock);
    process_renew_connection(state);
    carrier_publish(state, process_page(state));
    futex_unlock(&state->lock);
}

static void prepare_lanes(struct carrier *carrier)
{
    hook_find_all();
    staging_leave_captures_alone();
    if (context_enter(carrier->context) == CUDA_SUCCESS)
        staging_prepare(&carrier->staging, carrier->context);
}

static void *run_carrier(void *argument)
{
    struct process_state *state = argument;
    prctl(PR_SET_NAME, "colloc-carrier");
    prepare_lanes(&state->carrier);
    enter_phase(state, PRELOAD_CARRY_IS_HERE);
    look_around(state);
    for (;;) {
        struct preload_page *page = process_page(state);
        uint32_t order = atomic_load(&page->carry_order);
        if (order == atomic_load(&page->carry_done)) {
            /* The wake of an order may come when that has been carried out: its reason stays. */
            if (futex_wait(&page->carry_order, order, LOOK_AGAIN_MS))
                look_around(state);
            continue;
        }
        carry_out_order(state, order);
        atomic_store(&page->carry_done, order);
    }
    return NULL;
}

void carrier_begin(struct process_state *state)
{
    pthread_t thread;
    if (atomic_load_explicit(&state->carrier.has_thread, memory_order_relaxed) ||
        atomic_exchange(&state->carrier.has_thread, 1))
        return;
    if (!thread_begin(&thread, run_carrier, state))
        state->carrier.never = PRELOAD_CARRY_NO_HOST_MEMORY;
}
