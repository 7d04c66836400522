/* SPDX-License-Identifier: Apache-2.0 */
/* Questions about the view that several policies and the core ask. All are pure. */
#include "core/view.h"

#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/units.h"
#include "core/kind_match.h"
#include "core/memory_domain.h"

/* Memory in use on an idle GPU is below this. Measured: 15 MiB on an A100, a few hundred MiB with
 * an MPS server or a display. */
#define IDLE_MEM_BYTES (1 * GIB)

/* Chosen, as in daemon/gpus/idle_holders.c: noise of the counters is below. */
#define ACTIVE_LEAST 0.005

struct resident *gpu_view_resident(const struct gpu_view *gpu, uint64_t task)
{
    for (int i = 0; i < gpu->n_residents; i++)
        if (gpu->residents[i].task == task)
            return &gpu->residents[i];
    return NULL;
}

static const struct resident *find_unsettled(const struct gpu_view *place)
{
    for (int i = place->n_residents - 1; i >= 0; i--)
        if (!residence_has_settled(place->residents[i].residence))
            return &place->residents[i];
    return NULL;
}

const struct resident *gpu_view_unsettled(const struct gpu_view *gpu)
{
    const struct resident *newest = find_unsettled(gpu);
    for (const struct gpu_view *at = memory_domain_next(gpu); at != gpu;
         at = memory_domain_next(at)) {
        const struct resident *unsettled = find_unsettled(at);
        if (unsettled && (!newest || unsettled->since_us >= newest->since_us))
            newest = unsettled;
    }
    return newest;
}

int cluster_view_node_end(const struct cluster_view *view, int first)
{
    int end = first, node = view->gpus[first].id.node;
    if (!view->has_nodes)
        return view->n_gpus;
    while (end < view->n_gpus && view->gpus[end].id.node == node)
        end++;
    return end;
}

double resident_outstanding_bytes(const struct resident *resident)
{
    double need = reading_assume(resident->need_bytes, 0);
    double unseen = residence_has_settled(resident->residence) ? need : 0;
    return fmax(0, need - reading_assume(resident->mem_used_bytes, unseen));
}

static double sum_copies(const struct gpu_view *gpu, bool is_there)
{
    double bytes = 0;
    for (int i = 0; i < gpu->n_copies; i++)
        bytes += gpu->copies[i].is_there == is_there ? gpu->copies[i].bytes : 0;
    return bytes;
}

double gpu_view_copied_bytes(const struct gpu_view *gpu)
{
    return sum_copies(gpu, true);
}

double gpu_view_coming_bytes(const struct gpu_view *gpu)
{
    return sum_copies(gpu, false);
}

/* Does nothing besides use the GPU, when its tasks have so much memory there? */
static bool is_idle_besides(const struct gpu_view *gpu, double bytes)
{
    const struct reading *others = &gpu->external_processes, *activity = &gpu->utilisation_level;
    if (!gpu->mem_used_bytes.valid || gpu->mem_used_bytes.value - bytes > (double)IDLE_MEM_BYTES)
        return false;
    bool is_quiet = others->valid ? others->value == 0 : activity->valid && activity->value == 0;
    return is_quiet && !memory_domain_has_others(gpu);
}

bool gpu_view_is_idle_otherwise(const struct gpu_view *gpu)
{
    return gpu->n_absent == 0 && gpu->n_copies == 0 && is_idle_besides(gpu, 0);
}

bool gpu_view_is_idle_but_for(const struct gpu_view *gpu, const struct task *task)
{
    return gpu->n_residents == 0 && gpu->n_absent == 1 && gpu_view_has_context(gpu, task->id) &&
           is_idle_besides(gpu, reading_assume(task->run->yield.context_bytes, 0));
}

double gpu_view_open_bytes(const struct gpu_view *gpu)
{
    return gpu_view_is_idle(gpu) ? INFINITY : reading_assume(gpu_view_free_bytes(gpu), INFINITY);
}

double gpu_view_expected_w(const struct gpu_view *gpu, const struct expectation *expect)
{
    return reading_assume(expect->smact, 1) * gpu->id.power_limit_w;
}

bool gpu_view_draws_for_tasks(const struct gpu_view *gpu, int64_t settle_us)
{
    return gpu->n_residents > 0 || gpu->sampled_us - gpu->mix_since_us <= settle_us;
}

bool gpu_view_is_unused(const struct gpu_view *gpu, int64_t now_us)
{
    struct reading activity = gpu->smact_level.valid ? gpu->smact_level : gpu->utilisation_level;
    bool is_quiet = activity.valid && activity.value <= ACTIVE_LEAST;
    for (int i = 0; i < gpu->n_residents && is_quiet; i++)
        is_quiet = resident_is_unused(&gpu->residents[i], now_us);
    return is_quiet && gpu_view_is_idle_otherwise(gpu);
}

bool gpu_view_is_used_externally(const struct gpu_view *gpu, int64_t settle_us)
{
    if (memory_domain_has_external(gpu))
        return true;
    const struct gpu_view *at = gpu;
    do {
        if (at->n_residents > 0 || gpu->sampled_us - at->mix_since_us <= settle_us)
            return false;
        at = memory_domain_next(at);
    } while (at != gpu);
    return !gpu_view_is_idle(gpu);
}

bool cluster_view_matches_kind(const struct cluster_view *view, int gpu, const struct task *task)
{
    const struct gpu_identity *id = &view->gpus[gpu].id;
    bool is_suspended = task->state == TASK_SUSPENDED;
    if (!task_may_return_to(task, gpu))
        return false;
    if (is_suspended && strcmp(view->gpus[task->run->yield.from_gpu].id.name, id->name) != 0)
        return false;
    return (is_suspended && !kind_names_gpus(task->request.gpu_kind)) ||
           kind_match_gpu(task->request.gpu_kind, id->name, id->uuid);
}

const char *cluster_view_instance_of(const struct cluster_view *view, const struct task *task)
{
    const struct gpu_identity *id = task->n_gpus == 1 ? &view->gpus[task->gpus[0]].id : NULL;
    return id && id->is_mig_instance ? id->uuid : "";
}

int cluster_view_find(const struct cluster_view *view, const char *name, size_t size)
{
    for (int i = 0; i < view->n_gpus; i++) {
        const char *const names[] = {view->gpus[i].id.label, view->gpus[i].id.uuid};
        for (size_t k = 0; k < ARRAY_SIZE(names); k++)
            if (strlen(names[k]) == size && strncmp(names[k], name, size) == 0)
                return i;
    }
    return -1;
}

static bool is_usable(const struct cluster_view *view, int i, const struct task *task)
{
    const struct gpu_identity *id = &view->gpus[i].id;
    return id->is_place && !(id->is_mig_instance && task->request.gpus > 1) &&
           cluster_view_is_of_kind(view, i, task);
}

bool cluster_view_has_enough_larger(const struct cluster_view *view, const struct task *task)
{
    int n = 0;
    for (int i = 0; i < view->n_gpus && n < task->request.gpus; i++) {
        const struct gpu_view *gpu = &view->gpus[i];
        bool may_serve = gpu->health == VIEW_OK || gpu->health == VIEW_UNSEEN;
        n += is_usable(view, i, task) && may_serve &&
             gpu->id.mem_total_bytes >= task->request.need.bytes;
    }
    return n == task->request.gpus;
}

bool cluster_view_suits(const struct cluster_view *view, int gpu, const struct task *task)
{
    return is_usable(view, gpu, task) && cluster_view_is_large_enough(view, gpu, task);
}
