/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this part read of the page of a process, and set there (preload/page.h). */
#include "daemon/preload/preload_state.h"
#include "preload/futex.h"

void preload_set_page_gate(struct preload_page *page, bool is_closed)
{
    /* What is away is brought back first (carry_orders_heal), whoever opens the gate. */
    if (!is_closed && atomic_load(&page->carry_state) >= PRELOAD_CARRY_COPYING)
        return;
    atomic_store(&page->gate, is_closed ? PRELOAD_GATE_CLOSED : PRELOAD_GATE_OPEN);
    if (is_closed)
        return;
    futex_wake_all(&page->gate);
    atomic_store(&page->collectives_held, 0);
    futex_wake_all(&page->collectives_held);
}
