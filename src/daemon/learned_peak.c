/* SPDX-License-Identifier: Apache-2.0 */
/* Divides a task's peak among its GPUs, and leaves out what was preallocated (preallocation.h). */
#include "daemon/learned_peak.h"

bool learned_peak_is_preallocated(
    const struct core *core, const struct task *task, const struct job *job)
{
    const struct gpu_identity *gpu = &core_view(core)->gpus[job->peak_gpu].id;
    return preallocation_explains(job->preallocation, job->peak_whole,
        job->mem_peak_bytes.value / task->request.gpus,
        gpu->mem_total_bytes ? reading_of((double)gpu->mem_total_bytes) : READING_NONE);
}

struct reading learned_peak(const struct core *core, const struct task *task, const struct job *job)
{
    bool known = job->mem_peak_bytes.valid && job->peak_gpu != JOB_GPU_UNKNOWN &&
                 task->request.gpus > 0;
    return known && !learned_peak_is_preallocated(core, task, job)
               ? reading_of(job->mem_peak_bytes.value / task->request.gpus)
               : READING_NONE;
}
