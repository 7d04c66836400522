/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Computes the speed of each process and the activity of each GPU from the table of processes. The
 * model is that of src/sharing, as in the simulator: this file only collects its input and
 * distributes its output. A process on several GPUs runs at the speed of its slowest one.
 *
 * Two trainings take turns on GPU 0, one of them is also on GPU 1:
 *
 *     solve_unit    GPU 0: speeds 0.47 and 0.47    GPU 1: speed 1
 *     world_solve   both processes 0.47
 *     rate_unit     GPU 1 does 0.47 of what its process does when alone
 */
#include <limits.h>
#include <linux/futex.h>
#include <math.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "emulator/world.h"

/* The processes that compute on one unit, as src/sharing takes them. */
struct sharing {
    struct sharer sharers[PROCESSES_MAX];
    int slots[PROCESSES_MAX]; /* in world->processes */
    int count;
};

void world_wake(struct process *p)
{
    atomic_fetch_add(&p->wake, 1);
    syscall(SYS_futex, &p->wake, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static bool is_training(const struct process *p)
{
    return p->present && p->role == ROLE_TRAINING;
}

/* The CUDA calls of a locked or suspended process wait. */
static bool is_running(const struct process *p)
{
    return is_training(p) && p->cuda_state == CUDA_RUNNING;
}

/* A process that holds memory and runs no kernel takes no turn. */
static bool is_computing(const struct process *p)
{
    return is_running(p) && p->demand.gract > 0;
}

/* `ret_sharing`: the speeds in it are those that the processes have now. */
static void collect_sharers(
    const struct world *world, struct seat seat, struct sharing *ret_sharing)
{
    ret_sharing->count = 0;
    for (int i = 0; i < world->process_end; i++) {
        const struct process *p = &world->processes[i];
        if (!is_computing(p) || !process_sits_on(p, seat))
            continue;
        ret_sharing->slots[ret_sharing->count] = i;
        ret_sharing->sharers[ret_sharing->count++] = (struct sharer){
            .demand = p->demand, .mps = p->mps_server != 0, .cap = p->share, .speed = p->speed};
    }
}

/* Solves one unit and lowers the new speed of every process on it to what this unit allows. */
static void solve_unit(struct world *world, struct seat seat, double *speeds)
{
    const struct unit *unit = world_unit(world, seat);
    struct sharing sharing;

    collect_sharers(world, seat, &sharing);
    interference_solve(
        &world->constants.interference, unit->sms, unit->bandwidth, sharing.sharers, sharing.count);
    for (int i = 0; i < sharing.count; i++)
        speeds[sharing.slots[i]] = fmin(speeds[sharing.slots[i]], sharing.sharers[i].speed);
}

/* The activity of a unit from its processes at their speeds, as fractions of the unit. */
static void rate_unit(struct world *world, struct seat seat)
{
    struct unit *unit = world_unit(world, seat);
    struct sharing sharing;
    double pcie_rx_mib = 0;

    collect_sharers(world, seat, &sharing);
    struct demand now = interference_activity(
        &world->constants.interference, unit->sms, unit->bandwidth, sharing.sharers, sharing.count);
    for (int i = 0; i < sharing.count; i++)
        pcie_rx_mib += world->processes[sharing.slots[i]].pcie_rx_mib * sharing.sharers[i].speed;
    unit->rate = (struct activity){.gract = now.gract,
        .smact = now.smact / unit->sms,
        .smocc = now.smocc / unit->sms,
        .dram = now.dram / unit->bandwidth,
        .power_w = now.power_w,
        .pcie_rx_mib = pcie_rx_mib};
}

/* A MIG-enabled GPU does what its instances do, each weighing as much as its part of the GPU. Its
 * graphics engine counts by SMs, as SM activity does. */
static void gather_instances(struct gpu *gpu)
{
    struct unit *whole = &gpu->units[0];

    whole->rate = (struct activity){0};
    for (int u = 1; u < gpu->unit_count; u++) {
        const struct unit *part = &gpu->units[u];
        activity_add(&whole->rate,
            &(struct activity){.gract = part->rate.gract * part->sms,
                .smact = part->rate.smact * part->sms,
                .smocc = part->rate.smocc * part->sms,
                .dram = part->rate.dram * part->bandwidth,
                .power_w = part->rate.power_w,
                .pcie_rx_mib = part->rate.pcie_rx_mib},
            1);
    }
}

/* What the processes add to the power of an awake GPU counts, or its activity
 * (gpu_kind_power_w). */
static void rate_gpu(struct world *world, int g)
{
    struct gpu *gpu = &world->gpus[g];

    for (int u = 0; u < gpu->unit_count; u++)
        rate_unit(world, (struct seat){g, u});
    if (gpu->mig)
        gather_instances(gpu);
    struct activity *rate = &gpu->units[0].rate;
    rate->power_w = rate->gract > 0 ? gpu_kind_power_w(&gpu->kind, rate->smact, rate->power_w)
                                    : fmin(gpu->kind.limit_w, gpu->kind.idle_w + rate->power_w);
}

/* Called after each change of the table: a process that starts, ends or is suspended changes the
 * speeds of its neighbours. Each whose speed has changed is woken, to compute its next event
 * again. */
void world_solve(struct world *world)
{
    double speeds[PROCESSES_MAX];

    for (int i = 0; i < world->process_end; i++)
        speeds[i] = is_running(&world->processes[i]) ? 1 : 0;
    for (int g = 0; g < world->gpu_count; g++)
        for (int u = 0; u < world->gpus[g].unit_count; u++)
            solve_unit(world, (struct seat){g, u}, speeds);
    for (int i = 0; i < world->process_end; i++) {
        struct process *p = &world->processes[i];
        bool changed = p->present && fabs(speeds[i] - p->speed) > 1e-9;
        p->speed = speeds[i];
        if (changed)
            world_wake(p);
    }
    for (int g = 0; g < world->gpu_count; g++)
        rate_gpu(world, g);
}
