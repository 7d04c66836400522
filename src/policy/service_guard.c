/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an inference service demands before another task may share its GPU. A service admits a task
 * beside it if it has met its latency target for long enough (core/state/service.c), and if it is
 * predicted to meet it then, too: its p99 now, times the slowdown that the interference model
 * predicts, has to stay within the target.
 *
 * An example. A service has a target of 50 ms and a p99 of 20 ms: its requests may take 2.5 times
 * as long. Of a task that slows it down 1.8 times 36 ms are expected: it is admitted. One of
 * unknown activity counts as a whole GPU, 3 times here: it waits.
 */
#include "policy/service_guard.h"

#include <math.h>

#include "policy/predict.h"

static bool admits_task(const struct placement_query *query, int gpu,
    const struct resident *resident, struct verdict *ret_verdict)
{
    const struct resident_service *service = &resident->service;
    if (!service->is_open || query->now_us > service->until_us) {
        *ret_verdict = (struct verdict){.kind = VERDICT_SERVICE, .task = resident->task};
        return false;
    }
    double slowdown = isinf(service->headroom) ? 1 : predict_slowdown_of(query, gpu, resident);
    if (slowdown <= service->headroom)
        return true;
    *ret_verdict = (struct verdict){.kind = VERDICT_SERVICE_SLOWED,
        .task = resident->task,
        .have = slowdown,
        .limit = service->headroom};
    return false;
}

bool service_guard_ask_all(
    const struct placement_query *query, int gpu, struct verdict *ret_verdict)
{
    const struct gpu_view *view = &query->view->gpus[gpu];
    for (int i = 0; i < view->n_residents; i++)
        if (view->residents[i].service.is_service &&
            !admits_task(query, gpu, &view->residents[i], ret_verdict))
            return false;
    return true;
}
