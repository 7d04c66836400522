/* SPDX-License-Identifier: Apache-2.0 */
/* The process's side of the gate: a counter of calls and a futex in the shared page. */
#include "preload/gate.h"

#include <errno.h>

#include "preload/call_stubs.h"
#include "preload/futex.h"

/* How long a thread at the closed gate sleeps before it looks for another daemon. */
enum { LOOK_AGAIN_MS = 1000 };

static void wait_for_opening(struct process_state *state, struct preload_page *page)
{
    int error = errno;
    atomic_fetch_add(&page->at_gate, 1);
    futex_wait(&page->gate, PRELOAD_GATE_CLOSED, LOOK_AGAIN_MS);
    atomic_fetch_sub(&page->at_gate, 1);
    futex_lock(&state->lock);
    process_renew_connection(state);
    futex_unlock(&state->lock);
    errno = error;
}

/* The call is counted before it reads the gate, and the daemon that closes the gate reads the
 * count afterwards: one of the two sees the other. */
struct preload_page *gate_enter(struct process_state *state)
{
    for (;;) {
        struct preload_page *page = process_page(state);
        calls_enter();
        atomic_fetch_add(&page->in_flight, 1);
        if (atomic_load(&page->gate) != PRELOAD_GATE_CLOSED)
            return page;
        gate_leave(page);
        wait_for_opening(state, page);
    }
}

void gate_wait(struct process_state *state)
{
    struct preload_page *page = process_page(state);
    while (atomic_load(&page->gate) == PRELOAD_GATE_CLOSED) {
        wait_for_opening(state, page);
        page = process_page(state);
    }
}

void gate_leave(struct preload_page *page)
{
    atomic_fetch_sub_explicit(&page->in_flight, 1, memory_order_release);
    calls_leave();
}
