/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GPU memory: a process has a list of segments, each on one unit. Used memory is not stored but
 * summed over all processes, so that the memory of a killed process is free as soon as the process
 * is removed from the table: there is no counter that its death could leave wrong.
 *
 * Where memory is linear, a segment also has an offset. Of 10 GiB with a segment at 5 to 6 GiB, 9
 * are free, and the largest segment that fits is 5 GiB.
 */
#include "emulator/memory.h"

#include <errno.h>

static bool is_within(struct seat inner, struct seat outer)
{
    return inner.gpu == outer.gpu && (outer.unit == 0 || inner.unit == outer.unit);
}

int64_t memory_of(const struct process *p, struct seat seat)
{
    int64_t sum = 0;

    for (int i = 0; !p->off_gpu && i < p->segment_count; i++)
        if (is_within(p->segments[i].seat, seat))
            sum += p->segments[i].size;
    return sum;
}

/* Is what is allocated on `one` taken from the memory of the other? Compute instances of a GPU
 * instance have one memory. */
static bool is_of_memory(const struct world *world, struct seat one, struct seat other)
{
    const struct gpu *gpu = &world->gpus[other.gpu];
    return one.gpu == other.gpu &&
           (other.unit == 0 || gpu->units[one.unit].instance == gpu->units[other.unit].instance);
}

int64_t memory_used(const struct world *world, struct seat seat)
{
    int64_t sum = seat.unit == 0 ? world->gpus[seat.gpu].foreign_bytes : 0;

    for (int i = 0; i < world->process_end; i++) {
        const struct process *p = &world->processes[i];
        for (int k = 0; p->present && !p->off_gpu && k < p->segment_count; k++)
            if (is_of_memory(world, p->segments[k].seat, seat))
                sum += p->segments[k].size;
    }
    return sum;
}

int64_t memory_capacity(const struct world *world, struct seat seat)
{
    const struct unit *unit = &world->gpus[seat.gpu].units[seat.unit];
    return unit->total_bytes - unit->reserved_bytes;
}

int64_t memory_free(const struct world *world, struct seat seat)
{
    int64_t left = memory_capacity(world, seat) - memory_used(world, seat);
    return left > 0 ? left : 0;
}

static bool ranges_overlap(int64_t a, int64_t a_size, int64_t b, int64_t b_size)
{
    return a < b + b_size && b < a + a_size;
}

/* The end of some segment in the way of [at, at + size), or 0 when nothing is. */
static int64_t obstacle_end(const struct world *world, struct seat seat, int64_t at, int64_t size)
{
    const struct gpu *gpu = &world->gpus[seat.gpu];

    if (seat.unit == 0 && gpu->foreign_bytes &&
        ranges_overlap(at, size, gpu->foreign_offset, gpu->foreign_bytes))
        return gpu->foreign_offset + gpu->foreign_bytes;
    for (int i = 0; i < world->process_end; i++) {
        const struct process *p = &world->processes[i];
        for (int k = 0; p->present && !p->off_gpu && k < p->segment_count; k++) {
            const struct segment *s = &p->segments[k];
            if (is_of_memory(world, s->seat, seat) && ranges_overlap(at, size, s->offset, s->size))
                return s->offset + s->size;
        }
    }
    return 0;
}

static int64_t first_fit(const struct world *world, struct seat seat, int64_t size)
{
    int64_t at = 0, end;

    while ((end = obstacle_end(world, seat, at, size)) != 0)
        at = end;
    return at;
}

/* Linear memory is not moved: a request needs a gap as large as it is (docs/emulator.md). Otherwise
 * only the sum counts, as with virtual addresses on a real GPU. */
int memory_take(struct world *world, struct process *p, struct seat seat, int64_t bytes)
{
    int64_t size = (bytes + MEMORY_GRAIN - 1) / MEMORY_GRAIN * MEMORY_GRAIN;
    bool linear = world->constants.linear_memory > 0;
    int64_t at = linear ? first_fit(world, seat, size) : memory_used(world, seat);

    bool over = p->limit_bytes && memory_of(p, seat) + size > p->limit_bytes;
    if (over || at + size > memory_capacity(world, seat) || p->segment_count == SEGMENTS_MAX)
        return -ENOMEM;
    p->segments[p->segment_count] = (struct segment){seat, at, size};
    p->segment_count++;
    return 0;
}
