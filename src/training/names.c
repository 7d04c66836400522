/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of names in messages: "must be one of a, b, c". */
#include "training/names.h"

#include <stdio.h>

const char *names_join(const char *const *names, char buffer[NAMES_MAX_SIZE])
{
    size_t used = 0;
    buffer[0] = '\0';
    for (size_t i = 0; names[i] && used < NAMES_MAX_SIZE; i++)
        used += (size_t)snprintf(
            buffer + used, NAMES_MAX_SIZE - used, "%s%s", i ? ", " : "", names[i]);
    return buffer;
}
