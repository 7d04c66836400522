/* SPDX-License-Identifier: Apache-2.0 */
/* Joins lists of names for messages: "must be one of a, b, c". */
#include "training/name_list.h"

#include <stdio.h>

const char *name_list_join(const char *const *names, char buffer[NAME_LIST_MAX_SIZE])
{
    size_t used = 0;
    buffer[0] = '\0';
    for (size_t i = 0; names[i] && used < NAME_LIST_MAX_SIZE; i++)
        used += (size_t)snprintf(
            buffer + used, NAME_LIST_MAX_SIZE - used, "%s%s", i ? ", " : "", names[i]);
    return buffer;
}
