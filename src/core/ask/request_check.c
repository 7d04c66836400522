/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Can a request ever be met here? Asked when a task is submitted: one that can never start would
 * wait for ever.
 *
 * The test uses the totals of the server or the cluster, not what is free now: enough GPUs of its
 * kind on one node, or on each of several, large enough for its declared memory, the power of its
 * declared activity, and the host's CPUs and memory. An estimate refuses nothing, since it may be
 * wrong. On two nodes, one with four A100 of 40 GiB, the other with two of 80 GiB:
 *
 *     gpus=4                   yes
 *     gpus=6                   no: at most 4 on one node
 *     gpus=4 memory=60G        no: there are only two of that size
 */
#include "core/questions.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "core/ask/host_check.h"
#include "core/kind_match.h"
#include "core/node_spread.h"
#include "core/state/state.h"
#include "core/text_line.h"

static bool can_ever_serve(
    const struct gpu_identity *id, const struct task_request *request, int64_t bytes)
{
    return id->is_place && !(id->is_mig_instance && request->gpus > 1) &&
           kind_match_gpu(request->gpu_kind, id->name, id->uuid) && id->mem_total_bytes >= bytes;
}

/* How many places can ever serve the request with `bytes` on each, counted up to `enough`: of one
 * node for a task of several GPUs. A MIG instance serves a task of one GPU only. */
static int count_places(
    const struct core *core, const struct task_request *request, int64_t bytes, int enough)
{
    int most = 0, n = 0;
    for (int i = 0; i < core->view.n_gpus && most < enough; i++) {
        const struct gpu_identity *id = &core->view.gpus[i].id;
        if (i > 0 && request->gpus > 1 && id->node != core->view.gpus[i - 1].id.node)
            n = 0;
        n += can_ever_serve(id, request, bytes);
        most = n > most ? n : most;
    }
    return most;
}

static int64_t largest_gpu_bytes(const struct core *core, const struct task_request *request)
{
    int64_t largest = 0;
    for (int i = 0; i < core->view.n_gpus; i++) {
        const struct gpu_identity *id = &core->view.gpus[i].id;
        if (id->is_place && kind_match_gpu(request->gpu_kind, id->name, id->uuid) &&
            id->mem_total_bytes > largest)
            largest = id->mem_total_bytes;
    }
    return largest;
}

/* The names of all GPUs, each once. */
static void add_names(struct text_line *line, const struct core *core)
{
    for (int i = 0, listed = 0; i < core->view.n_gpus; i++) {
        int first = 0;
        while (strcmp(core->view.gpus[first].id.name, core->view.gpus[i].id.name) != 0 ||
               !core->view.gpus[first].id.is_place)
            if (first++ == i)
                break;
        if (first == i)
            text_line_add(line, "%s%s", listed++ ? ", " : "", core->view.gpus[i].id.name);
    }
}

static int refuse_kind(
    const struct core *core, const struct task_request *request, int places, struct fault *fault)
{
    char names[400] = "";
    struct text_line line = {names, sizeof names, 0};
    add_names(&line, core);
    if (kind_names_gpus(request->gpu_kind))
        return fault_set(fault, EINVAL,
            "gpu_ids: the task takes %d of the GPUs that it names, and only %d of them can serve it",
            request->gpus, places);
    if (places == 0)
        return fault_set(fault, EINVAL, "gpu_kinds=%s: no GPU here is of that kind; there are: %s",
            request->gpu_kind, names);
    return fault_set(fault, EINVAL,
        "gpus=%d: a task can have at most %d of kind %s here; the GPUs are: %s", request->gpus,
        places, request->gpu_kind, names);
}

/* Why a task can have no more than `places` GPUs although there are others. */
static const char *why_fewer(const struct core *core, int places)
{
    if (places == core->view.n_gpus)
        return "";
    if (cluster_view_node_end(&core->view, 0) < core->view.n_gpus)
        return " on one node";
    return " (MIG instances serve tasks of one GPU only)";
}

/* The request, and the memory that each of its GPUs must have. */
struct servable {
    const struct core *core;
    const struct task_request *request;
    int64_t bytes;
};

static bool is_servable(const void *context, int gpu)
{
    const struct servable *servable = context;
    return can_ever_serve(&servable->core->view.gpus[gpu].id, servable->request, servable->bytes);
}

static int check_over_nodes(
    const struct core *core, const struct task_request *request, struct fault *fault)
{
    const struct servable servable = {
        core, request, request->need.kind == NEED_DECLARED ? request->need.bytes : 0};
    int *gpus = calloc((size_t)core->view.n_gpus + 1, sizeof *gpus);
    if (!gpus)
        return fault_set(fault, ENOMEM, "out of memory");
    bool is_found = request->gpus <= core->view.n_gpus &&
                    node_spread_find(&core->view, request, is_servable, &servable, gpus);
    free(gpus);
    if (is_found)
        return 0;
    return fault_set(fault, EINVAL,
        "gpus=%d: there are no %d nodes with as many GPUs of the same indices, large enough for it",
        request->gpus, request->nodes);
}

/* The least power that a GPU which can serve the request is expected to draw for it. */
static double least_gpu_power_w(const struct core *core, const struct task_request *request)
{
    double least_w = INFINITY;
    for (int i = 0; i < core->view.n_gpus; i++)
        if (can_ever_serve(&core->view.gpus[i].id, request, 0))
            least_w = fmin(least_w, gpu_view_expected_w(&core->view.gpus[i], &request->expect));
    return least_w;
}

/* By what the user declares: without an activity, an estimate or the run history may still give
 * one. What other GPUs draw is not part of it, since that is measured (policy/load_limits.c). */
static int check_power(
    const struct core *core, const struct task_request *request, struct fault *fault)
{
    int limit_w = core->settings.conditions.server_power_max_w;
    if (!limit_w || !request->expect.smact.valid)
        return 0;
    double power_w = request->gpus * least_gpu_power_w(core, request);
    if (power_w <= limit_w)
        return 0;
    return fault_set(fault, EINVAL,
        "smact=%.4g: its GPUs would draw %.0f W, and all GPUs of the server may draw %d W "
        "(server-power-max): the task could never start; give a lower smact if it uses less, or "
        "have the setting raised",
        request->expect.smact.value, power_w, limit_w);
}

static int check_without_gpu(
    const struct core *core, const struct task_request *request, struct fault *fault)
{
    if (request->service.is_service)
        return fault_set(fault, EINVAL,
            "gpus=0: a service shares a GPU with trainings: give it one, or start it as a task");
    if (request->gpu_kind && kind_names_gpus(request->gpu_kind))
        return fault_set(fault, EINVAL,
            "gpus=0: a task without a GPU cannot name GPUs (gpu_ids): leave out one of the two");
    if (request->gpu_kind)
        return fault_set(fault, EINVAL,
            "gpus=0: a task without a GPU has no kind of GPU (gpu_kinds): leave out one of the two");
    return core_check_host_request(core, &request->host, fault);
}

int core_check_request(
    const struct core *core, const struct task_request *request, struct fault *fault)
{
    if (request->gpus < 0)
        return fault_set(
            fault, EINVAL, "gpus=%d: give a number of GPUs; 0: it needs none", request->gpus);
    if (request->gpus == 0)
        return check_without_gpu(core, request, fault);
    if (node_spread_is_wanted(request))
        return check_over_nodes(core, request, fault);
    int places = count_places(core, request, 0, request->gpus);
    if (core->view.n_gpus == 0)
        return fault_set(fault, EINVAL, "gpus=%d: this server has no GPU, or its driver shows none",
            request->gpus);
    if (request->gpus > places && request->gpu_kind)
        return refuse_kind(core, request, places, fault);
    if (request->gpus > places)
        return fault_set(fault, EINVAL, "gpus=%d: a task can have at most %d here%s", request->gpus,
            places, why_fewer(core, places));
    if (request->need.kind == NEED_DECLARED &&
        count_places(core, request, request->need.bytes, request->gpus) < request->gpus) {
        char text[32], largest[32];
        return fault_set(fault, EINVAL,
            "memory=%s: this server has too few GPUs that large (the largest has %s for "
            "tasks), the task could never start",
            format_size(request->need.bytes, text, sizeof text),
            format_size(largest_gpu_bytes(core, request), largest, sizeof largest));
    }
    int r = check_power(core, request, fault);
    return r < 0 ? r : core_check_host_request(core, &request->host, fault);
}
