/* SPDX-License-Identifier: Apache-2.0 */
/* What all files of a simulation do with its state: note an error, and wake up later. */
#include "sim/simulation_run.h"

void simulation_run_check(struct simulation_run *run, int r)
{
    if (r < 0 && run->error == 0)
        run->error = r;
}

void simulation_run_wake(struct simulation_run *run, enum simulation_wakeup kind, int64_t time_us,
    uint64_t subject, int version)
{
    struct sim_wakeup wakeup = {kind, time_us, subject, version};
    simulation_run_check(run, sim_schedule_wakeup(run->sim, &wakeup));
}
