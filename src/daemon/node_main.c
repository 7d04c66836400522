/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `collocd --node`: the agent of a Slurm node, with the daemon's settings but without its queue. It
 * creates two parts. node calls mps; the other way there are hooks: ready, count_clients and
 * list_gpus.
 *
 * Jobs continue when the agent ends.
 */
#include "daemon/node_main.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "daemon/mps/mps_manager.h"
#include "daemon/node/node.h"
#include "daemon/notify.h"

struct node_process_state {
    uv_loop_t loop;
    uv_signal_t term_signal, int_signal;
    struct config *config;
    struct names *names;
    struct node *node;
    struct mps *mps;
    struct notify notify;
    bool is_stopping;
};

/* ---- what mps calls up ---- */

static void mps_ready(void *context, uid_t uid)
{
    struct node_process_state *process = context;
    node_mps_ready(process->node, uid);
}

static void mps_answered(void *context)
{
}

/* Slurm's job steps share whole GPUs only. */
static int count_clients(const void *context, uid_t uid, uint64_t instance)
{
    const struct node_process_state *process = context;
    return instance ? 0 : node_count_mps_steps(process->node, uid);
}

static size_t list_gpus(const void *context, const char **uuids, size_t max)
{
    const struct node_process_state *process = context;
    return node_list_gpus(process->node, uuids, max);
}

static bool find_instance(const void *context, uint64_t instance, struct mps_instance *ret_instance)
{
    return false;
}

static void on_name(void *context, const struct name *name)
{
}

static int create_parts(struct node_process_state *process, struct fault *fault)
{
    process->names = names_create(&process->loop, on_name, process);
    const struct mps_options mps = {.loop = &process->loop,
        .config = process->config,
        .names = process->names,
        .source = {process, count_clients, list_gpus, find_instance},
        .hooks = {process, mps_ready, mps_answered}};
    process->mps = mps_create(&mps);
    const struct node_options node = {
        .loop = &process->loop, .config = process->config, .mps = process->mps};
    process->node = node_create(&node);
    bool all = process->names && process->node && process->mps;
    return all ? 0 : fault_set(fault, ENOMEM, "out of memory");
}

/* ---- start and end ---- */

static void stop_agent(struct node_process_state *process)
{
    if (process->is_stopping)
        return;
    process->is_stopping = true;
    notify_stopping(&process->notify);
    names_close(process->names);
    mps_close(process->mps);
    node_close(process->node);
    uv_close((uv_handle_t *)&process->term_signal, NULL);
    uv_close((uv_handle_t *)&process->int_signal, NULL);
}

static void on_signal(uv_signal_t *signal, int number)
{
    struct node_process_state *process = signal->data;
    log_info("signal %d: going down; jobs go on", number);
    stop_agent(process);
}

static void destroy_agent(struct node_process_state *process)
{
    uv_run(&process->loop, UV_RUN_DEFAULT);
    node_destroy(process->node);
    mps_destroy(process->mps);
    uv_run(&process->loop, UV_RUN_DEFAULT);
    uv_loop_close(&process->loop);
    names_destroy(process->names);
}

static int make_folders(const struct config *config, struct fault *fault)
{
    char folder[sizeof config->node_socket];
    snprintf(folder, sizeof folder, "%s", config->node_socket);
    char *slash = strrchr(folder, '/');
    if (slash)
        *slash = '\0';
    int r = file_make_folders(config->state_dir, 0711);
    if (r < 0)
        return fault_set(fault, -r, "%s: %s", config->state_dir, strerror(-r));
    r = slash && *folder ? file_make_folders(folder, 0755) : 0;
    return r < 0 ? fault_set(fault, -r, "%s: %s", folder, strerror(-r)) : 0;
}

static int start_agent(struct node_process_state *process, struct fault *fault)
{
    int r = make_folders(process->config, fault);
    if (r == 0)
        r = create_parts(process, fault);
    if (r == 0)
        r = node_open(process->node, fault);
    if (r < 0)
        return r;
    mps_adopt(process->mps);
    uv_signal_start(&process->term_signal, on_signal, SIGTERM);
    uv_signal_start(&process->int_signal, on_signal, SIGINT);
    notify_ready(&process->notify);
    log_info("agent of a Slurm node: steps ask on %s", process->config->node_socket);
    return 0;
}

/* The pool's threads sample the GPUs, sign reports, and ask the name service: each may block. */
int node_run(struct config *config)
{
    static struct node_process_state process;
    struct fault fault = {0};
    process.config = config;
    setenv("UV_THREADPOOL_SIZE", "3", 1);
    notify_open(&process.notify);
    uv_loop_init(&process.loop);
    uv_signal_init(&process.loop, &process.term_signal);
    uv_signal_init(&process.loop, &process.int_signal);
    process.term_signal.data = process.int_signal.data = &process;
    int r = start_agent(&process, &fault);
    if (r < 0)
        log_error("%s", fault.text);
    else
        uv_run(&process.loop, UV_RUN_DEFAULT);
    stop_agent(&process);
    destroy_agent(&process);
    return r < 0 ? 1 : 0;
}
