/* SPDX-License-Identifier: Apache-2.0 */
/* The last crashes of jobs by a lack of GPU memory. Each is in all reports of some minutes, so that
 * a controller learns of it that was not reached at first. */
#include "base/clock.h"
#include "daemon/node/node_state.h"

#define CRASH_REPORTED_US (600 * SECOND_US) /* chosen: the controller may be restarted meanwhile */

void node_crash_note(struct node *node, const struct node_crash *crash)
{
    node->crashes[node->n_crashes++ % CRASHES_KEPT] = (struct node_crash_kept){
        *crash, clock_monotonic_us()};
}

size_t node_crashes_list(const struct node *node, struct node_crash ret_list[CRASHES_KEPT])
{
    size_t n = 0, known = node->n_crashes < CRASHES_KEPT ? node->n_crashes : CRASHES_KEPT;
    for (size_t i = 0; i < known; i++)
        if (clock_monotonic_us() - node->crashes[i].at_us < CRASH_REPORTED_US)
            ret_list[n++] = node->crashes[i].crash;
    return n;
}
