/* SPDX-License-Identifier: Apache-2.0 */
/*
 * While there are services, a timer runs ten times a second and sends a request to each service
 * without an open one. Once a second the list of services is compared with the residents of the
 * GPUs, and the p99 of each goes to the core. It is that of the requests of the last ten seconds,
 * but only of those since the service's co-residents last changed, so that the effect shows at
 * once.
 */
#include "daemon/services/services.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/latency_window.h"
#include "base/log.h"
#include "daemon/services/http_probe.h"
#include "service/aligned_timer.h"

enum {
    PROBE_MS = 100,     /* chosen: little load, and 100 requests in a window */
    REPORT_MS = 1000,   /* chosen: as often as GPUs are sampled */
    REQUESTS_LEAST = 5, /* chosen: with fewer, one slow request decides */
    SLOW_REQUESTS_LEAST = 2,
};

#define WINDOW_US      (10 * SECOND_US) /* chosen */
#define SLOW_WINDOW_US (3 * SERVICES_TIMEOUT_US)

struct probed {
    struct probed *next;
    struct services *services;
    uint64_t task;
    int attempt, port;
    char path[200];
    bool has_answered, is_current;
    struct http_probe *request; /* under way, or NULL */
    int64_t request_us;         /* when it began */
    struct latency_window latencies;
};

struct services {
    struct services_options parts;
    struct probed *first;
    uv_timer_t timer;
    int64_t reported_us;
};

/* ---- requests ---- */

static void note_latency(struct probed *probed, bool has_answered, int64_t took_us)
{
    probed->request = NULL;
    probed->has_answered |= has_answered;
    if (probed->has_answered)
        latency_window_add(
            &probed->latencies, clock_monotonic_us(), has_answered ? took_us : SERVICES_TIMEOUT_US);
}

static void on_answer(void *context, bool has_answered, int64_t took_us)
{
    note_latency(context, has_answered, took_us);
}

static void probe_service(struct probed *probed)
{
    int64_t now_us = clock_monotonic_us();
    if (probed->request && now_us - probed->request_us < SERVICES_TIMEOUT_US)
        return;
    if (probed->request) {
        http_probe_stop(probed->request);
        note_latency(probed, false, 0);
    }
    probed->request_us = now_us;
    probed->request = http_probe_start(
        probed->services->parts.loop, probed->port, probed->path, on_answer, probed);
}

/* ---- the list ---- */

static struct probed *find_probed(const struct services *services, uint64_t task)
{
    struct probed *probed = services->first;
    while (probed && probed->task != task)
        probed = probed->next;
    return probed;
}

static void add_service(struct services *services, const struct task *task, const struct job *job)
{
    struct probed *probed = calloc(1, sizeof *probed);
    if (!probed) {
        log_warning("task %llu is not probed: out of memory", (unsigned long long)task->id);
        return;
    }
    probed->services = services;
    probed->task = task->id;
    probed->attempt = task->attempts;
    probed->port = job->port;
    probed->is_current = true;
    snprintf(probed->path, sizeof probed->path, "%s", *job->probe_path ? job->probe_path : "/");
    probed->next = services->first;
    services->first = probed;
}

static void note_resident(struct services *services, uint64_t id)
{
    const struct task *task = core_task(services->parts.core, id);
    const struct job *job = jobs_find(services->parts.jobs, id);
    struct probed *probed = find_probed(services, id);
    if (!task || !job || !job->port || !task->request.service.is_service ||
        task->state != TASK_RUNNING)
        return;
    if (probed && probed->attempt == task->attempts)
        probed->is_current = true;
    else if (!probed)
        add_service(services, task, job);
}

static void remove_ended(struct services *services)
{
    for (struct probed **at = &services->first; *at;) {
        struct probed *probed = *at;
        if (probed->is_current) {
            at = &probed->next;
            continue;
        }
        *at = probed->next;
        http_probe_stop(probed->request);
        free(probed);
    }
}

static void update_list(struct services *services)
{
    const struct cluster_view *view = core_view(services->parts.core);
    for (struct probed *probed = services->first; probed; probed = probed->next)
        probed->is_current = false;
    for (int i = 0; i < view->n_gpus; i++)
        for (int k = 0; k < view->gpus[i].n_residents; k++)
            if (view->gpus[i].residents[k].service.is_service)
                note_resident(services, view->gpus[i].residents[k].task);
    remove_ended(services);
}

/* ---- reports ---- */

static struct reading p99_since(const struct driver *driver, const struct task *task,
    const struct probed *probed, int64_t window_us, size_t least)
{
    int64_t since_us = clock_monotonic_us() - window_us;
    int64_t changed_us = driver_monotonic_us(driver, task->run->service.changed_us);
    return latency_window_quantile(
        &probed->latencies, 0.99, changed_us > since_us ? changed_us : since_us, least);
}

static void report_service(struct services *services, const struct probed *probed)
{
    struct driver *driver = services->parts.driver;
    const struct task *task = core_task(services->parts.core, probed->task);
    struct event event = driver_event(driver, EVENT_LATENCY, probed->task);
    /* Slow requests are few: then fewer, of a longer time, are enough. */
    event.p99_us = p99_since(driver, task, probed, WINDOW_US, REQUESTS_LEAST);
    if (!event.p99_us.valid)
        event.p99_us = p99_since(driver, task, probed, SLOW_WINDOW_US, SLOW_REQUESTS_LEAST);
    driver_feed(driver, &event, NULL);
}

/* Ticks are whole milliseconds of the loop's clock: a report may be due a little early. */
static void report_when_due(struct services *services)
{
    int64_t now_us = clock_monotonic_us();
    if (now_us - services->reported_us < (REPORT_MS - PROBE_MS / 2) * MS_US)
        return;
    services->reported_us = now_us;
    update_list(services);
    for (struct probed *probed = services->first; probed; probed = probed->next)
        report_service(services, probed);
}

static void on_tick(uv_timer_t *timer)
{
    struct services *services = timer->data;
    for (struct probed *probed = services->first; probed; probed = probed->next)
        probe_service(probed);
    report_when_due(services);
    aligned_timer_start(timer, on_tick, services->first ? PROBE_MS : REPORT_MS);
}

/* ---- life ---- */

struct services *services_create(const struct services_options *options)
{
    struct services *services = calloc(1, sizeof *services);
    if (!services)
        return NULL;
    services->parts = *options;
    uv_timer_init(options->loop, &services->timer);
    services->timer.data = services;
    aligned_timer_start(&services->timer, on_tick, REPORT_MS);
    return services;
}

void services_close(struct services *services)
{
    if (!services || uv_is_closing((uv_handle_t *)&services->timer))
        return;
    for (struct probed *probed = services->first; probed; probed = probed->next)
        probed->is_current = false;
    remove_ended(services);
    uv_close((uv_handle_t *)&services->timer, NULL);
}

void services_destroy(struct services *services)
{
    free(services);
}
