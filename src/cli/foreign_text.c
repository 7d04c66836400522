/* SPDX-License-Identifier: Apache-2.0 */
/* Image names, labels and command lines come from others, and are printed on a terminal. */
#include "cli/foreign_text.h"

#include <stdio.h>

#include "base/text.h"

void foreign_text_clean(char *text, char instead)
{
    text_mend(text);
    for (char *at = text; *at; at++)
        if ((unsigned char)*at < ' ' || *at == 0x7f)
            *at = instead;
}

void foreign_text_copy(const char *text, char *ret_text, size_t size)
{
    snprintf(ret_text, size, "%s", text);
    foreign_text_clean(ret_text, '?');
}
