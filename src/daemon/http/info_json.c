/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon itself as the answer of GET /v1/info: version, settings, sums. */
#include <unistd.h>
#include <uv.h>

#include "base/units.h"
#include "core/sharing_choice.h"
#include "daemon/gpus/gpus_query.h"
#include "daemon/http/public_json.h"
#include "estimator/physics/gpu_traits.h"

static json_t *settings_json(const struct config *config)
{
    const struct conditions *conditions = &config->core.conditions;
    return json_pack("{s:f, s:s, s:f, s:f, s:f, s:f, s:f, s:f, s:i, s:i, s:s, s:f, s:f, s:i}",
        "smact_max", conditions->smact_max, "smact_statistic",
        window_statistic_name(config->core.statistic), "min_free_mib",
        (double)conditions->min_free_bytes / (double)MIB, "margin_mib",
        (double)conditions->margin_bytes / (double)MIB, "window_s",
        (double)config->core.window_us / 1e6, "sample_period_s",
        (double)config->sample_period_us / 1e6, "settle_s", (double)config->core.settle_us / 1e6,
        "settle_max_s", (double)config->core.settle_max_us / 1e6, "recoveries",
        config->core.recoveries_max, "tasks_per_gpu", conditions->tasks_per_gpu_max, "order",
        queue_order_name(config->core.order), "usage_half_life_s",
        (double)config->core.usage_half_life_us / 1e6, "gpu_hours_window_s",
        (double)config->core.usage_window_us / 1e6, "co2_g_per_kwh", config->co2_g_per_kwh);
}

/* Main memory and CPUs of the server: the totals, and the requests of running tasks. */
static json_t *host_json(const struct core *core)
{
    const struct host_resources *most = &core_get_settings(core)->host;
    const struct host_resources *used = core_host_used(core);
    return json_pack("{s:f, s:f, s:f, s:f, s:i, s:i}", "memory_mib",
        (double)uv_get_total_memory() / (double)MIB, "memory_available_mib",
        (double)uv_get_free_memory() / (double)MIB, "memory_tasks_mib",
        (double)used->memory_bytes / (double)MIB, "memory_tasks_max_mib",
        (double)most->memory_bytes / (double)MIB, "cpus_tasks", (int)used->cpus, "cpus_tasks_max",
        (int)most->cpus);
}

/* Host memory that is ready for copies of GPU memory. */
static json_t *carrier_pool_json(const struct http *http)
{
    const struct room_totals rooms = preload_manager_rooms(http->parts.preload);
    return json_pack("{s:f, s:f, s:f, s:f, s:i}", "max_mib", (double)rooms.max_bytes / (double)MIB,
        "made_mib", (double)rooms.bytes / (double)MIB, "used_mib",
        (double)rooms.used_bytes / (double)MIB, "user_share_mib",
        (double)rooms.share_bytes / (double)MIB, "files", rooms.rooms);
}

/* What measured speeds have taught about a way of sharing. */
static json_t *learned_delay_json(const struct core *core, enum sharing sharing)
{
    struct learned_delay learned = core_learned_delay(core, sharing);
    return json_pack("{s:f, s:i, s:f}", "factor", learned.factor, "users", learned.n_users,
        "delay_predicted_s", learned.predicted_s);
}

static json_t *learned_delays_json(const struct core *core)
{
    return json_pack("{s:b, s:o, s:o}", "learns", core_get_settings(core)->learns_delays, "streams",
        learned_delay_json(core, SHARING_STREAMS), "mps", learned_delay_json(core, SHARING_MPS));
}

/* Kinds of GPUs that the estimators do not know, and the kind that they assume instead. */
static json_t *unknown_kinds(const struct http *http)
{
    json_t *kinds = json_object();
    struct gpu_report gpu;
    for (size_t i = 0; gpus_report(http->parts.gpus, i, &gpu); i++) {
        const char *name = gpu.info->name;
        if (*name && !gpu_traits_find(name))
            json_object_set_new(
                kinds, name, json_sprintf("estimated as an %s", gpu_traits_assumed()->match));
    }
    return kinds;
}

void public_counts(const struct http *http, int *ret_queued, int *ret_running)
{
    const struct core *core = http->parts.core;
    *ret_queued = core_queued_count(core) + core_recovery_queue(core)->count;
    *ret_running = 0;
    for (const struct task *task = core_next_task(core, 0); task;
         task = core_next_task(core, task->id))
        *ret_running += task_state_holds_gpus(task->state);
}

/* Of all tasks that the daemon knows; null: there are none, or it cannot be read. */
static json_t *first_submitted_json(const struct http *http)
{
    const struct task *task = core_next_task(http->parts.core, 0);
    struct fault fault = {0};
    int64_t wall_us = 0;
    if (store_first_submitted(http->parts.store, &fault, &wall_us) < 0)
        return json_null();
    double ended_s = (double)wall_us / 1e6;
    json_t *first = json_moment(http, task ? task->submitted_us : 0, task != NULL);
    if (wall_us && (!task || ended_s < json_number_value(first))) {
        json_decref(first);
        return json_real(ended_s);
    }
    return first;
}

json_t *public_info(const struct http *http)
{
    int queued, running;
    public_counts(http, &queued, &running);
    const char *loss = store_get_loss(http->parts.store);
    return json_pack(
        "{s:s, s:i, s:i, s:s, s:s, s:s, s:s, s:o, s:o, s:i, s:i, s:o, s:o, s:o, s:o, s:o}",
        "version", COLLOC_VERSION, "api", 1, "pid", (int)getpid(), "policy",
        http->parts.config->core.policy->name, "sharing", sharing_name(http->parts.config->sharing),
        "estimator", http->parts.config->estimator, "state_dir", http->parts.config->state_dir,
        "settings", settings_json(http->parts.config), "gpu_kinds_not_known", unknown_kinds(http),
        "queued", queued, "running", running, "log_loss", *loss ? json_string(loss) : json_null(),
        "first_submitted_at", first_submitted_json(http), "host", host_json(http->parts.core),
        "carrier_pool", carrier_pool_json(http), "learned_delays",
        learned_delays_json(http->parts.core));
}
