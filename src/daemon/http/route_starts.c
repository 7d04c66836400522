/* SPDX-License-Identifier: Apache-2.0 */
/* GET /v1/starts: when the first waiting tasks are expected to start (policy/forecast.h). All users
 * may see it, as they may the queue. */
#include "daemon/http/public_json.h"
#include "daemon/http/routes.h"
#include "policy/forecast.h"

static json_t *start_json(const struct http *http, const struct forecast *start)
{
    bool is_known = start->start_us != START_UNKNOWN, begins = start->begin_us != START_UNKNOWN;
    return json_pack("{s:I, s:o, s:o}", "id", (json_int_t)start->task, "expected_start",
        json_moment(http, start->start_us, is_known), "earliest_start",
        json_moment(http, start->begin_us, begins));
}

void route_starts(void *context, struct api_request *request)
{
    const struct http *http = context;
    struct forecast starts[FORECAST_TASKS_MAX];
    int n = forecast_starts(http->parts.core, driver_now_us(http->parts.driver), starts);
    json_t *list = n < 0 ? NULL : json_array();
    for (int i = 0; i < n; i++)
        json_array_append_new(list, start_json(http, &starts[i]));
    api_reply(request, 200, list ? json_pack("{s:o}", "starts", list) : NULL);
}
