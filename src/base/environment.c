/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses entries of the program's environment by how they begin. */
#include "base/environment.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static size_t count_entries(char *const *entries)
{
    size_t n = 0;
    while (entries[n])
        n++;
    return n;
}

static bool begins_with_any(const char *entry, const char *const *beginnings)
{
    for (; *beginnings; beginnings++)
        if (strncmp(entry, *beginnings, strlen(*beginnings)) == 0)
            return true;
    return false;
}

char **environment_make(const char *const *beginnings, bool keeps, char *const *added)
{
    char **list = calloc(count_entries(environ) + count_entries(added) + 1, sizeof *list);
    size_t n = 0;
    for (char **entry = environ; list && *entry; entry++)
        if (begins_with_any(*entry, beginnings) == keeps)
            list[n++] = *entry;
    if (list)
        memcpy(&list[n], added, count_entries(added) * sizeof *added);
    return list;
}
