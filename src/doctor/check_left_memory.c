/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Is there GPU memory of processes that have ended? The driver goes on listing such a process while
 * another one that was forked from it, such as a worker of a data loader, keeps the GPU open. Then
 * nvidia-smi names a process that does not exist, and the memory is free only when the other one
 * ends: this check says which that is, as far as /proc shows it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/process.h"
#include "base/units.h"
#include "doctor/doctor.h"
#include "exec/device_holders.h"

static bool has_ended(pid_t pid)
{
    struct process_stat stat;
    int r = process_read_stat(pid, &stat);
    return r == -ESRCH || (r == 0 && process_has_ended(&stat));
}

/* A process that has the GPU open and uses none of its memory, as far as the driver lists; 0: there
 * is none. */
static pid_t find_holder(const struct gpu_info *gpu, const struct gpu_sample *sample)
{
    size_t n = sample->processes.count;
    pid_t *listed = calloc(n + 1, sizeof *listed);
    pid_t holder = 0;
    for (size_t i = 0; listed && i < n; i++)
        listed[i] = sample->processes.item[i].pid;
    if (listed && gpu->minor.valid)
        holder = device_holder_find(&(struct device_search){
            .minor = (int)gpu->minor.value, .others = listed, .n_others = n});
    free(listed);
    return holder;
}

static void report_left(struct doctor_check *check, const struct gpu_info *gpu,
    const struct gpu_sample *sample, const struct gpu_process *process)
{
    struct process_facts facts;
    char size[32] = "memory", advice[sizeof check->advice];
    pid_t holder = find_holder(gpu, sample);
    if (process->used_bytes.valid)
        format_size((int64_t)process->used_bytes.value, size, sizeof size);
    if (!device_holder_sees_all_pids())
        snprintf(advice, sizeof advice,
            "if the process runs outside this container, nothing; else end the process that was "
            "forked from it and has /dev/nvidia%.0f open",
            reading_or(gpu->minor, 0));
    else
        snprintf(advice, sizeof advice,
            "end the process that was forked from it and has /dev/nvidia%.0f open; root sees the "
            "files of all processes",
            reading_or(gpu->minor, 0));
    if (holder && process_read(holder, &facts) == 0)
        snprintf(advice, sizeof advice,
            "process %d (%s) of user %u has the GPU open and is not listed: if it was forked from "
            "process %d, end it",
            (int)holder, facts.name, (unsigned)facts.uid, (int)process->pid);
    doctor_fail(check, advice, "GPU %s: %s of process %d, which is not in /proc", gpu->index, size,
        (int)process->pid);
}

void check_left_memory(struct doctor *doctor, struct doctor_check *check)
{
    bool is_any = false;
    for (size_t i = 0; doctor->gpus && i < doctor->gpus->count && !is_any; i++) {
        struct gpu_sample sample = {0};
        gpu_set_sample(doctor->gpus, i, &sample);
        for (size_t k = 0; sample.processes.valid && k < sample.processes.count && !is_any; k++) {
            is_any = has_ended(sample.processes.item[k].pid);
            if (is_any)
                report_left(check, &doctor->gpus->gpu[i], &sample, &sample.processes.item[k]);
        }
        gpu_sample_fini(&sample);
    }
    if (!is_any)
        doctor_pass(check, "no GPU has memory of a process that has ended");
}
