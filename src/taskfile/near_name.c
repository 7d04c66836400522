/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the option that a mistyped name may mean: the candidate with the fewest typing mistakes, at
 * most one, or two in names of eight letters and more. Example: "gpsu" swaps two letters of "gpus",
 * but "device" is not "service". */
#include <string.h>

#include "taskfile/option.h"

enum { NAME_MAX_SIZE = 32, LONG_NAME = 8 }; /* chosen: of four letters one may be wrong */

static size_t min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Restricted Damerau-Levenshtein distance (insert, delete, replace, swap neighbours). */
static size_t typing_distance(const char *a, const char *b)
{
    size_t row[3][NAME_MAX_SIZE + 1];
    size_t n = strlen(a), m = strlen(b);
    for (size_t j = 0; j <= m; j++)
        row[0][j] = j;
    for (size_t i = 1; i <= n; i++) {
        size_t *now = row[i % 3], *last = row[(i + 2) % 3], *before = row[(i + 1) % 3];
        now[0] = i;
        for (size_t j = 1; j <= m; j++) {
            now[j] = min_size(
                last[j - 1] + (a[i - 1] != b[j - 1]), min_size(last[j], now[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                now[j] = min_size(now[j], before[j - 2] + 1);
        }
    }
    return row[n % 3][m];
}

void near_name_try(struct near_name *near, const char *name, const char *candidate)
{
    size_t n = strlen(name), m = strlen(candidate);
    if (n > NAME_MAX_SIZE || m > NAME_MAX_SIZE || n < 2)
        return;
    bool is_beginning = n > 2 && strncmp(candidate, name, n) == 0;
    size_t distance = is_beginning ? 1 : typing_distance(name, candidate);
    size_t few = min_size(n, m) < LONG_NAME ? 1 : 2;
    if (distance <= few && (!near->best || distance < near->distance))
        *near = (struct near_name){candidate, distance};
}
