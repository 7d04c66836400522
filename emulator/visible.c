/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA_VISIBLE_DEVICES as the CUDA runtime reads it. "2,0" makes GPU 2 the process's device 0 and
 * GPU 0 its device 1; "0,9,1" on four GPUs is GPU 0 alone, since the unknown 9 hides what follows.
 */
#include "emulator/visible.h"

#include <string.h>

#include "base/units.h"

/* The beginning of a UUID is enough, as for CUDA. */
static bool find_uuid(const struct world *world, struct span item, struct seat *ret_seat)
{
    for (int g = 0; g < world->gpu_count; g++) {
        for (int u = 0; u < world->gpus[g].unit_count; u++) {
            if (item.size >= 8 && strncmp(world->gpus[g].units[u].uuid, item.at, item.size) == 0) {
                *ret_seat = (struct seat){g, u};
                return true;
            }
        }
    }
    return false;
}

/* A divided GPU that is named by its index is its first MIG instance. */
static bool find_item(const struct world *world, struct span item, struct seat *ret_seat)
{
    char digits[16];
    int64_t index;

    if (span_starts(item, "GPU-") || span_starts(item, "MIG-")) {
        if (!find_uuid(world, item, ret_seat))
            return false;
    } else {
        if (!span_copy(item, digits, sizeof(digits)) ||
            parse_int64(digits, 0, world->gpu_count - 1, &index) < 0)
            return false;
        *ret_seat = (struct seat){(int)index, 0};
    }
    if (ret_seat->unit == 0)
        ret_seat->unit = world_first_unit(world, ret_seat->gpu);
    return world->gpus[ret_seat->gpu].units[ret_seat->unit].state == UNIT_READY;
}

static bool is_repeated(const struct seat *seats, int count, struct seat seat)
{
    for (int i = 0; i < count; i++)
        if (seats[i].gpu == seat.gpu && seats[i].unit == seat.unit)
            return true;
    return false;
}

static int all_seats(const struct world *world, struct seat *seats)
{
    for (int g = 0; g < world->gpu_count; g++) {
        seats[g] = (struct seat){g, world_first_unit(world, g)};
        if (seats[g].unit)
            return g + 1;
    }
    return world->gpu_count;
}

/* As CUDA reads it: the list ends silently at the first item that is wrong or repeated, and after a
 * MIG instance, of which a process can have one. */
int visible_seats(const struct world *world, const char *list, struct seat *seats)
{
    struct seat seat;
    int count = 0;

    if (!list)
        return all_seats(world, seats);
    while (*list && count < SEATS_MAX) {
        size_t size = strcspn(list, ",");
        if (!find_item(world, span_trim((struct span){list, size}), &seat) ||
            is_repeated(seats, count, seat))
            break;
        seats[count++] = seat;
        if (seat.unit)
            break;
        list += size + (list[size] == ',');
    }
    return count;
}
