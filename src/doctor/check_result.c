/* SPDX-License-Identifier: Apache-2.0 */
/* A check reports once: it works, or this is wrong and that is to be done. */
#include "doctor/check_result.h"

#include <stdarg.h>
#include <stdio.h>

void doctor_pass(struct doctor_check *check, const char *detail, ...)
{
    va_list arguments;
    va_start(arguments, detail);
    vsnprintf(check->detail, sizeof check->detail, detail, arguments);
    va_end(arguments);
    check->is_ok = true;
    check->advice[0] = '\0';
}

void doctor_fail(struct doctor_check *check, const char *advice, const char *detail, ...)
{
    va_list arguments;
    va_start(arguments, detail);
    vsnprintf(check->detail, sizeof check->detail, detail, arguments);
    va_end(arguments);
    check->is_ok = false;
    snprintf(check->advice, sizeof check->advice, "%s", advice);
}
