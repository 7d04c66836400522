/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the library's state in a process with the first call of CUDA: memory for it, a connection,
 * the daemon's page. */
#include "preload/process_state.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "preload/call_stubs.h"
#include "preload/connection.h"
#include "preload/futex.h"
#include "preload/step_watch.h"

enum status { FRESH, BEGINNING, READY };

/* A daemon that is alive answers within milliseconds. One that is new is asked from within a call
 * of CUDA, which it must not hold up; if its answer comes later, the next call takes it. */
enum { WELCOME_WAIT_MS = 1000, WELCOME_AGAIN_MS = 20, HELLO_AGAIN_MS = 2000, BEAT_MS = 1000 };

static _Atomic(struct process_state *) state_memory;

uint64_t coarse_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static struct process_state *create_memory(void)
{
    struct process_state *none = NULL;
    void *room = mmap(NULL, sizeof(struct process_state), PROT_READ | PROT_WRITE,
        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED)
        return NULL;
    if (madvise(room, sizeof(struct process_state), MADV_WIPEONFORK) == 0 &&
        atomic_compare_exchange_strong(&state_memory, &none, room))
        return room;
    munmap(room, sizeof(struct process_state));
    return none; /* another thread's, or NULL */
}

/* ---- the page ---- */

void process_publish(struct process_state *state, int device)
{
    const struct ledger_device *sums = &state->ledger.devices[device];
    struct preload_page *page = process_page(state);
    struct preload_device *shown = &page->devices[device];
    uint64_t pool_held = 0, pool_peak = 0;
    for (int i = 0; i < POOLS_MAX; i++) {
        if (!state->pools[i].pool || state->pools[i].device != device)
            continue;
        pool_held += state->pools[i].held_bytes;
        pool_peak += state->pools[i].peak_bytes;
    }
    memcpy(shown->uuid, state->uuids[device], sizeof(shown->uuid));
    atomic_store_explicit(&shown->held_bytes, sums->held_bytes, memory_order_relaxed);
    atomic_store_explicit(&shown->peak_bytes, sums->peak_bytes, memory_order_relaxed);
    if (sums->held_bytes > atomic_load_explicit(&shown->window_peak_bytes, memory_order_relaxed))
        atomic_store_explicit(&shown->window_peak_bytes, sums->held_bytes, memory_order_relaxed);
    atomic_store_explicit(&shown->pool_held_bytes, pool_held, memory_order_relaxed);
    if (pool_peak > atomic_load_explicit(&shown->pool_peak_bytes, memory_order_relaxed))
        atomic_store_explicit(&shown->pool_peak_bytes, pool_peak, memory_order_relaxed);
    if (state->ledger.incomplete)
        atomic_fetch_or(&page->flags, PRELOAD_INCOMPLETE);
}

/* Used until there is a daemon's. */
static struct preload_page *create_page(void)
{
    void *page = mmap(
        NULL, PRELOAD_PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return page == MAP_FAILED ? NULL : page;
}

/* Counters that only this process keeps go on in the new page. The old one stays mapped: a thread
 * may be between its two looks at it. */
static void take_page(struct process_state *state, int fd)
{
    struct preload_page *old = process_page(state);
    struct preload_page *page = mmap(
        NULL, PRELOAD_PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (page == MAP_FAILED)
        return;
    if (page->magic != PRELOAD_PAGE_MAGIC || page->version != PRELOAD_PAGE_VERSION) {
        munmap(page, PRELOAD_PAGE_SIZE);
        return;
    }
    atomic_store(&page->flags, atomic_load(&old->flags) & ~(uint32_t)PRELOAD_SEES_COLLECTIVES);
    atomic_store(&page->failures, atomic_load(&old->failures));
    atomic_store(&page->waits, atomic_load(&old->waits));
    atomic_store(&page->waited_ms, atomic_load(&old->waited_ms));
    atomic_store(&page->beat_ms, coarse_ms());
    copy_room_drop(&state->room); /* of an order that has ended with its daemon */
    atomic_store(&state->carrier.kept.is_recalled, 1);
    carrier_publish(state, page);
    collectives_publish(state, page);
    step_watch_publish(state, page);
    atomic_store_explicit(&state->page, page, memory_order_release);
    call_stubs_use(page);
    for (int i = 0; i < PRELOAD_DEVICES_MAX; i++)
        process_publish(state, i);
}

/* ---- the connection ---- */

static void hang_up(struct process_state *state)
{
    connection_close(state->daemon);
    state->daemon = NULL;
}

static void say_hello(struct process_state *state)
{
    struct preload_message hello = preload_message_of(PRELOAD_HELLO);
    state->hello_ms = coarse_ms();
    state->daemon = connection_open();
    if (state->daemon && !connection_send(state->daemon, &hello))
        hang_up(state);
}

/* Takes what is handed over, or, without a descriptor, gives back what was. A child that is forked
 * now must not keep the memory: connection.c closes its descriptor there. */
static void keep_room(struct process_state *state, const struct preload_message *message, int fd)
{
    copy_room_drop(&state->room);
    bool is_place = message->reason > PRELOAD_PLACE_OWN && message->reason < PRELOAD_PLACES;
    if (fd < 0) {
        if (message->reason == PRELOAD_PLACE_POOL)
            atomic_store(&state->carrier.kept.is_recalled, 1);
        return;
    }
    if (!is_place) {
        close(fd);
        return;
    }
    state->room = (struct copy_room){
        (enum preload_place)message->reason, fd, message->bytes, message->held_bytes};
    connection_keep_from_children(fd);
}

/* Takes a WELCOME or ROOM that came, and hangs up when the connection is no longer there. Returns
 * whether one came. */
static bool listen_to_daemon(struct process_state *state, int ms)
{
    struct preload_message message;
    int page = -1;
    int r = state->daemon ? connection_receive(state->daemon, ms, &message, &page) : 0;
    if (r == 1 && message.kind == PRELOAD_WELCOME && page >= 0)
        take_page(state, page);
    else if (r == 1 && message.kind == PRELOAD_ROOM)
        keep_room(state, &message, page);
    else if (page >= 0)
        close(page);
    if (r < 0)
        hang_up(state);
    return r == 1;
}

void process_take_room(struct process_state *state, struct copy_room *ret_room)
{
    futex_lock(&state->lock);
    while (listen_to_daemon(state, 0))
        continue;
    *ret_room = state->room;
    state->room = (struct copy_room){0};
    futex_unlock(&state->lock);
}

void process_renew_connection(struct process_state *state)
{
    listen_to_daemon(state, 0);
    if (state->daemon || coarse_ms() - state->hello_ms < HELLO_AGAIN_MS)
        return;
    say_hello(state);
    listen_to_daemon(state, WELCOME_AGAIN_MS);
}

bool process_is_due(_Atomic uint64_t *last_ms, uint64_t period_ms)
{
    uint64_t now = coarse_ms(), last = atomic_load_explicit(last_ms, memory_order_relaxed);
    return now - last >= period_ms && atomic_compare_exchange_strong(last_ms, &last, now);
}

void process_beat(struct process_state *state)
{
    if (!process_is_due(&state->beat_ms, BEAT_MS))
        return;
    int error = errno;
    atomic_store(&process_page(state)->beat_ms, coarse_ms());
    futex_lock(&state->lock);
    process_renew_connection(state);
    futex_unlock(&state->lock);
    errno = error;
}

/* ---- its life ---- */

/* Returns whether there is a state now. */
static bool begin_state(struct process_state *state)
{
    struct preload_page *page = create_page();
    if (!page)
        return false;
    atomic_store(&state->page, page);
    call_stubs_use(page);
    connection_read_environment();
    say_hello(state);
    listen_to_daemon(state, WELCOME_WAIT_MS);
    return true;
}

struct process_state *process_state_peek(void)
{
    struct process_state *state = atomic_load_explicit(&state_memory, memory_order_acquire);
    return state && atomic_load_explicit(&state->status, memory_order_acquire) == READY ? state
                                                                                        : NULL;
}

struct process_state *process_state_get(void)
{
    struct process_state *state = process_state_peek();
    if (state)
        return state;
    state = atomic_load(&state_memory);
    if (!state)
        state = create_memory();
    if (!state)
        return NULL;
    uint32_t fresh = FRESH;
    if (atomic_compare_exchange_strong(&state->status, &fresh, BEGINNING)) {
        int error = errno;
        atomic_store(&state->status, begin_state(state) ? READY : FRESH);
        futex_wake_all(&state->status);
        errno = error;
    }
    while (atomic_load(&state->status) == BEGINNING)
        futex_wait(&state->status, BEGINNING, 1000);
    return process_state_peek();
}

void process_note_use(enum preload_flag flag)
{
    struct process_state *state = process_state_get();
    if (state)
        atomic_fetch_or(&process_page(state)->flags, flag);
}
