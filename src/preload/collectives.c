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
    bool is_closed;  /* nothing more is counted of it */
    bool is_joining; /* one of its calls waits for the ranks of a communicator */
} group __attribute__((tls_model("initial-exec")));

/* Perhaps before the process has a state. The same in a forked child. */
static _Atomic bool has_others;

/* Something was captured. Stays: the table is read with the lock. */
static _Atomic bool has_graphs;

/* ---- the page ---- */

static void publish_calls(const struct collectives *own, struct preload_page *page)
{
    atomic_store(&preload_page_calls(page)->counted, own->calls_counted);
    atomic_store(&preload_page_calls(page)->joining, own->joining);
    atomic_store(&page->collectives_under_way, own->under_way);
}

static void publish_communicator(const struct collectives *own, int i, struct preload_page *page)
{
    struct preload_communicator *shown = &page->communicators[i];
    if (atomic_load(&shown->id) != own->communicators[i].id) {
        atomic_store(&shown->id, 0);
        atomic_store(&shown->allowed, 0);
    }
    atomic_store(&shown->launched, own->communicators[i].launched);
    atomic_store(&shown->n_ranks, own->communicators[i].n_ranks);
    atomic_store(&shown->place, own->communicators[i].place);
    atomic_store(&shown->id, own->communicators[i].id);
}

static void publish_channel(const struct collectives *own, int i, struct preload_page *page)
{
    const struct channel *channel = &own->channels[i];
    struct preload_channel *shown = &preload_page_calls(page)->channels[i];
    if (atomic_load(&shown->communicator) != channel->communicator ||
        atomic_load(&shown->ends) != channel->ends) {
        atomic_store(&shown->communicator, 0);
        atomic_store(&shown->ends, channel->ends);
    }
    atomic_store(&shown->launched, channel->launched);
    atomic_store(&shown->communicator, channel->communicator);
}

void collectives_publish(struct process_state *state, struct preload_page *page)
{
    const struct collectives *own = &state->collectives;
    if (atomic_load_explicit(&has_others, memory_order_relaxed))
        atomic_fetch_or(&page->flags, PRELOAD_OTHER_COLLECTIVES);
    for (int i = 0; i < PRELOAD_COMMUNICATORS_MAX; i++)
        publish_communicator(own, i, page);
    for (int i = 0; i < PRELOAD_CHANNELS_MAX; i++)
        publish_channel(own, i, page);
    publish_calls(own, page);
    atomic_fetch_or(&page->flags, PRELOAD_SEES_COLLECTIVES); /* all of them are there */
}

/* ---- the hold ---- */

/* Returns 0 if the call was let in, or the number of the hold. With the lock. */
static uint32_t try_to_enter(struct process_state *state, bool is_ever_held)
{
    struct collectives *own = &state->collectives;
    struct preload_page *page = process_page(state);
    own->under_way++;
    publish_calls(own, page);
    uint32_t hold = is_ever_held ? atomic_load(&page->collectives_held) : 0;
    if (!hold || cut_is_behind(page, own->calls_begun)) {
        own->calls_begun++;
        return 0;
    }
    own->under_way--;
    publish_calls(own, page);
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
    group.is_closed = group.is_joining = false;
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

void collectives_join(void)
{
    enter_call(false);
    struct process_state *state = group.is_counted ? process_state_peek() : NULL;
    if (!state || group.is_joining)
        return;
    group.is_joining = true;
    futex_lock(&state->lock);
    state->collectives.joining++;
    publish_calls(&state->collectives, process_page(state));
    futex_unlock(&state->lock);
}

/* With the lock. */
static void close_call(struct process_state *state)
{
    if (!group.is_closed)
        state->collectives.calls_counted++;
    group.is_closed = true;
}

void collectives_close(void)
{
    struct process_state *state = group.is_counted ? process_state_peek() : NULL;
    if (!state || group.depth != 1)
        return;
    futex_lock(&state->lock);
    close_call(state);
    publish_calls(&state->collectives, process_page(state));
    futex_unlock(&state->lock);
}

void collectives_leave(void)
{
    if (group.depth == 0 || --group.depth > 0)
        return;
    struct process_state *state = group.is_counted ? process_state_peek() : NULL;
    if (!state)
        return;
    futex_lock(&state->lock);
    close_call(state);
    if (state->collectives.under_way) /* not in the child of a fork */
        state->collectives.under_way--;
    if (group.is_joining && state->collectives.joining)
        state->collectives.joining--;
    publish_calls(&state->collectives, process_page(state));
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

static struct communicator *find_by_id(struct process_state *state, uint64_t id)
{
    for (int i = 0; i < PRELOAD_COMMUNICATORS_MAX; i++)
        if (state->collectives.communicators[i].id == id)
            return &state->collectives.communicators[i];
    return NULL;
}

static void show_communicator(struct process_state *state, const struct communicator *communicator)
{
    publish_communicator(&state->collectives,
        (int)(communicator - state->collectives.communicators), process_page(state));
}

/* Outside a lock: NCCL may take some time, and calls the driver. */
static void know_size(struct process_state *state, void *handle, measure_communicator *measure)
{
    futex_lock(&state->lock);
    const struct communicator *known = find_communicator(state, handle);
    bool is_known = !known || (known->n_ranks && known->place);
    futex_unlock(&state->lock);
    if (is_known)
        return;
    struct communicator_size size = measure(handle);
    futex_lock(&state->lock);
    struct communicator *communicator = find_communicator(state, handle);
    if (communicator) {
        communicator->n_ranks = size.n_ranks;
        communicator->place = size.place;
        show_communicator(state, communicator);
    }
    futex_unlock(&state->lock);
}

void collectives_note_communicator(void *handle, uint64_t id, struct communicator_size size)
{
    struct process_state *state = process_state_get();
    if (!state || !handle)
        return;
    futex_lock(&state->lock);
    struct communicator *place = find_communicator(state, NULL);
    if (find_by_id(state, id)) /* two ranks in one process */
        place = NULL;
    if (place) {
        *place = (struct communicator){
            .handle = handle, .id = id, .n_ranks = size.n_ranks, .place = size.place};
        show_communicator(state, place);
    }
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

static void forget_channels(struct process_state *state, uint64_t communicator)
{
    struct collectives *own = &state->collectives;
    for (int i = 0; i < PRELOAD_CHANNELS_MAX; i++) {
        if (own->channels[i].communicator != communicator)
            continue;
        own->channels[i] = (struct channel){0};
        publish_channel(own, i, process_page(state));
    }
}

void collectives_forget_communicator(void *handle)
{
    struct process_state *state = process_state_peek();
    if (!state || !handle)
        return;
    futex_lock(&state->lock);
    struct communicator *communicator = find_communicator(state, handle);
    if (communicator) {
        forget_channels(state, communicator->id);
        *communicator = (struct communicator){0};
        show_communicator(state, communicator);
    }
    futex_unlock(&state->lock);
}

/* ---- launches ---- */

/* Returns false when there is no place for it. With the lock. */
static bool count_message(
    struct process_state *state, uint64_t communicator, uint32_t ends, uint32_t n)
{
    struct collectives *own = &state->collectives;
    int at = -1;
    for (int i = 0; i < PRELOAD_CHANNELS_MAX; i++) {
        const struct channel *channel = &own->channels[i];
        bool is_it = channel->communicator == communicator && channel->ends == ends;
        if (is_it || (!channel->communicator && at < 0))
            at = i;
        if (is_it)
            break;
    }
    if (at < 0)
        return false;
    own->channels[at] = (struct channel){communicator, own->channels[at].launched + n, ends};
    publish_channel(own, at, process_page(state));
    return true;
}

/* With the lock. */
static bool count_launch(struct process_state *state, const struct graph_launch *launch)
{
    struct communicator *communicator = find_by_id(state, launch->communicator);
    if (!communicator)
        return false;
    if (launch->ends)
        return count_message(state, launch->communicator, launch->ends, launch->count);
    communicator->launched += launch->count;
    show_communicator(state, communicator);
    return true;
}

/* Returns false if it cannot be named: its communicator, or the place of this process in it, is not
 * known. With the lock. */
static bool name_launch(struct process_state *state, const void *handle, struct message message,
    struct graph_launch *ret)
{
    const struct communicator *communicator = handle ? find_communicator(state, handle) : NULL;
    if (!communicator)
        return false;
    *ret = (struct graph_launch){.communicator = communicator->id, .count = 1};
    if (message.kind == MESSAGE_NONE)
        return true;
    uint32_t own = communicator->place - 1, peer = (uint32_t)message.peer;
    if (!communicator->place || own > PRELOAD_PLACES_MAX || peer > PRELOAD_PLACES_MAX)
        return false;
    if (own == peer) /* within its own group: nothing waits for it */
        ret->count = 0;
    else
        ret->ends = message.kind == MESSAGE_SENT ? message_ends(own, peer)
                                                 : message_ends(peer, own);
    return true;
}

void collectives_add(
    void *handle, struct message message, uint64_t capture, measure_communicator *measure)
{
    struct process_state *state = group.is_counted ? process_state_peek() : NULL;
    struct graph_launch launch;
    if (!state)
        return;
    if (handle)
        know_size(state, handle, measure);
    futex_lock(&state->lock);
    bool is_named = name_launch(state, handle, message, &launch);
    bool is_counted = is_named && (!launch.count || count_launch(state, &launch));
    if (is_counted && launch.count && capture) {
        is_counted = graph_add(&state->collectives.graphs, GRAPH_CAPTURE, capture, &launch);
        atomic_store(&has_graphs, true);
    }
    if (group.depth == 1)
        close_call(state);
    publish_calls(&state->collectives, process_page(state));
    futex_unlock(&state->lock);
    if (!is_counted)
        collectives_note_other();
}

/* ---- CUDA graphs ---- */

bool collectives_are_in_graphs(void)
{
    return atomic_load_explicit(&has_graphs, memory_order_relaxed);
}

/* Those that went wrong have no number any more. */
void collectives_end_capture(uint64_t capture, void *graph)
{
    struct process_state *state = process_state_peek();
    if (!state)
        return;
    struct graph_collectives *graphs = &state->collectives.graphs;
    futex_lock(&state->lock);
    bool is_whole = !graph || graph_copy(graphs, GRAPH_CAPTURE, capture, GRAPH_MADE,
                                  (uint64_t)(uintptr_t)graph);
    graph_forget(graphs, GRAPH_CAPTURE, capture);
    if (!atomic_load(&state->captures))
        graph_forget_all(graphs, GRAPH_CAPTURE);
    futex_unlock(&state->lock);
    if (!is_whole)
        collectives_note_other();
}

void collectives_instantiate(void *graph, void *executable)
{
    struct process_state *state = process_state_peek();
    if (!state)
        return;
    futex_lock(&state->lock);
    bool is_whole = graph_copy(&state->collectives.graphs, GRAPH_MADE, (uint64_t)(uintptr_t)graph,
        GRAPH_EXECUTABLE, (uint64_t)(uintptr_t)executable);
    futex_unlock(&state->lock);
    if (!is_whole)
        collectives_note_other();
}

void collectives_forget_graph(enum graph_kind kind, void *handle)
{
    struct process_state *state = process_state_peek();
    if (!state)
        return;
    futex_lock(&state->lock);
    graph_forget(&state->collectives.graphs, kind, (uint64_t)(uintptr_t)handle);
    futex_unlock(&state->lock);
}

bool collectives_has_graph(void *executable)
{
    struct process_state *state = process_state_peek();
    if (!state)
        return false;
    futex_lock(&state->lock);
    bool has = graph_find(
        &state->collectives.graphs, GRAPH_EXECUTABLE, (uint64_t)(uintptr_t)executable);
    futex_unlock(&state->lock);
    return has;
}

void collectives_add_graph(void *executable)
{
    struct process_state *state = group.is_counted ? process_state_peek() : NULL;
    bool is_counted = true;
    if (!state)
        return;
    futex_lock(&state->lock);
    const struct graph *graph = graph_find(
        &state->collectives.graphs, GRAPH_EXECUTABLE, (uint64_t)(uintptr_t)executable);
    for (size_t i = 0; graph && i < graph->n; i++)
        is_counted &= count_launch(state, &graph->launches[i]);
    close_call(state);
    publish_calls(&state->collectives, process_page(state));
    futex_unlock(&state->lock);
    if (!is_counted)
        collectives_note_other();
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
