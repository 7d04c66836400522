/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The interference model: the speed of tasks that share a GPU. Sharers are the customers of a
 * closed queue with one server, the GPU. Each task brings its kernels to the server, stays there
 * until they are done (longer when others are there), then spends its think time elsewhere
 * (launches, data), and comes again.
 *
 * Two plain processes, each of which keeps the GPU busy for half of its time. Changing between them
 * and cold caches make kernels 12 % longer, 0.56 instead of 0.5:
 *
 *     a process is at the GPU for         0.56 / (0.5 + 0.56) = 0.53 of its time
 *     the other one stays there for       0.56 * (1 + 0.53)   = 0.86
 *     and takes as long as alone times    0.5 + 0.86          = 1.36, a speed of 0.74
 *
 * In general, with all times as fractions of the time that the task takes alone on a whole GPU as a
 * plain process (speed is 1 / slowdown):
 *
 *     slowdown_i  = max(floor_i, think_i + residence_i)
 *     residence_i = service_i * (1 + sum over j != i of (weight_j / weight_i) * present_j)
 *     present_j   = s / max(floor_j, think_j + s)
 *
 * present_j is the residence probability: the chance to find j at the server, when i has not
 * delayed it there itself. So the delay that i causes is subtracted:
 *
 *     delay_ij = service_j * (weight_i / weight_j) * residence_i / slowdown_i
 *     s        = max(service_j, residence_j - delay_ij)
 *
 * This is approximate mean value analysis (Reiser and Lavenberg, 1980) of discriminatory processor
 * sharing (Kleinrock, 1967). For two equal tasks it is exact. If the sum of service / slowdown
 * exceeds 1, more than the whole GPU would be served: all are slowed down by that factor then.
 *
 * What the server is, and what a task brings to it, depends on how tasks share.
 *
 * On a whole GPU a task's kernels run for gract of its time and hold smact of all SM-time. On a MIG
 * instance with the fractions S of the SMs and B of the bandwidth, kernels that would use more take
 * longer; the rest of the time does not:
 *
 *     busy_i  = max(gract_i, smact_i / S, dram_i / B)
 *     alone_i = 1 - gract_i + busy_i
 *
 * Plain processes (streams): the server is the whole GPU. Time slices give it to each process in
 * turn, and all alike.
 *
 *     service_i = busy_i * (1 + switch_cost + cold_cost)
 *     think_i   = alone_i - busy_i
 *     floor_i   = alone_i
 *     weight_i  = 1
 *
 * Clients of MPS: the server is the SMs, or the bandwidth where that is scarcer. Kernels of several
 * tasks run at once and cost each other cache. What MPS adds to a launch is hidden as soon as
 * kernels have to wait anyway. A task that keeps SMs busy without a gap always has blocks in line,
 * long ones: a light task's kernels wait for them each time.
 *
 *     held_i    = max(smact_i / S, dram_i / B)
 *     service_i = held_i * (1 + cache_cost * (1 - smact_i / sum smact))
 *     think_i   = alone_i - held_i
 *     floor_i   = alone_i + launch_cost * (1 - gract_i)
 *     weight_i  = (smact_i / (1 - smact_i)) ^ weight_power
 *
 * A client that may use the fraction P of the SMs (its active thread percentage) is as on an
 * instance of that size when it is alone. It holds no more of the SM-time than before, and keeps at
 * most P without a gap:
 *
 *     alone_i with P * S instead of S
 *     weight_i with min(smact_i, P) instead of smact_i
 *
 * Plain processes beside clients of MPS: all clients together are one process among the others, and
 * its service is what they do together.
 *
 * Where measured speeds of a host have shown that tasks delay each other f times as much as this
 * says, with one f for plain processes and one for clients of MPS:
 *
 *     slowdown_i  = alone + f * (slowdown_i - alone), with alone = floor_i
 *
 * How well this holds, and where it does not: docs/measured/sharing.md.
 */
#include "sharing/interference.h"

#include <math.h>

/* The iteration ends when no residence time changes by more, or after so many rounds. Chosen: far
 * below the model's error of a few percent. */
enum { ROUNDS_MAX = 40 };
static const double RESIDENCE_CHANGE_MAX = 1e-6;

/* The odds of an SM activity have no limit; nothing above 0.9 was measured. Chosen. */
static const double ODDS_SMACT_MIN = 0.01, ODDS_SMACT_MAX = 0.95;

/* For numbers that are not NAN: the compiler inlines them, unlike fmax and fmin. */
static double larger_of(double a, double b)
{
    return a > b ? a : b;
}

static double smaller_of(double a, double b)
{
    return a < b ? a : b;
}

static double gract_of(const struct demand *demand)
{
    return smaller_of(1, larger_of(demand->gract, larger_of(demand->smact, demand->dram)));
}

static double held_share(double sms, double bandwidth, const struct demand *demand)
{
    return larger_of(demand->smact / sms, demand->dram / bandwidth);
}

/* How long kernels run alone on the instance. */
static double busy_alone(double sms, double bandwidth, const struct demand *demand)
{
    return larger_of(gract_of(demand), held_share(sms, bandwidth, demand));
}

static double sum_smact(const struct sharer *sharers, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += sharers[i].mps ? sharers[i].demand.smact : 0;
    return sum;
}

/* The fraction of the cache that the other clients of MPS have. */
static double cache_lost(const struct sharer *sharer, double sum)
{
    return sum > 0 ? 1 - sharer->demand.smact / sum : 0;
}

/* ---- the queue ---- */

static double slowdown_of(const struct customer *customer, double residence)
{
    return larger_of(customer->floor, customer->think + residence);
}

/* The residence time of customer i, from the present ones of the others. */
static double residence_time(const struct sharer *sharers, int n, int i)
{
    const struct customer *own = &sharers[i].customer;
    double delay = 0; /* of own->weight, in multiples of its service time */
    double own_load = own->weight * own->residence / slowdown_of(own, own->residence);
    for (int j = 0; j < n; j++) {
        const struct customer *other = &sharers[j].customer;
        if (j == i || other->service == 0)
            continue;
        double s = larger_of(
            other->service, other->residence - other->service_per_weight * own_load);
        delay += other->weight * s / slowdown_of(other, s);
    }
    return own->service * (1 + delay / own->weight);
}

/*
 * Sets the residence time of all customers; those without service are never at the server.
 *
 * Returns the factor by which all are slower still, 1 when the server can do all the work.
 */
static double solve_queue(struct sharer *sharers, int n)
{
    double change = 1, served = 0;
    for (int i = 0; i < n; i++) {
        struct customer *customer = &sharers[i].customer;
        customer->residence = customer->service;
        customer->service_per_weight = customer->service / customer->weight;
    }
    for (int round = 0; round < ROUNDS_MAX && change > RESIDENCE_CHANGE_MAX; round++) {
        change = 0;
        for (int i = 0; i < n; i++) {
            struct customer *customer = &sharers[i].customer;
            double before = customer->residence;
            customer->residence = residence_time(sharers, n, i);
            change = larger_of(change, fabs(customer->residence - before));
        }
    }
    for (int i = 0; i < n; i++) {
        const struct customer *customer = &sharers[i].customer;
        served += customer->service / slowdown_of(customer, customer->residence);
    }
    return larger_of(1, served);
}

/* ---- the customers ---- */

/* A task without service never comes to the server. */
static const struct customer absent = {.floor = 1, .weight = 1};

static double cap_of(const struct sharer *sharer)
{
    return sharer->cap > 0 ? smaller_of(1, sharer->cap) : 1;
}

/* The time of a step of a client of MPS that is alone on the GPU. */
static double client_alone(double sms, double bandwidth, const struct sharer *sharer)
{
    const struct demand *demand = &sharer->demand;
    return 1 - gract_of(demand) + busy_alone(sms * cap_of(sharer), bandwidth, demand);
}

/* The same with what launching by the server takes. */
static double client_floor(
    const struct interference_constants *constants, double alone, const struct sharer *sharer)
{
    return alone + constants->launch_cost * (1 - gract_of(&sharer->demand));
}

static struct customer mps_customer(const struct interference_constants *constants, double sms,
    double bandwidth, const struct sharer *sharer, double sum)
{
    const struct demand *demand = &sharer->demand;
    double cap = cap_of(sharer), all = held_share(sms, bandwidth, demand);
    double alone = client_alone(sms, bandwidth, sharer);
    double smact = smaller_of(
        ODDS_SMACT_MAX, larger_of(ODDS_SMACT_MIN, smaller_of(demand->smact, cap)));
    return (struct customer){.service = all * (1 + constants->cache_cost * cache_lost(sharer, sum)),
        .think = alone - all,
        .floor = client_floor(constants, alone, sharer),
        .weight = pow(smact / (1 - smact), constants->weight_power)};
}

/* Corrects a slowdown by the logarithm of a factor of the delay; with 0, to the last bit as it is.
 */
static double correct_delay(double slowdown, double alone, double delay_log)
{
    return delay_log == 0 ? slowdown : alone + exp(delay_log) * (slowdown - alone);
}

/* Sets the speeds of the clients of MPS among themselves. */
static void solve_clients(const struct interference_constants *constants, double sms,
    double bandwidth, struct sharer *sharers, int n)
{
    double sum = sum_smact(sharers, n);
    for (int i = 0; i < n; i++)
        sharers[i].customer = sharers[i].mps
                                  ? mps_customer(constants, sms, bandwidth, &sharers[i], sum)
                                  : absent;
    double all = solve_queue(sharers, n);
    for (int i = 0; i < n; i++) {
        const struct customer *customer = &sharers[i].customer;
        if (sharers[i].mps)
            sharers[i].speed = 1 / correct_delay(all * slowdown_of(customer, customer->residence),
                                       customer->floor, constants->mps_delay_log);
    }
}

/* All clients of MPS as one process. */
static struct customer server_of_clients(
    double sms, double bandwidth, const struct sharer *sharers, int n)
{
    double busy = 0;
    for (int i = 0; i < n; i++)
        busy += sharers[i].mps ? busy_alone(sms, bandwidth, &sharers[i].demand) * sharers[i].speed
                               : 0;
    busy = smaller_of(1, busy);
    return (struct customer){.service = busy, .think = 1 - busy, .floor = 1, .weight = 1};
}

static struct customer process_customer(double sms, double bandwidth, const struct demand *demand)
{
    double busy = busy_alone(sms, bandwidth, demand), rest = 1 - gract_of(demand);
    return (struct customer){.service = busy, .think = rest, .floor = rest + busy, .weight = 1};
}

/*
 * Counts the processes that take turns; all clients of MPS are one.
 *
 * `ret_client`: the first client of MPS, or -1.
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

void interference_solve(const struct interference_constants *constants, double sms,
    double bandwidth, struct sharer *sharers, int n)
{
    int first_client, processes = count_processes(sharers, n, &first_client);
    if (first_client >= 0)
        solve_clients(constants, sms, bandwidth, sharers, n);
    if (first_client >= 0 && processes == 1)
        return;
    struct customer clients = server_of_clients(sms, bandwidth, sharers, n);
    for (int i = 0; i < n; i++) {
        struct customer *customer = &sharers[i].customer;
        *customer = !sharers[i].mps     ? process_customer(sms, bandwidth, &sharers[i].demand)
                    : i == first_client ? clients
                                        : absent;
        customer->service *= processes > 1 ? 1 + constants->switch_cost + constants->cold_cost : 1;
    }
    double all = solve_queue(sharers, n);
    for (int i = 0; i < n; i++) {
        const struct customer *customer = &sharers[sharers[i].mps ? first_client : i].customer;
        sharers[i].speed = (sharers[i].mps ? sharers[i].speed : 1) /
                           correct_delay(all * slowdown_of(customer, customer->residence),
                               customer->floor, constants->streams_delay_log);
    }
}

double interference_alone(const struct interference_constants *constants, double sms,
    double bandwidth, const struct sharer *sharer)
{
    if (sharer->mps)
        return client_floor(constants, client_alone(sms, bandwidth, sharer), sharer);
    return process_customer(sms, bandwidth, &sharer->demand).floor;
}

/*
 * A kernel that runs with cold caches or beside others holds its SMs for longer, and draws power
 * for longer; less cache is more traffic.
 */
struct demand interference_activity(const struct interference_constants *constants, double sms,
    double bandwidth, const struct sharer *sharers, int n)
{
    struct demand now = {0};
    double sum = sum_smact(sharers, n);
    int first_client, processes = count_processes(sharers, n, &first_client);
    for (int i = 0; i < n; i++) {
        const struct demand *demand = &sharers[i].demand;
        double others = sharers[i].mps ? cache_lost(&sharers[i], sum) : 0;
        double rate = sharers[i].speed * (processes > 1 ? 1 + constants->cold_cost : 1);
        double longer = rate * (1 + constants->cache_cost * others);
        now.gract += demand->gract * longer;
        now.smact += demand->smact * longer;
        now.smocc += demand->smocc * longer;
        now.power_w += demand->power_w * longer;
        now.dram += demand->dram * rate * (1 + constants->traffic_cost * others);
    }
    now.gract = smaller_of(now.gract, 1);
    now.smact = smaller_of(now.smact, sms);
    now.smocc = smaller_of(now.smocc, sms);
    now.dram = smaller_of(now.dram, bandwidth);
    return now;
}

/* Ratios of the unknown values to SM activity: means of six trainings alone on an H200
 * (data/sharing/h200.csv); scripts/fit-sharing prints their errors. */
static const double GRACT_LEAST = 0.2, GRACT_PER_SMACT = 0.9, SMOCC_PER_SMACT = 0.33,
                    DRAM_PER_SMACT = 0.24;

/* What full activity adds to the power of a GPU: a quarter while any kernel is resident, the rest
 * in proportion to SM activity. Of the same trainings. */
static const double POWER_OF_GRACT = 0.25, POWER_OF_SMACT = 0.75;

/* Inlined: a sample of a task alone on its GPU asks for several (interference_plain_smact). */
static inline __attribute__((always_inline)) void complete(struct demand *demand, double work_w)
{
    if (isnan(demand->gract))
        demand->gract = smaller_of(1, GRACT_LEAST + GRACT_PER_SMACT * demand->smact);
    if (isnan(demand->smocc))
        demand->smocc = SMOCC_PER_SMACT * demand->smact;
    if (isnan(demand->dram))
        demand->dram = DRAM_PER_SMACT * demand->smact;
    if (isnan(demand->power_w))
        demand->power_w = work_w *
                          (POWER_OF_GRACT * demand->gract + POWER_OF_SMACT * demand->smact);
}

void demand_complete(struct demand *demand, double work_w)
{
    complete(demand, work_w);
}

/* How slow a client is alone depends on its activity in turn: each round comes ten times nearer. */
enum { SMACT_ROUNDS = 6 };

double interference_plain_smact(const struct interference_constants *constants,
    const struct demand *known, double cap, double seen)
{
    double smact = seen, before = NAN;
    for (int i = 0; i < SMACT_ROUNDS && smact != before; i++) {
        struct sharer client = {.demand = *known, .mps = true, .cap = cap};
        before = client.demand.smact = smact;
        complete(&client.demand, 0);
        smact = smaller_of(1, seen * client_floor(constants, client_alone(1, 1, &client), &client));
    }
    return smact;
}
