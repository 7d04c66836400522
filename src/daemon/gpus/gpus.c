/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part's life, and what other parts may read of it.
 *
 *     sampler.c        polls NVML in the thread pool, feeds the core
 *     gpu_list.c       which GPUs there are, and changes
 *     process_attribution.c   which task each process on a GPU belongs to
 *     usage.c          divides activity and energy among tasks; usage_file.c stores the sums
 *     idle_holders.c   tasks that hold a GPU without using it
 */
#include "daemon/gpus/gpus.h"

#include "daemon/gpus/gpus_query.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "daemon/gpus/gpus_state.h"

#define GPM_SHARE 0.0032 /* of one processor, for SM activity; chosen: a poll stays below 0.5 % */

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

static int feed_none(struct gpus *gpus)
{
    struct event event = driver_event(gpus->parts.driver, EVENT_GPUS, 0);
    event.gpus.list = NULL;
    event.gpus.n = 0;
    return driver_feed(gpus->parts.driver, &event, NULL);
}

static int64_t dcgm_period_us(const struct config *config)
{
    return config->sample_period_us > config->gpm_interval_us ? config->sample_period_us
                                                              : config->gpm_interval_us;
}

void gpus_update_dcgm_period(struct gpus *gpus)
{
    gpu_set_change_dcgm_period(gpus->set, dcgm_period_us(gpus->parts.config));
}

static int set_up_activity(struct gpus *gpus)
{
    const struct config *config = gpus->parts.config;
    gpu_set_gpm_interval(gpus->set, config->gpm_interval_us);
    gpu_set_limit_overhead(gpus->set, GPM_SHARE);
    if (strcmp(config->dcgmi, "none") == 0)
        return 0;
    return gpu_set_use_dcgm(gpus->set, config->dcgmi, dcgm_period_us(config));
}

static void open_set(struct poll_thread *thread, void *context)
{
    struct gpus *gpus = context;
    const char *library = gpus->parts.config->nvml_library;
    gpus->open_result = gpu_set_open(*library ? library : NULL, &gpus->open_fault, &gpus->opened);
}

/* NVML has answered. */
static int take_opened(struct gpus *gpus, struct fault *fault)
{
    int r = gpus->open_result;
    poll_thread_free(gpus->opener);
    gpus->opener = NULL;
    gpus->set = gpus->opened;
    *gpus->why_none = '\0';
    *fault = gpus->open_fault;
    if (r < 0)
        return r;
    if (r > 0) {
        snprintf(gpus->why_none, sizeof gpus->why_none, "%s", fault->text);
        log_warning(
            "no GPUs: %s (`colloc serve --emulate=4xA100-40GB` has emulated ones)", fault->text);
        return feed_none(gpus);
    }
    if (set_up_activity(gpus) < 0)
        return fault_set(fault, ENOMEM, "out of memory");
    gpus->states = calloc(gpus->set->count, sizeof *gpus->states);
    if (!gpus->states || gpu_list_feed(gpus, false) < 0)
        return fault_set(fault, ENOMEM, "out of memory");
    gpu_list_warn_of_unknown(gpus->set, gpus->parts.config);
    return 0;
}

/* Chosen: a start with a driver that answers takes a second at most. */
#define OPEN_WAIT_MS 5000

struct check {
    const char *library;
    struct gpu_set *set;
    int result;
};

static void open_for_check(struct poll_thread *thread, void *context)
{
    struct check *check = context;
    struct fault fault;
    check->result = gpu_set_open(check->library, &fault, &check->set);
}

/* Static: a thread that hangs in the driver ends with the process. */
void gpus_check(const struct config *config)
{
    static struct check check;
    check.library = *config->nvml_library ? config->nvml_library : NULL;
    struct poll_thread *opener = poll_thread_start(open_for_check, &check, NULL);
    if (!opener || !poll_thread_wait(opener, OPEN_WAIT_MS))
        return;
    poll_thread_free(opener);
    if (check.result != 0)
        return;
    gpu_list_warn_of_unknown(check.set, config);
    gpu_set_close(check.set);
}

int gpus_open(struct gpus *gpus, struct fault *fault)
{
    usage_load(gpus);
    gpus->open_began_us = clock_monotonic_us();
    gpus->opener = poll_thread_start(open_set, gpus, &gpus->polled);
    if (!gpus->opener)
        return fault_set(fault, ENOMEM, "out of memory");
    if (poll_thread_wait(gpus->opener, OPEN_WAIT_MS))
        return take_opened(gpus, fault);
    snprintf(gpus->why_none, sizeof gpus->why_none,
        "NVML has not listed the GPUs yet: a call of the NVIDIA driver does not return; "
        "try again when it has");
    log_warning(
        "NVML has not listed the GPUs within %d s: the daemon goes on, and starts tasks when "
        "it has; a GPU may hang (dmesg has its Xid)",
        OPEN_WAIT_MS / 1000);
    return 0;
}

void gpus_finish_opening(struct gpus *gpus)
{
    struct fault fault = {0};
    int64_t took_us = clock_monotonic_us() - gpus->open_began_us;
    if (take_opened(gpus, &fault) < 0) {
        snprintf(gpus->why_none, sizeof gpus->why_none, "%s", fault.text);
        log_error("no GPUs: %s", fault.text);
        return;
    }
    log_info("NVML has listed the GPUs after %.0f s: %zu", (double)took_us / (double)SECOND_US,
        gpus_count(gpus));
    gpus_start(gpus);
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

/* ---- what is known of them ---- */

size_t gpus_count(const struct gpus *gpus)
{
    return gpus->set ? gpus->set->count : 0;
}

const char *gpus_driver_version(const struct gpus *gpus)
{
    return gpus->set ? gpus->set->driver_version : "";
}

const char *gpus_why_none(const struct gpus *gpus)
{
    return gpus->why_none;
}

bool gpus_report(const struct gpus *gpus, size_t i, struct gpu_report *ret_report)
{
    if (i >= gpus_count(gpus))
        return false;
    const struct gpu_state *state = &gpus->states[i];
    const struct gpu_info *info = &gpus->set->gpu[i];
    *ret_report = (struct gpu_report){
        .info = info,
        .parent = info->is_mig ? &gpus->set->gpu[info->parent] : NULL,
        .sample = &state->sample,
        .view = state->view,
        .external = state->external,
        .n_external = state->n_external,
        .misplaced = state->misplaced,
        .n_misplaced = state->n_misplaced,
        .left = state->left,
        .n_left = state->n_left,
        .shares = state->shares,
        .n_shares = state->n_shares,
        .shares_estimated = state->shares_estimated,
    };
    return true;
}

const char *gpus_why_gone(const struct gpus *gpus, int view)
{
    if (core_view(gpus->parts.core)->gpus[view].id.is_gone)
        return "the MIG instance is not there any more";
    for (size_t i = 0; i < gpus_count(gpus); i++) {
        const struct gpu_sample *sample = &gpus->states[i].sample;
        if (gpus->states[i].view == view && sample->health == GPU_HEALTH_LOST)
            return sample->health_reason;
    }
    return NULL;
}

/*
 * Both count cards in PCI order (CUDA_DEVICE_ORDER=PCI_BUS_ID), whichever of them this daemon
 * manages. They differ where a card is in MIG mode or lost: CUDA then counts fewer. A client of MPS
 * counts the cards of its server, which has those that the daemon manages: NVML's index holds there
 * if these are all.
 */
bool gpus_cuda_counts_as_nvml(const struct gpus *gpus, bool by_mps)
{
    const struct cluster_view *view = core_view(gpus->parts.core);
    for (size_t i = 0; i < gpus_count(gpus); i++) {
        const struct gpu_info *gpu = &gpus->set->gpu[i];
        if (gpu->is_mig || gpu->mig_mode == GPU_MIG_ON || !*gpu->uuid)
            return false;
        int place = gpus->states[i].view;
        if (place >= 0 && view->gpus[place].health == VIEW_LOST)
            return false;
        if (by_mps && (place < 0 || !gpu->is_place))
            return false;
    }
    return gpus->set != NULL;
}

struct gpu_totals gpus_totals(const struct gpus *gpus)
{
    return (struct gpu_totals){
        .energy_j = gpus->energy_j,
        .mean_smact = gpus->smact_n ? reading_of(gpus->smact_sum / (double)gpus->smact_n)
                                    : READING_NONE,
    };
}

void gpus_clear_errors(struct gpus *gpus, size_t i)
{
    gpus->states[i].errors_cleared = true;
    gpus_poll(gpus);
}
