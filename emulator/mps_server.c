/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An emulated nvidia-cuda-mps-server: allocates its memory on the GPUs in CUDA_VISIBLE_DEVICES,
 * writes one byte to its standard output, and waits for a signal. Its effect on clients is in the
 * interference model (src/sharing).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/units.h"
#include "emulator/memory.h"
#include "emulator/visible.h"

/* The memory that a server holds on each GPU. Assumed. */
static const int64_t SERVER_BYTES = 30 * MIB;

/* 0 or -errno. */
static int take_seats(struct world *world)
{
    struct seat seats[SEATS_MAX];
    int r = 0, count = visible_seats(world, getenv("CUDA_VISIBLE_DEVICES"), seats);

    world_enter(world);
    struct process *self = world_join(world, ROLE_MPS_SERVER, seats, count);
    for (int i = 0; self && r == 0 && i < count; i++)
        r = memory_take(world, self, seats[i], SERVER_BYTES);
    world_leave(world);
    return self ? r : -EMFILE;
}

static int say_ready(void)
{
    if (write(STDOUT_FILENO, "r", 1) != 1)
        return -errno;
    int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
    return dup2(nowhere, STDOUT_FILENO) < 0 ? -errno : 0;
}

int main(void)
{
    struct world *world;
    const char *path = getenv("COLLOC_EMULATOR");

    if (!path || world_open(path, NULL, &world) < 0 || take_seats(world) < 0 || say_ready() < 0)
        return 1;
    for (;;)
        pause();
}
