/* SPDX-License-Identifier: Apache-2.0 */
/* The counts of the process are under the state's lock, and each change is copied to the page. A
 * collective costs a few hundred nanoseconds more, of the 20 us that NCCL needs. */
#include "preload/collectives.h"

#include <errno.h>

#include "base/hash.h"
#include "preload/collective_cut.h"
#include "preload/futex.h"
#include "preload/process_state.h"

enum { LOOK_AGAIN_MS = 1000 }; /* whether the daemon is still there */

/* The calls of this thread, which may be nested: ncclGroupStart begins a group of them, which is
 * launched by the last ncclGroupEnd. In the library, whose threads are there from the start. */
static _Thread_local struct group {
    int depth;
    bool is_counted; /* its outermost call was let in, with a state */
} group __attribute__((tls_model("initial-exec")));

/* Perhaps before the process has a state. The same in a forked child. */
static _Atomic bool has_others;

/* ---- the page ---- */

void collectives_publish(struct process_state *state, struct preload_page *page)
{
    const struct collectives *own = &state->collectives;
    if (atomic_load_explicit(&has_others, memory_order_relaxed))
        atomic_fetch_or(&page->flags, PRELOAD_OTHER_COLLECTIVES);
    for (int i = 0; i < PRELOAD_COMMUNICATORS_MAX; i++) {
        struct preload_communicator *shown = &page->communicators[i];
        if (atomic_load(&shown->id) != own->communicators[i].id) {
            atomic_store(&shown->id, 0);
            atomic_store(&shown->allowed, 0);
        }
        atomic_store(&shown->launched, own->communicators[i].launched);
        atomic_store(&shown->n_ranks, own->communicators[i].n_ranks);
        atomic_store(&shown->id, own->communicators[i].id);
    }
    atomic_store(&page->collectives_under_way, own->under_way);
    atomic_fetch_or(&page->flags, PRELOAD_SEES_COLLECTIVES); /* all of them are there */
}

static void publish_counts(struct process_state *state)
{
    collectives_publish(state, process_page(state));
}

/* ---- the hold ---- */

/* Returns 0 if the call was let in, or the number of the hold. With the lock. */
static uint32_t try_to_enter(struct process_state *state, bool is_ever_held)
{
    struct preload_page *page = process_page(state);
    state->collectives.under_way++;
    publish_counts(state);
    uint32_t hold = is_ever_held ? atomic_load(&page->collectives_held) : 0;
    if (!hold || cut_is_behind(page))
        return 0;
    state->collectives.under_way--;
    publish_counts(state);
    return hold;
}

/* Returns whether a daemon is there that can end the hold. */
static bool wait_for_release(struct process_state *state, uint32_t hold)
{
    futex_wait(&process_page(state)->collectives_held, hold, LOOK_AGAIN_MS);
    futex_lock(&state->lock);
    process_renew_connection(state);
    bool is_there = state->daemon;
    if (!is_there) /* of the page of a daemon that has ended */
        atomic_compare_exchange_strong(&process_page(state)->collectives_held, &hold, 0);
    futex_unlock(&state->lock);
    return is_there;
}

static void enter_call(bool is_ever_held)
{
    if (group.depth++ > 0)
        return;
    int error = errno;
    struct process_state *state = process_state_get();
    group.is_counted = state;
    while (state) {
        futex_lock(&state->lock);
        uint32_t hold = try_to_enter(state, is_ever_held);
        futex_unlock(&state->lock);
        if (!hold)
            break;
        is_ever_held = wait_for_release(state, hold);
    }
    errno = error;
}

void collectives_enter(void)
{
    enter_call(true);
}

void collectives_enter_unheld(void)
{
    enter_call(false);
}

void collectives_leave(void)
{
    if (group.depth == 0 || --group.depth > 0)
        return;
    struct process_state *state = group.is_counted ? process_state_peek() : NULL;
    if (!state)
        return;
    futex_lock(&state->lock);
    if (state->collectives.under_way) /* not in the child of a fork */
        state->collectives.under_way--;
    publish_counts(state);
    futex_unlock(&state->lock);
}

/* ---- communicators ---- */

static struct communicator *find_communicator(struct process_state *state, const void *handle)
{
    for (int i = 0; i < PRELOAD_COMMUNICATORS_MAX; i++)
        if (state->collectives.communicators[i].handle == handle)
            return &state->collectives.communicators[i];
    return NULL;
}

/* Outside a lock: NCCL may take some time, and calls the driver. */
static void know_ranks(
    struct process_state *state, void *handle, uint32_t (*count_ranks)(void *handle))
{
    uint32_t n_ranks = count_ranks(handle);
    futex_lock(&state->lock);
    struct communicator *communicator = find_communicator(state, handle);
    if (communicator)
        communicator->n_ranks = n_ranks;
    futex_unlock(&state->lock);
}

void collectives_add(void *handle, uint32_t (*count_ranks)(void *handle))
{
    struct process_state *state = group.is_counted ? process_state_peek() : NULL;
    if (!state)
        return;
    futex_lock(&state->lock);
    struct communicator *communicator = handle ? find_communicator(state, handle) : NULL;
    bool needs_ranks = communicator && !communicator->n_ranks;
    if (communicator)
        communicator->launched++;
    publish_counts(state);
    futex_unlock(&state->lock);
    if (!communicator || atomic_load(&state->captures))
        collectives_note_other();
    if (needs_ranks)
        know_ranks(state, handle, count_ranks);
}

void collectives_note_communicator(void *handle, uint64_t id, uint32_t n_ranks)
{
    struct process_state *state = process_state_get();
    if (!state || !handle)
        return;
    futex_lock(&state->lock);
    struct communicator *place = find_communicator(state, NULL);
    for (int i = 0; i < PRELOAD_COMMUNICATORS_MAX; i++)
        if (state->collectives.communicators[i].id == id) /* two ranks in one process */
            place = NULL;
    if (place)
        *place = (struct communicator){.handle = handle, .id = id, .n_ranks = n_ranks};
    publish_counts(state);
    futex_unlock(&state->lock);
    if (!place)
        collectives_note_other();
}

uint64_t collectives_split_id(void *handle, int colour)
{
    struct process_state *state = process_state_get();
    struct {
        uint64_t parent;
        uint32_t number;
        int colour;
    } of = {0, 0, colour};
    if (!state)
        return 1;
    futex_lock(&state->lock);
    struct communicator *parent = handle ? find_communicator(state, handle) : NULL;
    if (parent) {
        of.parent = parent->id;
        of.number = ++parent->n_splits;
    }
    futex_unlock(&state->lock);
    if (!parent)
        collectives_note_other();
    return collectives_hash(&of, sizeof of);
}

void collectives_forget_communicator(void *handle)
{
    struct process_state *state = process_state_peek();
    if (!state || !handle)
        return;
    futex_lock(&state->lock);
    struct communicator *communicator = find_communicator(state, handle);
    if (communicator)
        *communicator = (struct communicator){0};
    publish_counts(state);
    futex_unlock(&state->lock);
}

void collectives_note_other(void)
{
    struct process_state *state = process_state_peek();
    atomic_store_explicit(&has_others, true, memory_order_relaxed);
    if (state)
        atomic_fetch_or(&process_page(state)->flags, PRELOAD_OTHER_COLLECTIVES);
}

uint64_t collectives_hash(const void *bytes, size_t size)
{
    uint64_t hash = hash_bytes(HASH_START, bytes, size);
    return hash ? hash : 1;
}
