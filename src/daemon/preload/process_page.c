/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this part read of the page of a process, and set there (preload/page.h). */
#include <ctype.h>
#include <string.h>

#include "daemon/preload/preload_state.h"
#include "preload/futex.h"

bool preload_is_uuid(const char *text, const unsigned char *uuid)
{
    static const char digits[] = "0123456789abcdef";
    const char *at = strchr(text, '-');
    for (int i = 0; at && i < 16; i++) {
        at += *at == '-';
        if (tolower(at[0]) != digits[uuid[i] >> 4] || tolower(at[1]) != digits[uuid[i] & 15])
            return false;
        at += 2;
    }
    return at && *at == '\0';
}

void preload_set_page_gate(struct preload_page *page, bool is_closed)
{
    atomic_store(&page->gate, is_closed ? PRELOAD_GATE_CLOSED : PRELOAD_GATE_OPEN);
    if (!is_closed)
        futex_wake_all(&page->gate);
}
