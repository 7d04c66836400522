/* SPDX-License-Identifier: Apache-2.0 */
/* Resolves folders relative to /proc/self/exe. */
#include "base/beside.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool beside_self(char ret_path[static PATH_MAX])
{
    ssize_t n = readlink("/proc/self/exe", ret_path, PATH_MAX - 1);
    if (n <= 0)
        return false;
    ret_path[n] = '\0';
    return true;
}

int beside_find(const char *const *places, size_t count, const char *name, char *path, size_t size)
{
    char folder[PATH_MAX], place[2 * PATH_MAX], found[PATH_MAX];
    if (!beside_self(folder))
        return -ENOENT;
    *strrchr(folder, '/') = '\0';
    for (size_t i = 0; i < count; i++) {
        int written = snprintf(place, sizeof place, "%s/%s/%s", folder, places[i], name);
        if (written >= (int)sizeof place || !realpath(place, found) || strlen(found) >= size)
            continue;
        strcpy(path, found);
        return 0;
    }
    return -ENOENT;
}
