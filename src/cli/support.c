#include "cli/support.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int support_find(const char *name, char *path, size_t size)
{
    static const char *const places[] = {"", "/../share/colloc", "/../../.."};
    char folder[PATH_MAX], place[2 * PATH_MAX], found[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", folder, sizeof folder - 1);
    if (n <= 0)
        return -ENOENT;
    folder[n] = '\0';
    *strrchr(folder, '/') = '\0';
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (snprintf(place, sizeof place, "%s%s/%s", folder, places[i], name) < (int)sizeof place &&
            realpath(place, found) && strlen(found) < size) {
            strcpy(path, found);
            return 0;
        }
    return -ENOENT;
}
