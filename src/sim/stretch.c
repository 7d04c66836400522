/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a trace twice: first with the given settings, then first come, first served. Tasks have the
 * same ids in both runs, so their times are compared by id. */
#include "sim/stretch.h"

#include <math.h>
#include <stdlib.h>

#include "policy/policies.h"

/* First come, first served: each task has its GPUs to itself, none is preempted. */
static struct simulation in_order(const struct simulation *simulation)
{
    struct simulation fifo = *simulation;
    fifo.settings.policy = &policy_exclusive;
    fifo.settings.preempt = fifo.settings.can_suspend = fifo.settings.can_pause = false;
    fifo.settings.backfill = false;
    fifo.settings.preload = fifo.settings.make_room = fifo.take_turns = false;
    fifo.settings.order = ORDER_FIFO;
    return fifo;
}

/* 0: no task ended in both. */
static double max_ratio(const struct completions *of, const struct completions *to)
{
    double most = 0;
    for (size_t i = 0; i < of->n && i < to->n; i++)
        if (of->jct_s[i] > 0 && to->jct_s[i] > 0)
            most = fmax(most, of->jct_s[i] / to->jct_s[i]);
    return most;
}

int simulate_with_stretch(
    const struct simulation *simulation, struct fault *fault, struct simulation_result *ret_result)
{
    struct completions own = {0}, in_turn = {0};
    struct simulation as_asked = *simulation, fifo = in_order(simulation);
    struct simulation_result fifo_result;
    as_asked.completions = &own;
    fifo.completions = &in_turn;
    int r = simulate_trace(&as_asked, fault, ret_result);
    if (r == 0)
        r = simulate_comparison(&fifo, fault, &fifo_result);
    double most = r == 0 ? max_ratio(&own, &in_turn) : 0;
    if (most > 0)
        ret_result->max_stretch = reading_of(most);
    free(own.jct_s);
    free(in_turn.jct_s);
    return r < 0 ? r : 0;
}
