/* SPDX-License-Identifier: Apache-2.0 */
/* A list of users: few share a task of a catalogue. */
#include "sim/learned_runs.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"

bool learned_runs_knows(const struct learned_runs *runs, uint32_t uid)
{
    for (size_t i = 0; i < runs->n; i++)
        if (runs->uids[i] == uid)
            return true;
    return false;
}

int learned_runs_note(struct learned_runs *runs, uint32_t uid)
{
    if (learned_runs_knows(runs, uid))
        return 0;
    if (ARRAY_RESERVE(runs->uids, runs->capacity, runs->n + 1) < 0)
        return -ENOMEM;
    runs->uids[runs->n++] = uid;
    return 1;
}

void learned_runs_fini(struct learned_runs *runs)
{
    free(runs->uids);
    *runs = (struct learned_runs){0};
}
