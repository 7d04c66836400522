/* SPDX-License-Identifier: Apache-2.0 */
/* Formats error messages: see fault.h. */
#include "base/fault.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int fault_set(struct fault *fault, int errnum, const char *format, ...)
{
    if (fault) {
        va_list args;
        va_start(args, format);
        vsnprintf(fault->text, sizeof fault->text, format, args);
        va_end(args);
    }
    return -errnum;
}

int fault_prefix(struct fault *fault, int r, const char *format, ...)
{
    if (fault) {
        char before[sizeof fault->text], after[sizeof fault->text];
        va_list args;
        va_start(args, format);
        vsnprintf(before, sizeof before, format, args);
        va_end(args);
        memcpy(after, fault->text, sizeof after);
        size_t n = strnlen(before, sizeof before - 3);
        snprintf(fault->text, sizeof fault->text, "%.*s: %.*s", (int)n, before,
            (int)(sizeof after - n - 3), after);
    }
    return r;
}
