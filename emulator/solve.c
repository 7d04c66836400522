/* SPDX-License-Identifier: Apache-2.0 */
/* From who is where to how fast everyone is and what every GPU does. */
#include <limits.h>
#include <linux/futex.h>
#include <math.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "emulator/world.h"

void world_wake(struct process *p)
{
    atomic_fetch_add(&p->wake, 1);
    syscall(SYS_futex, &p->wake, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static bool runs(const struct process *p)
{
    return p->present && p->role == ROLE_TRAINING;
}

/* Solves one unit and lowers the new speed of everyone on it to what this unit allows. */
static void solve_unit(struct world *world, struct seat seat, double *speeds)
{
    struct member members[PROCESSES_MAX];
    int slots[PROCESSES_MAX], count = 0;

    for (int i = 0; i < world->process_end; i++) {
        const struct process *p = &world->processes[i];
        if (runs(p) && process_sits_on(p, seat)) {
            slots[count] = i;
            members[count++] = (struct member){
                .demand = p->demand, .mps = p->mps_server != 0, .share = p->share};
        }
    }
    sharing_solve(world_unit(world, seat)->capacity, members, count);
    for (int i = 0; i < count; i++)
        speeds[slots[i]] = fmin(speeds[slots[i]], members[i].speed);
}

/* What the members of a unit do to it at their speeds, as fractions of the unit. */
static void rate_unit(struct world *world, struct seat seat)
{
    struct unit *unit = world_unit(world, seat);
    struct activity rate = {0};

    for (int i = 0; i < world->process_end; i++) {
        const struct process *p = &world->processes[i];
        if (runs(p) && process_sits_on(p, seat))
            activity_add(&rate, &p->demand, p->speed);
    }
    rate.gract = fmin(1, rate.gract / unit->capacity);
    rate.smact = fmin(1, rate.smact / unit->capacity);
    rate.smocc = fmin(1, rate.smocc / unit->capacity);
    rate.dram = fmin(1, rate.dram / unit->capacity);
    unit->rate = rate;
}

/* A MIG-enabled GPU does what its instances do, each weighing as much as its slice. */
static void gather_instances(struct gpu *gpu)
{
    struct unit *whole = &gpu->units[0];

    whole->rate = (struct activity){0};
    for (int u = 1; u < gpu->unit_count; u++) {
        struct activity part = gpu->units[u].rate;
        double weight = gpu->units[u].capacity;
        activity_add(&whole->rate,
            &(struct activity){.gract = part.gract * weight,
                .smact = part.smact * weight,
                .smocc = part.smocc * weight,
                .dram = part.dram * weight,
                .power_w = part.power_w,
                .pcie_rx_mib = part.pcie_rx_mib},
            1);
    }
}

static void rate_gpu(struct world *world, int g)
{
    struct gpu *gpu = &world->gpus[g];
    const struct kind *kind = kind_at(gpu->kind);

    for (int u = 0; u < gpu->unit_count; u++)
        rate_unit(world, (struct seat){g, u});
    if (gpu->mig)
        gather_instances(gpu);
    struct activity *rate = &gpu->units[0].rate;
    double base_w = rate->gract > 0 ? kind->awake_w : kind->idle_w;
    rate->power_w = fmin(kind->tdp_w, base_w + rate->power_w);
}

void world_solve(struct world *world)
{
    double speeds[PROCESSES_MAX];

    for (int i = 0; i < world->process_end; i++)
        speeds[i] = runs(&world->processes[i]) ? 1 : 0;
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
