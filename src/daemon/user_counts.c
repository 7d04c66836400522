/* SPDX-License-Identifier: Apache-2.0 */
/* A list: a server has some hundred users, and it is searched once for each task that ends. */
#include "daemon/user_counts.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"

int user_counts_add(struct user_counts *counts, uint32_t uid, int64_t n)
{
    for (size_t i = 0; i < counts->n; i++)
        if (counts->users[i].uid == uid) {
            counts->users[i].n += n;
            return 0;
        }
    return ARRAY_APPEND(
        counts->users, counts->n, counts->capacity, (struct user_count){.uid = uid, .n = n});
}

uint32_t user_counts_most(const struct user_counts *counts)
{
    const struct user_count *most = &counts->users[0];
    for (size_t i = 1; i < counts->n; i++)
        if (counts->users[i].n > most->n)
            most = &counts->users[i];
    return most->uid;
}

static int compare_counts(const void *a, const void *b)
{
    int64_t left = ((const struct user_count *)a)->n, right = ((const struct user_count *)b)->n;
    return (left > right) - (left < right);
}

/* From the user with the fewest on: what it leaves of its equal part is for the others. */
int64_t user_counts_share(struct user_counts *counts, int64_t limit)
{
    int64_t left = limit;
    if (counts->n > 0)
        qsort(counts->users, counts->n, sizeof *counts->users, compare_counts);
    for (size_t i = 0; i < counts->n; i++) {
        int64_t part = left / (int64_t)(counts->n - i);
        if (counts->users[i].n > part)
            return part > 0 ? part : 1;
        left -= counts->users[i].n;
    }
    return limit;
}

void user_counts_fini(struct user_counts *counts)
{
    free(counts->users);
    *counts = (struct user_counts){0};
}
