/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part's life, and the report that goes to the controller after each poll of the GPUs:
 *
 *     node_sampler.c    GPUs and the jobs of their processes
 *     node_steps.c      steps that run here, and whether they share their GPUs
 *     node_socket.c     requests of slurmstepd (src/spank): a step starts, a task has failed
 *     crash_verdict.c   did it run out of GPU memory? then Slurm requeues and holds its job
 *     node_crashes.c    such crashes, until they are reported
 *     job_waits.c       allocations of jobs that wait for GPU memory, and which jobs call CUDA
 *     away_jobs.c       jobs that are taken off their GPUs at the controller's word
 *     job_rooms.c       host memory of the agent's for the copies of these jobs
 *     slurmd_watch.c    ends the node's jobs when slurmd is lost
 *
 * A poll that does not end is reported, too: the GPUs are then listed without a single reading.
 */
#include "daemon/node/node.h"

#include <errno.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "daemon/node/away_jobs.h"
#include "daemon/node/node_state.h"
#include "nodelink/node_key.h"

enum { POLLS_MISSED = 3 }; /* chosen: as config_complete */

struct node *node_create(const struct node_options *options)
{
    struct node *node = calloc(1, sizeof *node);
    if (node)
        node->parts = *options;
    return node;
}

/* ---- reports ---- */

/* The sequence is the time since boot, so that it also grows when the agent is restarted. */
static void send_report(struct node *node)
{
    struct node_crash crashes[CRASHES_KEPT];
    struct node_job jobs[NODE_JOBS_MAX];
    size_t n_waiting = job_waits_report(node, jobs, NODE_JOBS_MAX);
    size_t n_away = away_jobs_report(node, jobs, n_waiting, NODE_JOBS_MAX);
    struct node_report report = {.sequence = clock_monotonic_us(),
        .time_us = clock_wall_us(),
        .gpus = node->gpus,
        .n_gpus = node->n_gpus,
        .crashes = crashes,
        .n_crashes = node_crashes_list(node, crashes),
        .suspends = away_jobs_are_taken(node),
        .jobs = jobs,
        .n_jobs = job_rooms_report(node, jobs, n_away, NODE_JOBS_MAX)};
    memcpy(report.node, node->name, sizeof report.node);
    memcpy(report.boot, node->boot, sizeof report.boot);
    if (node_uplink_send(node->uplink, &report) < 0)
        log_warning("a report could not be made: out of memory");
}

/* A poll is complete, its GPUs are in `node`. */
static void on_polled(struct node *node)
{
    node_steps_note_sharing(node);
    job_waits_poll(node);
    job_rooms_poll(node, away_jobs_out_bytes(node));
    away_jobs_poll(node);
    send_report(node);
}

/* The state of the GPUs is unknown from now on. */
static void forget_readings(struct node *node)
{
    for (size_t i = 0; i < node->n_gpus; i++) {
        struct node_gpu *gpu = &node->gpus[i];
        free(gpu->processes);
        struct node_gpu unknown = {
            .index = gpu->index, .memory_total_bytes = gpu->memory_total_bytes};
        memcpy(unknown.uuid, gpu->uuid, sizeof unknown.uuid);
        snprintf(unknown.trouble, sizeof unknown.trouble, "the driver does not answer");
        *gpu = unknown;
    }
}

static void on_period(uv_timer_t *timer)
{
    struct node *node = timer->data;
    int64_t limit_us = POLLS_MISSED * node->parts.config->sample_period_us;
    if (!node->poll.is_polling) {
        node_poll_begin(node, on_polled);
    } else if (clock_monotonic_us() - node->poll.begun_us > limit_us) {
        forget_readings(node);
        send_report(node);
    }
}

/* ---- answers ---- */

static void on_answer(void *context, const struct node_answer *answer)
{
    struct node *node = context;
    for (size_t i = 0; i < answer->n_pins; i++)
        node->pins[node->n_pins++ % PINS_KEPT] = answer->pins[i];
    if (answer->has_orders)
        away_jobs_order(node, answer->out, answer->n_out);
}

/* ---- its life ---- */

static void read_names(struct node *node)
{
    const struct config *config = node->parts.config;
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    host[strcspn(host, ".")] = '\0'; /* Slurm's usual NodeName */
    snprintf(node->name, sizeof node->name, "%.63s", *config->node_name ? config->node_name : host);
    file_read_start("/proc/sys/kernel/random/boot_id", node->boot, sizeof node->boot);
    node->boot[strcspn(node->boot, "\n")] = '\0';
}

static int open_uplink(struct node *node, struct fault *fault)
{
    const struct config *config = node->parts.config;
    const struct passwd *user = getpwnam(config->controller_user);
    if (strcmp(config->controller, "none") == 0)
        return fault_set(fault, EINVAL,
            "controller: not set: give the host and port where colloc-slurm listens, such as "
            "login1:7490");
    if (!user)
        return fault_set(
            fault, EINVAL, "controller-user: there is no user %s", config->controller_user);
    uint8_t key[SHA256_SIZE];
    int has_key = node_key_read(config->node_auth, config->node_key_file, fault, key);
    if (has_key < 0)
        return has_key;
    const struct node_uplink_options options = {.loop = node->parts.loop,
        .controller = config->controller,
        .key = has_key ? key : NULL,
        .munge_socket = config->munge_socket,
        .controller_uid = user->pw_uid,
        .node = node->name,
        .context = node,
        .on_answer = on_answer};
    int r = node_uplink_create(&options, fault, &node->uplink);
    explicit_bzero(key, sizeof key);
    return r;
}

int node_open(struct node *node, struct fault *fault)
{
    uint64_t period_ms = (uint64_t)(node->parts.config->sample_period_us / MS_US);
    read_names(node);
    uv_timer_init(node->parts.loop, &node->period);
    node->period.data = node;
    node->is_open = true;
    int r = open_uplink(node, fault);
    if (r == 0)
        node_steps_load(node); /* before requests of the same steps */
    if (r == 0)
        r = step_server_open(node, fault);
    if (r == 0 && slurmd_watch_open(node) < 0)
        r = fault_set(fault, ENOMEM, "out of memory");
    if (r == 0) {
        job_rooms_open(node);
        job_waits_open(node);
        away_jobs_open(node);
    }
    if (r == 0)
        uv_timer_start(&node->period, on_period, 0, period_ms);
    return r;
}

void node_close(struct node *node)
{
    if (!node || !node->is_open || node->is_closing)
        return;
    node->is_closing = true;
    uv_close((uv_handle_t *)&node->period, NULL);
    node_uplink_close(node->uplink);
    step_server_close(node);
    job_waits_close(node);
    job_rooms_close(node);
    away_jobs_close(node);
    slurmd_watch_close(node);
    node_steps_close(node);
}

void node_destroy(struct node *node)
{
    if (!node)
        return;
    node_poll_fini(node);
    node_gpus_free(node->gpus, node->n_gpus);
    node_uplink_destroy(node->uplink);
    step_server_destroy(node);
    job_waits_destroy(node);
    job_rooms_destroy(node);
    away_jobs_destroy(node);
    slurmd_watch_destroy(node);
    free(node);
}

void node_mps_ready(struct node *node, uid_t uid)
{
    if (!node->is_closing)
        step_server_mps_ready(node, uid);
}

size_t node_list_gpus(const struct node *node, const char **uuids, size_t max)
{
    size_t n = 0;
    for (size_t i = 0; i < node->n_gpus && n < max; i++)
        if (!*node->gpus[i].trouble && *node->gpus[i].uuid)
            uuids[n++] = node->gpus[i].uuid;
    return n;
}
