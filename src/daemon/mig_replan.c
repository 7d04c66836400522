/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Divides the GPUs by MIG again for the waiting tasks (setting mig-plan). While tasks wait, every
 * period of the setting mig-plan: `colloc mig plan --apply`, which divides the GPUs that have MIG
 * enabled and no task. It is another process since a plan takes many simulations, and NVML may take
 * seconds to create an instance; the loop does not wait for it. The daemon finds the new instances
 * in the same way as those of an administrator.
 */
#include "daemon/mig_replan.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/array.h"
#include "base/beside.h"
#include "base/clock.h"
#include "base/log.h"
#include "service/aligned_timer.h"

#define CHECK_MS 1000 /* chosen: how soon a changed setting takes effect */

struct mig_replan {
    uv_loop_t *loop;
    const struct config *config;
    const struct core *core;
    uv_timer_t timer;
    uv_process_t process;
    bool is_running, is_closed, has_warned;
    int64_t next_us; /* when to plan again */
};

static void on_process_closed(uv_handle_t *handle)
{
    struct mig_replan *replan = handle->data;
    replan->is_running = false;
}

static void on_planned(uv_process_t *process, int64_t status, int signal)
{
    if (status != 0 || signal != 0)
        log_warning("mig-plan: `colloc mig plan --apply` ended with %lld", (long long)status);
    uv_close((uv_handle_t *)process, on_process_closed);
}

/* Its output is for people; errors are in the daemon's log. */
static int start_plan(struct mig_replan *replan, const char *program)
{
    char path[512], mig[] = "mig", plan[] = "plan", apply[] = "--apply", socket[600], library[600];
    char *arguments[] = {
        path, mig, plan, apply, socket, *replan->config->nvml_library ? library : NULL, NULL};
    uv_stdio_container_t streams[] = {{.flags = UV_IGNORE}, {.flags = UV_IGNORE},
        {.flags = UV_INHERIT_FD, .data.fd = STDERR_FILENO}};
    const uv_process_options_t options = {.file = program,
        .args = arguments,
        .exit_cb = on_planned,
        .stdio_count = ARRAY_SIZE(streams),
        .stdio = streams};
    snprintf(path, sizeof path, "%s", program);
    snprintf(socket, sizeof socket, "--socket=%s", replan->config->socket_path);
    snprintf(library, sizeof library, "--nvml-library=%s", replan->config->nvml_library);
    replan->process.data = replan;
    int r = uv_spawn(replan->loop, &replan->process, &options);
    replan->is_running = true; /* a handle that could not start has to be closed, too */
    if (r < 0)
        uv_close((uv_handle_t *)&replan->process, on_process_closed);
    return r;
}

static void warn_once(struct mig_replan *replan, const char *why)
{
    if (!replan->has_warned)
        log_warning("mig-plan: GPUs are not divided: %s", why);
    replan->has_warned = true;
}

static void plan_gpus(struct mig_replan *replan)
{
    static const char *const places[] = {"../bin", "../cli", "."}; /* installed, in the build */
    char program[512];
    int r;
    if (geteuid() != 0)
        warn_once(replan, "collocd does not run as root");
    else if (beside_find(places, ARRAY_SIZE(places), "colloc", program, sizeof program) < 0)
        warn_once(replan, "the program colloc was not found beside collocd");
    else if ((r = start_plan(replan, program)) < 0)
        warn_once(replan, uv_strerror(r));
}

static void on_time(uv_timer_t *timer)
{
    struct mig_replan *replan = timer->data;
    int64_t period_us = replan->config->mig_plan_us, now_us = clock_monotonic_us();
    aligned_timer_start(timer, on_time, CHECK_MS);
    if (period_us == 0 || replan->is_running || now_us < replan->next_us ||
        core_queued_count(replan->core) == 0)
        return;
    replan->next_us = now_us + period_us;
    plan_gpus(replan);
}

struct mig_replan *mig_replan_create(
    uv_loop_t *loop, const struct config *config, const struct core *core)
{
    struct mig_replan *replan = calloc(1, sizeof *replan);
    if (!replan)
        return NULL;
    replan->loop = loop;
    replan->config = config;
    replan->core = core;
    uv_timer_init(loop, &replan->timer);
    replan->timer.data = replan;
    aligned_timer_start(&replan->timer, on_time, CHECK_MS);
    return replan;
}

void mig_replan_close(struct mig_replan *replan)
{
    if (!replan || replan->is_closed)
        return;
    replan->is_closed = true;
    uv_close((uv_handle_t *)&replan->timer, NULL);
    if (replan->is_running && !uv_is_closing((uv_handle_t *)&replan->process))
        uv_close((uv_handle_t *)&replan->process, NULL);
}

void mig_replan_destroy(struct mig_replan *replan)
{
    free(replan);
}
