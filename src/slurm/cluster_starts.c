/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When the jobs that wait are expected to start (policy/forecast.h), with Slurm's ids. A forecast
 * takes time in a large cluster, so that it is made once for each update, whoever asks for it.
 */
#include "api/json_value.h"
#include "slurm/cluster_json.h"
#include "slurm/controller_state.h"

static json_t *start_json(
    const struct tracked_job *job, const struct forecast *start, int64_t wall_offset_us)
{
    bool is_known = start->start_us != START_UNKNOWN, is_of_array = job->index != SLURM_NO_INDEX;
    return json_pack("{s:I, s:o, s:o}", "id", (json_int_t)job->slurm_id, "array_index",
        is_of_array ? json_integer(job->index) : json_null(), "expected_start",
        is_known ? json_seconds(start->start_us + wall_offset_us) : json_null());
}

json_t *cluster_starts_json(const struct slurm_controller *controller,
    const struct cluster_asker *asker, int64_t wall_offset_us, struct cluster_starts *known)
{
    if (known->update != controller->update) {
        known->n = forecast_starts(controller->core, controller->now_us, known->starts);
        known->update = known->n < 0 ? 0 : controller->update;
    }
    if (known->n < 0)
        return NULL;
    json_t *list = json_array();
    for (int i = 0; i < known->n; i++) {
        const struct tracked_job *job = id_map_get(&controller->by_task, known->starts[i].task);
        if (job && (cluster_sees_all_jobs(controller, asker) || asker->uid == job->uid))
            json_array_append_new(list, start_json(job, &known->starts[i], wall_offset_us));
    }
    return json_pack("{s:o}", "starts", list);
}
