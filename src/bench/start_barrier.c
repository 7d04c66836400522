/* SPDX-License-Identifier: Apache-2.0 */
/* A pipe that trainings read until its end, so that they begin together. */
#include "bench/start_barrier.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "bench/group.h"

bool start_barrier_is_for(const struct bench_group *group)
{
    for (int i = 0; i < group->n_tasks; i++)
        if (group->tasks[i].is_script)
            return false;
    return group->n_tasks > 1 && !bench_group_is_serial(group);
}

int start_barrier_init(struct start_barrier *barrier)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    *barrier = (struct start_barrier){.read_end = ends[0], .write_end = ends[1]};
    return 0;
}

void start_barrier_inherit(const struct start_barrier *barrier)
{
    char number[16];
    if (barrier->read_end < 0)
        return;
    snprintf(number, sizeof number, "%d", barrier->read_end);
    setenv("COLLOC_BENCH_START_FD", number, 1);
    fcntl(barrier->read_end, F_SETFD, 0);
}

void start_barrier_open(struct start_barrier *barrier)
{
    if (barrier->read_end >= 0)
        close(barrier->read_end);
    if (barrier->write_end >= 0)
        close(barrier->write_end);
    *barrier = START_BARRIER_NONE;
}
