/* SPDX-License-Identifier: Apache-2.0 */
#include "sharing/sharing.h"

#include <math.h>
#include <stddef.h>

/*
 * Speed is 1 / slowdown, and 1 for a task alone on a whole GPU as a plain process. There, kernels
 * run for gract of its time and hold smact of all SM-time; for the rest of its time the GPU waits
 * for its launches and data.
 *
 * On a MIG instance, S of the SMs and B of the bandwidth, kernels that would use more take longer;
 * the rest does not:
 *
 *     busy_i  = max(gract_i, smact_i / S, dram_i / B)
 *     alone_i = 1 - gract_i + busy_i
 *
 * Sharers are customers of a closed queue with one server. Each brings its work, which takes stay_i
 * when others are there, then is elsewhere for its rest_i, and comes again:
 *
 *     slowdown_i = max(floor_i, rest_i + stay_i)
 *     stay_i     = work_i * (1 + sum over j != i of (grip_j / grip_i) * there_j)
 *     there_j    = s / max(floor_j, rest_j + s), the chance to find j at the server when i has not
 * made it wait: s = max(work_j, stay_j - work_j * (grip_i / grip_j) * stay_i / slowdown_i)
 *
 * This is approximate mean value analysis (Reiser and Lavenberg, 1980) of discriminatory processor
 * sharing (Kleinrock, 1967); for two alike it is exact. Were sum work / slowdown > 1, more would be
 * served than there is: all are slowed by it then.
 *
 * Plain processes (streams): the server is the whole GPU, time slices give it to each in turn,
 * alike (grip 1).
 *
 *     work_i = busy_i * (1 + switch_cost + cold_cost)      rest_i = alone_i - busy_i      floor_i =
 * alone_i
 *
 * Clients of MPS: the server is the SMs, or the bandwidth where that is scarcer. Kernels of several
 * run at once and cost each other cache. What MPS adds to a launch is hidden as soon as kernels
 * wait anyway. The task that keeps SMs without a gap always has blocks in line, long ones: a light
 * task's kernels wait for them each time.
 *
 *     held_i = max(smact_i / S, dram_i / B)               share_i = smact_i / sum smact
 *     work_i = held_i * (1 + cache_cost * (1 - share_i))   rest_i = alone_i - held_i
 *     grip_i = (smact_i / (1 - smact_i)) ^ grip            floor_i = alone_i + launch_cost * (1 -
 * gract_i)
 *
 * A client held to a part P of the SMs (its active thread percentage) is as on an instance of that
 * size when it is alone, holds no more of the SM-time than before, and what it keeps without a gap
 * is P at most:
 *
 *     alone_i with P * S instead of S                      grip_i with min(smact_i, P)
 *
 * Plain processes beside clients of MPS: all clients are one process among the others; its work is
 * what they do together.
 *
 * How well this holds, and where it does not: docs/measured/sharing.md.
 */
enum { ROUNDS_MAX = 40 };
static const double close_enough = 1e-6;

/* Odds have no end; nothing above 0.9 was measured. */
static const double odds_smact_min = 0.01, odds_smact_max = 0.95;

/* Of two numbers, neither of them NAN: in line, unlike fmax. */
static double larger(double a, double b)
{
    return a > b ? a : b;
}

static double gract_of(const struct demand *demand)
{
    return fmin(1, fmax(demand->gract, fmax(demand->smact, demand->dram)));
}

static double held(double sms, double bandwidth, const struct demand *demand)
{
    return fmax(demand->smact / sms, demand->dram / bandwidth);
}

/* How long kernels run of the time that a task takes on a whole GPU. */
static double busy_alone(double sms, double bandwidth, const struct demand *demand)
{
    return fmax(gract_of(demand), held(sms, bandwidth, demand));
}

static double sum_smact(const struct sharer *sharers, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += sharers[i].mps ? sharers[i].demand.smact : 0;
    return sum;
}

/* How much of the cache the other clients of MPS have. */
static double lost(const struct sharer *sharer, double sum)
{
    return sum > 0 ? 1 - sharer->demand.smact / sum : 0;
}

/* ---- the queue ---- */

static double slowdown(const struct turn *turn, double stay)
{
    return larger(turn->floor, turn->rest + stay);
}

static double stay(const struct sharer *sharers, int n, int i)
{
    const struct turn *own = &sharers[i].turn;
    double crowd = 0, here = own->grip * own->stay / slowdown(own, own->stay);
    for (int j = 0; j < n; j++) {
        const struct turn *turn = &sharers[j].turn;
        if (j == i || turn->work == 0)
            continue;
        double s = larger(turn->work, turn->stay - turn->pull * here);
        crowd += turn->grip * s / slowdown(turn, s);
    }
    return own->work * (1 + crowd / own->grip);
}

/* Sets the stay of all; those without work are not there. Returns by how much all are slower still.
 */
static double serve(struct sharer *sharers, int n)
{
    double change = 1, served = 0;
    for (int i = 0; i < n; i++) {
        struct turn *turn = &sharers[i].turn;
        turn->stay = turn->work;
        turn->pull = turn->work / turn->grip;
    }
    for (int round = 0; round < ROUNDS_MAX && change > close_enough; round++) {
        change = 0;
        for (int i = 0; i < n; i++) {
            struct turn *turn = &sharers[i].turn;
            double before = turn->stay;
            turn->stay = stay(sharers, n, i);
            change = larger(change, fabs(turn->stay - before));
        }
    }
    for (int i = 0; i < n; i++)
        served += sharers[i].turn.work / slowdown(&sharers[i].turn, sharers[i].turn.stay);
    return fmax(1, served);
}

/* ---- who is a customer ---- */

static const struct turn nobody = {.floor = 1, .grip = 1};

static struct turn client(const struct sharing_laws *laws, double sms, double bandwidth,
    const struct sharer *sharer, double sum)
{
    const struct demand *demand = &sharer->demand;
    double cap = sharer->cap > 0 ? fmin(1, sharer->cap) : 1;
    double gract = gract_of(demand), all = held(sms, bandwidth, demand);
    double alone = 1 - gract + busy_alone(sms * cap, bandwidth, demand);
    double smact = fmin(odds_smact_max, fmax(odds_smact_min, fmin(demand->smact, cap)));
    return (struct turn){.work = all * (1 + laws->cache_cost * lost(sharer, sum)),
        .rest = alone - all,
        .floor = alone + laws->launch_cost * (1 - gract),
        .grip = pow(smact / (1 - smact), laws->grip)};
}

/* The clients of MPS among themselves. */
static void solve_clients(
    const struct sharing_laws *laws, double sms, double bandwidth, struct sharer *sharers, int n)
{
    double sum = sum_smact(sharers, n);
    for (int i = 0; i < n; i++)
        sharers[i].turn = sharers[i].mps ? client(laws, sms, bandwidth, &sharers[i], sum) : nobody;
    double all = serve(sharers, n);
    for (int i = 0; i < n; i++)
        if (sharers[i].mps)
            sharers[i].speed = 1 / (all * slowdown(&sharers[i].turn, sharers[i].turn.stay));
}

/* All clients of MPS as one process. */
static struct turn server_of_clients(
    double sms, double bandwidth, const struct sharer *sharers, int n)
{
    double busy = 0;
    for (int i = 0; i < n; i++)
        busy += sharers[i].mps ? busy_alone(sms, bandwidth, &sharers[i].demand) * sharers[i].speed
                               : 0;
    busy = fmin(1, busy);
    return (struct turn){.work = busy, .rest = 1 - busy, .floor = 1, .grip = 1};
}

static struct turn process(double sms, double bandwidth, const struct demand *demand)
{
    double busy = busy_alone(sms, bandwidth, demand), rest = 1 - gract_of(demand);
    return (struct turn){.work = busy, .rest = rest, .floor = rest + busy, .grip = 1};
}

/* How many take turns, and which of the sharers is the first client of MPS, -1 when there is none.
 */
static int count_processes(const struct sharer *sharers, int n, int *ret_client)
{
    int processes = 0;
    *ret_client = -1;
    for (int i = n - 1; i >= 0; i--) {
        processes += !sharers[i].mps;
        *ret_client = sharers[i].mps ? i : *ret_client;
    }
    return processes + (*ret_client >= 0);
}

void sharing_solve(
    const struct sharing_laws *laws, double sms, double bandwidth, struct sharer *sharers, int n)
{
    int first_client, processes = count_processes(sharers, n, &first_client);
    if (first_client >= 0)
        solve_clients(laws, sms, bandwidth, sharers, n);
    if (first_client >= 0 && processes == 1)
        return;
    struct turn clients = server_of_clients(sms, bandwidth, sharers, n);
    for (int i = 0; i < n; i++) {
        struct turn *turn = &sharers[i].turn;
        *turn = !sharers[i].mps     ? process(sms, bandwidth, &sharers[i].demand)
                : i == first_client ? clients
                                    : nobody;
        turn->work *= processes > 1 ? 1 + laws->switch_cost + laws->cold_cost : 1;
    }
    double all = serve(sharers, n);
    for (int i = 0; i < n; i++) {
        const struct turn *turn = &sharers[sharers[i].mps ? first_client : i].turn;
        sharers[i].speed = (sharers[i].mps ? sharers[i].speed : 1) /
                           (all * slowdown(turn, turn->stay));
    }
}

/*
 * A kernel that runs with cold caches or beside others holds its SMs for longer, and draws power
 * for longer; less cache is more traffic.
 */
struct demand sharing_activity(const struct sharing_laws *laws, double sms, double bandwidth,
    const struct sharer *sharers, int n)
{
    struct demand now = {0};
    double sum = sum_smact(sharers, n);
    int first_client, processes = count_processes(sharers, n, &first_client);
    for (int i = 0; i < n; i++) {
        const struct demand *demand = &sharers[i].demand;
        double others = sharers[i].mps ? lost(&sharers[i], sum) : 0;
        double rate = sharers[i].speed * (processes > 1 ? 1 + laws->cold_cost : 1);
        double longer = rate * (1 + laws->cache_cost * others);
        now.gract += demand->gract * longer;
        now.smact += demand->smact * longer;
        now.smocc += demand->smocc * longer;
        now.power_w += demand->power_w * longer;
        now.dram += demand->dram * rate * (1 + laws->traffic_cost * others);
    }
    now.gract = fmin(now.gract, 1);
    now.smact = fmin(now.smact, sms);
    now.smocc = fmin(now.smocc, sms);
    now.dram = fmin(now.dram, bandwidth);
    return now;
}

/*
 * Full activity adds work_w to what an awake GPU draws, a quarter of it for any kernel being there
 * and three quarters for SM activity. These ratios are the means of our six trainings alone on an
 * H200; scripts/fit-sharing says how far off.
 */
void demand_complete(struct demand *demand, double work_w)
{
    if (isnan(demand->gract))
        demand->gract = fmin(1, 0.2 + 0.9 * demand->smact);
    if (isnan(demand->smocc))
        demand->smocc = 0.33 * demand->smact;
    if (isnan(demand->dram))
        demand->dram = 0.24 * demand->smact;
    if (isnan(demand->power_w))
        demand->power_w = work_w * (0.25 * demand->gract + 0.75 * demand->smact);
}
