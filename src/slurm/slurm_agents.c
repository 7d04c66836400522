/* SPDX-License-Identifier: Apache-2.0 */
/* Passes the agents' reports on to the controller. A report is copied member by member into the
 * controller's own form, which knows no network. */
#include "slurm/slurm_agents.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "nodelink/node_hub.h"
#include "nodelink/node_key.h"
#include "slurm/node_table.h"

struct slurm_agents {
    struct slurm_controller *controller;
    struct node_hub *hub;
    void (*on_news)(void *context);
    void (*on_samples)(void *context);
    void *context;
};

static bool knows_node(void *context, const char *node)
{
    const struct slurm_agents *agents = context;
    return slurm_controller_has_node(agents->controller, node);
}

static void take_gpu(struct slurm_agents *agents, const char *node, const struct node_gpu *gpu)
{
    struct slurm_gpu_process processes[NODE_PROCESSES_MAX];
    struct slurm_gpu_reading reading = {.index = gpu->index,
        .mem_total_bytes = gpu->memory_total_bytes,
        .mem_used_bytes = gpu->memory_used_bytes,
        .smact = gpu->smact,
        .power_w = gpu->power_w,
        .uuid = gpu->uuid,
        .is_faulty = *gpu->trouble,
        .processes_known = gpu->processes_known,
        .external_at_least = gpu->external_at_least,
        .processes = processes};
    for (size_t i = 0; i < gpu->n_processes && i < NODE_PROCESSES_MAX; i++)
        processes[reading.n_processes++] = (struct slurm_gpu_process){.job = gpu->processes[i].job,
            .is_claimed = gpu->processes[i].is_claimed,
            .uid = gpu->processes[i].uid,
            .mem_used_bytes = gpu->processes[i].memory_bytes};
    slurm_controller_report(agents->controller, node, &reading, 1, clock_monotonic_us());
}

static void take_jobs(struct slurm_agents *agents, const struct node_report *report)
{
    static const enum slurm_job_where where[] = {[NODE_JOB_HERE] = SLURM_JOB_HERE,
        [NODE_JOB_GOING] = SLURM_JOB_ON_ITS_WAY,
        [NODE_JOB_OUT] = SLURM_JOB_OUT,
        [NODE_JOB_COMING] = SLURM_JOB_ON_ITS_WAY};
    struct slurm_job_report jobs[NODE_JOBS_MAX];
    size_t n = 0;
    for (size_t i = 0; i < report->n_jobs && n < NODE_JOBS_MAX; i++) {
        const struct node_job *job = &report->jobs[i];
        jobs[n++] = (struct slurm_job_report){.job = job->job,
            .where = where[job->where],
            .waits_bytes = job->waits_bytes,
            .idle_us = job->idle_us,
            .held_bytes = job->held_bytes,
            .kept_bytes = job->kept_bytes,
            .took_us = job->took_us,
            .is_called = job->is_called,
            .is_carried = job->is_carried,
            .has_ranks = job->has_ranks,
            .has_failed = job->failure != NODE_JOB_NO_FAILURE,
            .may_later = job->failure == NODE_JOB_NOT_NOW,
            .why = job->why,
            .room_bytes = job->room_bytes,
            .rooms = job->rooms};
    }
    slurm_controller_report_jobs(
        agents->controller, report->node, report->suspends, jobs, n, clock_monotonic_us());
}

/* An order is repeated with each report, and once more when it has become empty. */
static void order_node(struct slurm_agents *agents, struct cluster_node *node)
{
    uint32_t jobs[NODE_JOBS_MAX];
    size_t n = slurm_controller_list_away(agents->controller, node->name, jobs, NODE_JOBS_MAX);
    if (n > 0 || node->has_orders)
        node->has_orders = node_hub_order(agents->hub, node->name, jobs, n) < 0 || n > 0;
}

static void on_report(void *context, const struct node_report *report)
{
    struct slurm_agents *agents = context;
    for (size_t i = 0; i < report->n_gpus; i++)
        take_gpu(agents, report->node, &report->gpus[i]);
    take_jobs(agents, report);
    struct cluster_node *node = slurm_controller_node(agents->controller, report->node);
    if (node && node->suspends)
        order_node(agents, node);
    for (size_t i = 0; i < report->n_crashes; i++)
        slurm_controller_crashed(agents->controller, report->crashes[i].job,
            report->crashes[i].restarts, clock_monotonic_us());
    if (slurm_controller_has_news(agents->controller))
        agents->on_news(agents->context);
    else if (core_wants_pass(slurm_controller_core(agents->controller)))
        agents->on_samples(agents->context);
}

static void on_gone(void *context, const char *node)
{
    log_warning("node %s: its agent has gone: estimates alone decide there until it is back", node);
}

int slurm_agents_create(uv_loop_t *loop, const struct slurm_config *config,
    struct slurm_controller *controller, void (*on_news)(void *context),
    void (*on_samples)(void *context), void *context, struct fault *fault,
    struct slurm_agents **ret_agents)
{
    *ret_agents = NULL;
    if (strcmp(config->listen, "none") == 0)
        return 0;
    CLEANUP_FREE struct slurm_agents *agents = calloc(1, sizeof *agents);
    if (!agents)
        return fault_set(fault, ENOMEM, "out of memory");
    uint8_t key[SHA256_SIZE];
    int has_key = node_key_read(config->node_auth, config->node_key_file, fault, key);
    if (has_key < 0)
        return has_key;
    *agents = (struct slurm_agents){
        .controller = controller, .on_news = on_news, .on_samples = on_samples, .context = context};
    const struct node_hub_options options = {.loop = loop,
        .address = config->listen,
        .munge_socket = config->munge_socket,
        .key = has_key ? key : NULL,
        .hooks = {agents, knows_node, on_report, on_gone}};
    int r = node_hub_create(&options, fault, &agents->hub);
    explicit_bzero(key, sizeof key);
    if (r == 0)
        *ret_agents = TAKE(agents);
    return r;
}

void slurm_agents_announce(struct slurm_agents *agents, const struct slurm_change *pin)
{
    if (!agents || pin->kind != SLURM_PIN)
        return;
    const struct task *task = core_task(slurm_controller_core(agents->controller), pin->task);
    const struct node_pin of_node = {.job = pin->job,
        .is_mps = task && task->run->share.sharing == SHARING_MPS,
        .may_share_elsewhere = task && pin->n_nodes > 1 && !task->exclusive && task->oom_count == 0,
        .is_of_array = pin->index != SLURM_NO_INDEX,
        .array_task = pin->index};
    struct span rest = span_of(pin->nodes), name;
    char node[NODE_NAME_MAX];
    while (node_list_next(&rest, &name))
        if (span_copy(name, node, sizeof node))
            node_hub_pin(agents->hub, node, &of_node);
}

void slurm_agents_order(struct slurm_agents *agents)
{
    struct cluster_node *node;
    for (size_t i = 0; agents && (node = slurm_controller_node_at(agents->controller, i)); i++)
        if (node->suspends)
            order_node(agents, node);
}

void slurm_agents_close(struct slurm_agents *agents)
{
    if (agents)
        node_hub_close(agents->hub);
}

void slurm_agents_destroy(struct slurm_agents *agents)
{
    if (!agents)
        return;
    node_hub_destroy(agents->hub);
    free(agents);
}
