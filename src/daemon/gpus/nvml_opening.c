/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The list of the GPUs at the start. A thread opens NVML, since a call of the driver may not
 * return. The daemon waits a moment for it, and otherwise goes on without GPUs:
 *
 *     gpus_open -> the thread answers in time  -> the core has the GPUs before its first step
 *               -> it does not                 -> gpus_finish_opening, once it has
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "daemon/gpus/gpus.h"
#include "daemon/gpus/gpus_query.h"
#include "daemon/gpus/gpus_state.h"

#define GPM_SHARE 0.0032 /* of one processor, for SM activity; chosen: a poll stays below 0.5 % */

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

bool gpus_finish_opening(struct gpus *gpus)
{
    struct fault fault = {0};
    int64_t took_us = clock_monotonic_us() - gpus->open_began_us;
    if (take_opened(gpus, &fault) < 0) {
        snprintf(gpus->why_none, sizeof gpus->why_none, "%s", fault.text);
        log_error("no GPUs: %s", fault.text);
        return false;
    }
    log_info("NVML has listed the GPUs after %.0f s: %zu", (double)took_us / (double)SECOND_US,
        gpus_count(gpus));
    return true;
}
