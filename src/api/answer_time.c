/* SPDX-License-Identifier: Apache-2.0 */
/* The last word of a path says whether GPU memory is copied before the answer. */
#include "api/answer_time.h"

#include <stdbool.h>
#include <string.h>

static bool copies_memory(const char *word, size_t size)
{
    static const char *const verbs[] = {"suspend", "resume", "move"};
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++)
        if (strlen(verbs[i]) == size && memcmp(verbs[i], word, size) == 0)
            return true;
    return false;
}

int answer_time_max_s(const char *path)
{
    size_t size = strcspn(path, "?"), begin = size;
    while (begin > 0 && path[begin - 1] != '/')
        begin--;
    return copies_memory(path + begin, size - begin) ? ANSWER_COPY_MAX_S : ANSWER_MAX_S;
}
