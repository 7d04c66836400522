/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the pairs of GPUs that a move needs. The driver restores a process on other GPUs when it is
 * given a pair (old GPU, new GPU) for every GPU of the machine, each once on either side. With
 * fewer pairs it fails, and the process can never be restored (measured on two H200s, driver
 * 580.159.04). So the moves of one task are completed:
 *
 *     four GPUs, move 0 to 2      0 -> 2  1 -> 1  2 -> 0  3 -> 3
 *     moves 0 to 2 and 2 to 3     0 -> 2  1 -> 1  2 -> 3  3 -> 0     a chain's end leads back
 */
#include "checkpoint/gpu_permutation.h"

#include <errno.h>

/* The GPU whose processes go to `gpu`, or -1. */
static int find_source(const int *to, size_t count, int gpu)
{
    for (size_t i = 0; i < count; i++)
        if (to[i] == gpu)
            return (int)i;
    return -1;
}

static int is_injective(const int *to, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (to[i] < -1 || to[i] >= (int)count ||
            (to[i] >= 0 && find_source(to, count, to[i]) != (int)i))
            return 0;
    return 1;
}

int gpu_permutation_complete(int *ret_to, size_t count)
{
    if (!is_injective(ret_to, count))
        return -EINVAL;
    for (size_t i = 0; i < count; i++) {
        if (ret_to[i] >= 0)
            continue;
        int first = (int)i;
        for (int source; (source = find_source(ret_to, count, first)) >= 0;)
            first = source;
        ret_to[i] = first;
    }
    return 0;
}
