/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The expected starts of waiting jobs (policy/forecast.h), with Slurm's ids. A forecast takes time
 * in a large cluster, so it is made once for each update, for all requests.
 *
 * A job that waits for its begin moment is not in the core, so it is no part of the forecast: its
 * begin moment is listed.
 */
#include "api/json_value.h"
#include "base/top_k.h"
#include "slurm/cluster_json.h"
#include "slurm/controller_state.h"

static json_t *start_json(
    const struct tracked_job *job, const struct forecast *start, int64_t wall_offset_us)
{
    bool is_known = start->start_us != START_UNKNOWN, is_of_array = job->index != SLURM_NO_INDEX;
    return json_pack("{s:I, s:o, s:o, s:n}", "id", (json_int_t)job->slurm_id, "array_index",
        is_of_array ? json_integer(job->index) : json_null(), "expected_start",
        is_known ? json_seconds(start->start_us + wall_offset_us) : json_null(), "earliest_start");
}

static bool waits_for_begin(
    const struct slurm_controller *controller, const struct slurm_job *record)
{
    return record->state == SLURM_STATE_PENDING && !record->is_held &&
           record->begin_s > controller->wall_s && cluster_is_live(controller, record);
}

static bool begins_earlier(const void *a, const void *b, const void *context)
{
    (void)context;
    const struct slurm_job *one = *(const struct slurm_job *const *)a,
                           *other = *(const struct slurm_job *const *)b;
    return one->begin_s < other->begin_s;
}

static json_t *begin_json(const struct slurm_job *record)
{
    bool is_of_array = record->array_id && record->array_index != SLURM_NO_INDEX;
    return json_pack("{s:I, s:o, s:n, s:I}", "id", (json_int_t)record->id, "array_index",
        is_of_array ? json_integer(record->array_index) : json_null(), "expected_start",
        "earliest_start", (json_int_t)record->begin_s);
}

static void append_begins(
    const struct slurm_controller *controller, const struct cluster_asker *asker, json_t *list)
{
    const struct slurm_job *earliest[FORECAST_BEGINS_MAX];
    size_t n = 0;
    for (size_t i = 0; i < controller->snapshot.n_jobs; i++) {
        const struct slurm_job *record = &controller->snapshot.jobs[i];
        if (waits_for_begin(controller, record) &&
            cluster_sees_jobs_of(controller, asker, record->uid))
            n = top_k_insert(
                earliest, n, FORECAST_BEGINS_MAX, sizeof *earliest, &record, begins_earlier, NULL);
    }
    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, begin_json(earliest[i]));
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
        if (job && cluster_sees_jobs_of(controller, asker, job->uid))
            json_array_append_new(list, start_json(job, &known->starts[i], wall_offset_us));
    }
    append_begins(controller, asker, list);
    return json_pack("{s:o}", "starts", list);
}
