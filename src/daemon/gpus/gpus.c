/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part's life.
 *
 *     nvml_opening.c   lists the GPUs once, when the daemon starts
 *     sampler.c        polls NVML in the thread pool, feeds the core
 *     gpu_list.c       which GPUs there are, and changes
 *     process_attribution.c   which task each process on a GPU belongs to
 *     usage.c          divides activity and energy among tasks; usage_file.c stores the sums
 *     idle_holders.c   tasks that hold a GPU without using it
 *     gpus_query.c     what other parts may read
 */
#include "daemon/gpus/gpus.h"

#include <stdlib.h>

#include "daemon/gpus/gpus_state.h"

struct gpus *gpus_create(const struct gpus_options *options)
{
    struct gpus *gpus = calloc(1, sizeof *gpus);
    if (!gpus)
        return NULL;
    gpus->parts = *options;
    uv_timer_init(options->loop, &gpus->timer);
    gpus->timer.data = gpus;
    uv_async_init(options->loop, &gpus->polled, sampler_on_done);
    gpus->polled.data = gpus;
    return gpus;
}

int gpus_review_use(struct gpus *gpus)
{
    if (!gpus->set)
        return 0;
    gpu_list_warn_of_unknown(gpus->set, gpus->parts.config);
    int r = gpu_list_feed(gpus, true);
    gpus_poll(gpus);
    return r;
}

void gpus_close(struct gpus *gpus)
{
    if (!gpus || gpus->is_closed)
        return;
    gpus->is_closed = true;
    sampler_close(gpus);
    uv_close((uv_handle_t *)&gpus->timer, NULL);
    uv_close((uv_handle_t *)&gpus->polled, NULL);
}

void gpus_destroy(struct gpus *gpus)
{
    if (!gpus || gpus->is_left) /* the process ends, and with it the thread */
        return;
    for (size_t i = 0; gpus->states && i < gpus->set->count; i++)
        gpu_state_fini(&gpus->states[i]);
    free(gpus->states);
    task_roots_fini(&gpus->roots);
    free(gpus->listed);
    gpu_set_close(gpus->set);
    gpu_set_close(gpus->next);
    free(gpus);
}

void gpus_clear_errors(struct gpus *gpus, size_t i)
{
    gpus->states[i].errors_cleared = true;
    gpus_poll(gpus);
}
