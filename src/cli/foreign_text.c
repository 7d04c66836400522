/* SPDX-License-Identifier: Apache-2.0 */
/* Image names, labels and command lines come from others, and are printed on a terminal. */
#include "cli/foreign_text.h"

#include <stdio.h>

#include "base/text.h"

void foreign_text_copy(const char *text, char *ret_text, size_t size)
{
    snprintf(ret_text, size, "%s", text);
    text_make_printable(ret_text, '?');
}
