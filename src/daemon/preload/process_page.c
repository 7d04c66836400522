/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this part read of the page of a process, and set there (preload/page.h). */
#include "daemon/preload/preload_state.h"
#include "preload/futex.h"

void preload_set_page_gate(struct preload_page *page, bool is_closed)
{
    atomic_store(&page->gate, is_closed ? PRELOAD_GATE_CLOSED : PRELOAD_GATE_OPEN);
    if (!is_closed)
        futex_wake_all(&page->gate);
}
