/* SPDX-License-Identifier: Apache-2.0 */
/* A pretend machine in a temporary file, for one test. */
#ifndef COLLOC_TEST_EMULATOR_MACHINE_H
#define COLLOC_TEST_EMULATOR_MACHINE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "emulator/world.h"

struct machine {
    char path[64];
    struct world *world;
};

static inline struct machine machine_make(const char *gpus, double speedup)
{
    struct machine m;
    static struct gpu_kinds kinds;
    struct fault fault = {""};

    snprintf(m.path, sizeof(m.path), "/tmp/colloc-test-gpus.%d", (int)getpid());
    int r = gpu_kinds_init(&kinds, &fault);
    if (r == 0)
        r = world_create(m.path, &kinds, gpus, speedup, &fault);
    if (r == 0)
        r = world_open(m.path, &fault, &m.world);
    if (r < 0)
        fail_msg("%s", fault.text);
    return m;
}

static inline void machine_end(struct machine *m)
{
    world_close(m->world);
    unlink(m->path);
}

#endif
