#include "sharing/sharing.h"

#include <math.h>

/*
 * Speed. A task alone on a whole GPU has speed 1 and demands (gract, smact, dram); speed is 1 / slowdown.
 *
 *     alone_i = max(1, smact_i / S, dram_i / B)      on S of the SMs and B of the bandwidth (a MIG instance)
 *
 * Clients of MPS run side by side. They slow down when more SMs or bandwidth are asked for than there are, and a little
 * for the cache and bandwidth that others take even when all fits:
 *
 *     mps_i = max(alone_i, sum smact / S, sum dram / B) * (1 + bandwidth_cost * (sum dram - dram_i) / B)
 *
 * Processes without MPS take turns: kernels of two processes never overlap, so that the times in which they keep the
 * GPU busy add up, and every further process costs a switch per turn. All clients of MPS together are one process here.
 *
 *     turns = max(1, sum over processes of min(1, gract * alone)) * (1 + switch_cost * (processes - 1))
 *
 *     slowdown_i = (alone_i, or mps_i for a client of MPS) * turns        where there is more than one process
 *
 * Where it does not hold: under MPS a heavy task has been seen to starve a light one; here all clients share what there
 * is in proportion to what they ask for. Constants and what they were held against: data/sharing/laws.txt.
 */
static double alone(double sms, double bandwidth, const struct demand *demand)
{
    return fmax(1, fmax(demand->smact / sms, demand->dram / bandwidth));
}

static struct demand mps_sum(const struct sharer *sharers, int n)
{
    struct demand sum = {0};
    for (int i = 0; i < n; i++) {
        sum.smact += sharers[i].mps ? sharers[i].demand.smact : 0;
        sum.dram += sharers[i].mps ? sharers[i].demand.dram : 0;
    }
    return sum;
}

static double turns(const struct sharing_laws *laws, double sms, double bandwidth, const struct sharer *sharers, int n)
{
    double busy = 0, mps_busy = 0;
    int processes = 0;
    for (int i = 0; i < n; i++) {
        double own = fmin(1, sharers[i].demand.gract * alone(sms, bandwidth, &sharers[i].demand));
        *(sharers[i].mps ? &mps_busy : &busy) += own;
        processes += !sharers[i].mps && own > 0;
    }
    processes += mps_busy > 0;
    return processes > 1 ? fmax(1, busy + fmin(1, mps_busy)) * (1 + laws->switch_cost * (processes - 1)) : 1;
}

void sharing_solve(const struct sharing_laws *laws, double sms, double bandwidth, struct sharer *sharers, int n)
{
    struct demand sum = mps_sum(sharers, n);
    double all = turns(laws, sms, bandwidth, sharers, n), crowded = fmax(sum.smact / sms, sum.dram / bandwidth);
    for (int i = 0; i < n; i++) {
        struct sharer *sharer = &sharers[i];
        double slowdown = alone(sms, bandwidth, &sharer->demand);
        if (sharer->mps)
            slowdown =
                fmax(slowdown, crowded) * (1 + laws->bandwidth_cost * (sum.dram - sharer->demand.dram) / bandwidth);
        sharer->speed = 1 / (slowdown * all);
    }
}

/* An SM that two use at once is active once. */
struct demand sharing_activity(const struct sharing_laws *laws, double sms, double bandwidth,
                               const struct sharer *sharers, int n)
{
    struct demand sum = {0};
    for (int i = 0; i < n; i++) {
        const struct demand *demand = &sharers[i].demand;
        sum.gract += demand->gract * sharers[i].speed;
        sum.smact += demand->smact * sharers[i].speed;
        sum.smocc += demand->smocc * sharers[i].speed;
        sum.dram += demand->dram * sharers[i].speed;
        sum.power_w += demand->power_w * sharers[i].speed;
    }
    sum.gract = fmin(sum.gract, 1);
    sum.smact = fmin(sum.smact, sms);
    sum.smocc = fmin(sum.smocc, sms);
    sum.dram = fmin(sum.dram, bandwidth);
    return sum;
}

/*
 * Power. Full activity adds work_w to what an awake GPU draws, in the shares a quarter for any kernel being there and
 * three quarters for SM activity (assumed, data/traces/tasks.txt). The ratios of SMOCC and DRAM activity to SMACT are
 * assumed there too.
 */
void demand_complete(struct demand *demand, double work_w)
{
    if (isnan(demand->gract))
        demand->gract = fmin(1, 0.2 + 0.9 * demand->smact);
    if (isnan(demand->smocc))
        demand->smocc = 0.45 * demand->smact;
    if (isnan(demand->dram))
        demand->dram = 0.5 * demand->smact;
    if (isnan(demand->power_w))
        demand->power_w = work_w * (0.25 * demand->gract + 0.75 * demand->smact);
}
