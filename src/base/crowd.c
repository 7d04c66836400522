/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the network that most connections come from. Each is compared with all: the callers have
 * some hundred. */
#include "base/crowd.h"

uint64_t crowd_find(const uint64_t *networks, int n, int *ret_most)
{
    uint64_t crowd = 0;
    *ret_most = 0;
    for (int i = 0; i < n; i++) {
        int count = 0;
        for (int k = 0; k < n; k++)
            count += networks[k] == networks[i];
        if (count > *ret_most) {
            *ret_most = count;
            crowd = networks[i];
        }
    }
    return crowd;
}
