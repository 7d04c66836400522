#include "sim/gpu_model.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"

/*
 * Memory. The driver hands out multiples of 2 MiB from a linear space, first fit: free memory in pieces can be too
 * little, and who asks when no hole is large enough crashes, whoever else is there (thesis, section 6.2.3).
 *
 * A caching allocator asks for ever larger segments until the first step of training is through; here, for these parts
 * of what the context leaves. Assumed; the largest being a quarter, a hole smaller than that is of no use to it.
 */
#define GRAIN_BYTES (2 * MIB)
static const double parts[MEMORY_PARTS] = {0, 1. / 16, 1. / 16, 1. / 8, 1. / 4, 1. / 4, 1. / 4};

void gpu_memory_fini(struct gpu_memory *memory)
{
    free(memory->segments);
    *memory = (struct gpu_memory){0};
}

/* The place in the list of the first hole of that size, and where it begins. */
static int find_hole(const struct gpu_memory *memory, int64_t size, int64_t *ret_at)
{
    int i = 0;
    for (*ret_at = 0; i < memory->n && memory->segments[i].at - *ret_at < size; i++)
        *ret_at = memory->segments[i].at + memory->segments[i].size;
    return i;
}

int gpu_memory_take(struct gpu_memory *memory, uint64_t owner, int64_t bytes)
{
    int64_t at, size = (bytes + GRAIN_BYTES - 1) / GRAIN_BYTES * GRAIN_BYTES;
    int i = find_hole(memory, size, &at);
    if (size > memory->capacity_bytes - at)
        return GPU_MEMORY_FULL;
    if (memory->n == memory->room) {
        int room = memory->room ? memory->room * 2 : MEMORY_PARTS;
        struct segment *segments = realloc(memory->segments, (size_t)room * sizeof *segments);
        if (!segments)
            return -ENOMEM;
        memory->segments = segments;
        memory->room = room;
    }
    memmove(&memory->segments[i + 1], &memory->segments[i], (size_t)(memory->n - i) * sizeof *memory->segments);
    memory->segments[i] = (struct segment){at, size, owner};
    memory->n++;
    memory->used_bytes += size;
    return 0;
}

void gpu_memory_release(struct gpu_memory *memory, uint64_t owner)
{
    int kept = 0;
    for (int i = 0; i < memory->n; i++) {
        if (memory->segments[i].owner == owner)
            memory->used_bytes -= memory->segments[i].size;
        else
            memory->segments[kept++] = memory->segments[i];
    }
    memory->n = kept;
}

int64_t gpu_memory_of(const struct gpu_memory *memory, uint64_t owner)
{
    int64_t sum = 0;
    for (int i = 0; i < memory->n; i++)
        sum += memory->segments[i].owner == owner ? memory->segments[i].size : 0;
    return sum;
}

int64_t gpu_memory_part(const struct gpu_laws *laws, int64_t bytes, int i)
{
    int64_t context = bytes < laws->context_bytes ? bytes : laws->context_bytes;
    return i == 0 ? context : (int64_t)((double)(bytes - context) * parts[i]);
}

double gpu_memory_due_s(const struct gpu_laws *laws, double solo_s, int i)
{
    double ramp_s = fmin(laws->ramp_s, solo_s / 2);
    return laws->startup_s + (i == 0 ? 0 : ramp_s * (i - 1) / (MEMORY_PARTS - 2));
}

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
 * is in proportion to what they ask for. Constants and what they were held against: data/gpu-kinds.txt.
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

static double turns(const struct gpu_laws *laws, double sms, double bandwidth, const struct sharer *sharers, int n)
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

void gpu_share(const struct gpu_laws *laws, double sms, double bandwidth, struct sharer *sharers, int n)
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

/*
 * Power. Full activity adds work_w to what an awake GPU draws, in the shares a quarter for any kernel being there and
 * three quarters for SM activity (assumed, data/traces/tasks.txt). The ratios of SMOCC and DRAM activity to SMACT are
 * assumed there too.
 */
void gpu_demand_complete(struct demand *demand, double work_w)
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
