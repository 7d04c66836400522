/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The GPUs of the cluster: what their agents report, the core's view of them, and the jobs on them.
 * Of a GPU without an agent nothing is measured: its readings are null.
 */

#include "api/json_value.h"
#include "base/clock.h"
#include "base/units.h"
#include "core/sharing_choice.h"
#include "slurm/cluster_json.h"
#include "slurm/controller_state.h"

static const char *find_health(const struct slurm_controller *controller,
    const struct gpu_view *view, const struct cluster_node *node, const char **ret_text)
{
    *ret_text = "";
    if (node->is_down || view->health == VIEW_LOST) {
        *ret_text = "its node is down";
        return "lost";
    }
    if (view->health == VIEW_FAULTY) {
        *ret_text = "the agent of its node reports a fault";
        return "faulty";
    }
    if (!controller_hears_agent(controller, node))
        *ret_text = node->reported_us ? "the agent of its node is silent: estimates alone decide"
                                      : "its node has no agent: estimates alone decide";
    return "ok";
}

static json_t *explain_hold(const struct slurm_controller *controller,
    const struct cluster_asker *asker, const struct gpu_view *view, const struct cluster_node *node,
    bool is_other_whole)
{
    char text[128], named[128];
    if (node->is_drained)
        return json_string("its node is drained");
    if (is_other_whole)
        return json_string("Slurm has started a job on it that colloc has not placed");
    if (!core_explain_hold(controller->core, view, text, sizeof text))
        return json_null();
    if (!cluster_sees_all_jobs(controller, asker))
        return json_string("another job keeps it");
    controller_name_jobs(controller, text, named, sizeof named);
    return json_string(named);
}

static json_t *jobs_on_gpu(const struct slurm_controller *controller,
    const struct cluster_asker *asker, const struct gpu_view *view, bool is_measured)
{
    json_t *jobs = json_array();
    for (int i = 0; i < view->n_residents; i++) {
        const struct resident *resident = &view->residents[i];
        const struct tracked_job *job = id_map_get(&controller->by_task, resident->task);
        if (!job || !cluster_sees_jobs_of(controller, asker, job->uid))
            continue;
        struct reading used = is_measured ? resident->mem_used_bytes : READING_NONE;
        json_array_append_new(jobs,
            json_pack("{s:I, s:o, s:n, s:n, s:b, s:n, s:b}", "id", (json_int_t)job->slurm_id,
                "mem_used_mib", json_reading(used, (double)MIB), "smact", "power_w", "settled",
                residence_has_settled(resident->residence), "unused_s", "unused_for_long", false));
    }
    return jobs;
}

static json_t *gpu_json(
    const struct slurm_controller *controller, const struct cluster_asker *asker, int number)
{
    const struct cluster_gpu *gpu = &controller->nodes.gpus[number];
    const struct cluster_node *node = controller->nodes.nodes[gpu->node];
    const struct gpu_view *view = &core_view(controller->core)->gpus[number];
    bool is_measured = controller_hears_agent(controller, node);
    const char *health_text, *health = find_health(controller, view, node, &health_text);
    struct reading used = is_measured ? view->mem_used_bytes : READING_NONE;
    struct reading free_bytes = reading_of((double)view->id.mem_total_bytes - used.value);
    free_bytes.valid = used.valid;
    json_t *object = json_object();
    json_object_set_new(object, "index", json_string(view->id.label));
    json_object_set_new(object, "uuid", json_string(*gpu->uuid ? gpu->uuid : view->id.uuid));
    json_object_set_new(object, "node", json_string(node->name));
    json_object_set_new(object, "health", json_string(health));
    json_object_set_new(object, "health_text", json_string(health_text));
    json_object_set_new(
        object, "mem_total_mib", json_real((double)view->id.mem_total_bytes / (double)MIB));
    json_object_set_new(object, "mem_used_mib", json_reading(used, (double)MIB));
    json_object_set_new(object, "mem_free_mib", json_reading(free_bytes, (double)MIB));
    json_object_set_new(object, "smact", json_reading(is_measured ? gpu->smact : READING_NONE, 1));
    json_object_set_new(
        object, "smact_window", json_reading(is_measured ? view->smact_level : READING_NONE, 1));
    json_object_set_new(
        object, "power_w", json_reading(is_measured ? gpu->power_w : READING_NONE, 1));
    json_object_set_new(object, "tasks", jobs_on_gpu(controller, asker, view, is_measured));
    json_object_set_new(
        object, "hold_off", explain_hold(controller, asker, view, node, gpu->is_other_whole));
    return object;
}

json_t *cluster_gpus_json(
    const struct slurm_controller *controller, const struct cluster_asker *asker)
{
    const struct core_settings *settings = core_get_settings(controller->core);
    json_t *gpus = json_array();
    int64_t sampled_us = 0;
    for (size_t i = 0; i < controller->nodes.n_gpus; i++) {
        const struct cluster_node *node = controller->nodes.nodes[controller->nodes.gpus[i].node];
        if (!node->is_listed)
            continue;
        json_array_append_new(gpus, gpu_json(controller, asker, (int)i));
        sampled_us = node->reported_us > sampled_us ? node->reported_us : sampled_us;
    }
    int64_t wall_us = clock_wall_us() - (clock_monotonic_us() - sampled_us);
    json_t *answer = json_pack("{s:o, s:o, s:s}", "gpus", gpus, "sampled_at",
        sampled_us > 0 ? json_seconds(wall_us) : json_null(), "policy", settings->policy->name);
    if (answer && json_array_size(gpus) == 0)
        json_object_set_new(answer, "why_none",
            json_string("no node of the cluster has GPUs by index: `colloc slurm check` says "
                        "what is missing"));
    return answer;
}
