/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tasks that take more GPU memory than was reserved for them.
 *
 * A task is placed beside another because the other's declared memory leaves enough free. If the
 * other then takes more, the new task runs out of memory. Both owners should see that:
 *
 *     task 19 declared 12.0 GiB, has taken 23.4   colloc show 19: took 11.4 GiB more than declared
 *     task 20 beside it runs out of GPU memory    colloc show 20: task 19 took 11.4 GiB more than
 *                                                 it declared
 *
 * The peak of a task is known only for all its GPUs together; with several GPUs the mean is
 * compared. The overruns beside a task that crashes are written to the log with its end (EXITED),
 * because the other task may end before they are shown.
 */
#include "daemon/overrun.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/units.h"

/* Chosen: below it, it may be the size of a CUDA context that differs between drivers. */
#define OVERRUN_LEAST_BYTES (64 * MIB)

/* Returns the bytes that the task took on each of its GPUs beyond its memory requirement; 0: none;
 * unknown without a requirement or a peak. `job` may be NULL. */
static struct reading overrun_bytes(const struct task *task, const struct job *job)
{
    const struct need *need = &task->request.need;
    bool was_known = need->kind == NEED_DECLARED || need->kind == NEED_ESTIMATED;
    if (!was_known || !job || !job->mem_peak_bytes.valid || task->request.gpus == 0)
        return READING_NONE;
    double over = job->mem_peak_bytes.value / task->request.gpus - (double)need->bytes;
    return reading_of(over >= (double)OVERRUN_LEAST_BYTES ? over : 0);
}

json_t *overruns_beside(const struct core *core, const struct jobs *jobs, const struct task *task)
{
    json_t *list = json_array();
    for (const struct task *other = core_next_task(core, 0); other;
         other = core_next_task(core, other->id)) {
        if (other == task || !task_shares_gpu(task, other))
            continue;
        struct reading over = overrun_bytes(other, jobs_find(jobs, other->id));
        if (over.valid && over.value > 0)
            json_array_append_new(list, json_pack("{s:I, s:f, s:b}", "task", (json_int_t)other->id,
                                            "over_mib", over.value / (double)MIB, "declared",
                                            other->request.need.kind == NEED_DECLARED));
    }
    return list;
}

/* "11.4 GiB more than it declared" */
static void write_over(FILE *out, double over_bytes, const char *than)
{
    char size[32];
    fprintf(out, "%s more than %s", format_size((int64_t)over_bytes, size, sizeof size), than);
}

void overruns_write(FILE *out, const json_t *list)
{
    size_t i;
    json_t *one;
    json_array_foreach(list, i, one) {
        bool declared = json_is_true(json_object_get(one, "declared"));
        fprintf(out, "%stask %lld took ", i ? "; " : "",
            (long long)json_integer_value(json_object_get(one, "task")));
        write_over(out, json_number_value(json_object_get(one, "over_mib")) * (double)MIB,
            declared ? "it declared" : "was estimated for it");
    }
}

/* The task's own memory beyond its requirement. */
static void write_own(FILE *out, const struct task *task, const struct job *job)
{
    struct reading over = overrun_bytes(task, job);
    bool declared = task->request.need.kind == NEED_DECLARED;
    char size[32];
    if (!over.valid || over.value <= 0)
        return;
    fputs("took ", out);
    write_over(out, over.value, declared ? "declared" : "estimated");
    fprintf(out, " (%s%s)", format_size((int64_t)task->request.need.bytes, size, sizeof size),
        task->request.gpus > 1 ? " on each GPU" : "");
}

json_t *overrun_text(const struct task *task, const struct job *job)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return json_string("");
    write_own(out, task, job);
    if (job && json_array_size(job->overruns)) {
        fputs(ftell(out) > 0 ? "; " : "", out);
        overruns_write(out, job->overruns);
    }
    fclose(out);
    json_t *string = json_string(text ? text : "");
    free(text);
    return string;
}
