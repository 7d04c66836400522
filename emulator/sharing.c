/* SPDX-License-Identifier: Apache-2.0 */
#include "emulator/sharing.h"

#include <math.h>

/*
 * Stated assumptions. A task alone on a whole GPU has speed 1 and demands (gract, smact, dram).
 * Speed is 1 / slowdown.
 *
 * Alone on capacity c (a MIG slice) with at most the share p of its SMs:
 *     alone_i = max(1, smact_i / (c p_i), dram_i / c)
 *
 * MPS clients run their kernels side by side. They slow down when the SMs or the bandwidth that
 * they ask for together exceed what the GPU has, and a little even when all fits, for the cache
 * and the bandwidth that the others take:
 *     mps_i = max(alone_i, sum smact / c, sum dram / c)
 *             * (1 + BANDWIDTH_COST * (sum dram - dram_i) / c)
 *
 * Processes without MPS take turns: their kernels never overlap, so the times for which they keep
 * the GPU busy add up, and each further process costs a context switch per turn. All MPS clients
 * together count as one process:
 *     turns = max(1, sum over processes of min(1, gract * alone))
 *             * (1 + SWITCH_COST * (processes - 1))
 *     slowdown_i = (alone_i, or mps_i for an MPS client) * turns
 *
 * The constants are set so that these agree with what was measured on an A100-40GB ("An Analysis of
 * Collocation on GPUs for Deep Learning Training", EuroMLSys 2024, figures 1-3): seven small tasks
 * take 2 to 2.5 times as long under MPS and on 1g.5gb instances (about 3 times the throughput) and
 * longer in turns; two large ones gain 1.2 to 1.3 under MPS and nothing in turns.
 */
static const double SWITCH_COST = 0.03;
static const double BANDWIDTH_COST = 0.05;

static double alone(double capacity, const struct member *m)
{
    return fmax(1, fmax(m->demand.smact / (capacity * m->share), m->demand.dram / capacity));
}

static double mps_slowdown(
    double capacity, const struct member *members, int count, const struct member *m)
{
    double smact = 0, dram = 0;

    for (int i = 0; i < count; i++) {
        if (members[i].mps) {
            smact += members[i].demand.smact;
            dram += members[i].demand.dram;
        }
    }
    double crowded = fmax(alone(capacity, m), fmax(smact, dram) / capacity);
    return crowded * (1 + BANDWIDTH_COST * (dram - m->demand.dram) / capacity);
}

static double turns(double capacity, const struct member *members, int count)
{
    double busy = 0, mps_busy = 0;
    int processes = 0;

    for (int i = 0; i < count; i++) {
        double own = fmin(1, members[i].demand.gract * alone(capacity, &members[i]));

        if (members[i].mps) {
            mps_busy += own;
        } else if (own > 0) {
            busy += own;
            processes++;
        }
    }
    if (mps_busy > 0) {
        busy += fmin(1, mps_busy);
        processes++;
    }
    return processes > 1 ? fmax(1, busy) * (1 + SWITCH_COST * (processes - 1)) : 1;
}

void sharing_solve(double capacity, struct member *members, int count)
{
    double all = turns(capacity, members, count);

    for (int i = 0; i < count; i++) {
        struct member *m = &members[i];
        double own = m->mps ? mps_slowdown(capacity, members, count, m) : alone(capacity, m);

        m->speed = 1 / (own * all);
    }
}

void sharing_complete(struct activity *demand, double peak_w)
{
    if (demand->gract < 0)
        demand->gract = fmin(1, 0.2 + 0.9 * demand->smact);
    if (demand->smocc < 0)
        demand->smocc = 0.45 * demand->smact;
    if (demand->dram < 0)
        demand->dram = 0.5 * demand->smact;
    /* Such that four A100s spend on the thesis's 60-task trace what its table 6.6 says, about 33 MJ
     * without sharing. */
    if (demand->power_w < 0)
        demand->power_w = 0.72 * peak_w * (0.25 * demand->gract + 0.75 * demand->smact);
    if (demand->pcie_rx_mib < 0)
        demand->pcie_rx_mib = 400;
}

void activity_add(struct activity *total, const struct activity *rate, double factor)
{
    total->gract += rate->gract * factor;
    total->smact += rate->smact * factor;
    total->smocc += rate->smocc * factor;
    total->dram += rate->dram * factor;
    total->power_w += rate->power_w * factor;
    total->pcie_rx_mib += rate->pcie_rx_mib * factor;
}
