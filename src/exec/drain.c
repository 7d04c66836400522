/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shim talks to the MPS control daemon through a child that runs as the user, since that daemon
 * serves only its user. The child writes its result into a pipe and ends. A child that takes too
 * long is killed, and reaped by the shim like any other descendant.
 */
#include "exec/drain.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "base/units.h"
#include "exec/identity.h"
#include "exec/tree.h"

#define PIPE_VARIABLE "CUDA_MPS_PIPE_DIRECTORY="
#define LIMIT_US      (5 * SECOND_US) /* chosen: two queries; a task's end waits for them */
#define STATUS_LIMIT  (64 * KIB)      /* chosen: proc(5)'s status has about 1,500 bytes */
#define CHAIN_MAX     64 /* chosen: ancestors up to the shim; a deeper process counts as foreign */

/* The child's action: list the clients, or drop some. */
struct order {
    const char *pipe_dir;
    const struct drain_clients *drop; /* NULL: list */
    enum drain_fate fate;
};

static const char *find_pipe_dir(const char *const *env)
{
    for (; env && *env; env++)
        if (strncmp(*env, PIPE_VARIABLE, strlen(PIPE_VARIABLE)) == 0)
            return *env + strlen(PIPE_VARIABLE);
    return NULL;
}

static void list_clients(const char *pipe_dir, int report)
{
    struct mps_client list[DRAIN_CLIENTS_MAX];
    struct fault fault;
    int n = mps_list_clients(pipe_dir, list, DRAIN_CLIENTS_MAX, &fault);
    if (n > 0)
        file_write_fd(report, list, (size_t)n * sizeof *list);
}

static void drop_clients(const struct order *order)
{
    struct fault fault;
    for (size_t i = 0; i < order->drop->count; i++)
        if (order->drop->list[i].fate == order->fate)
            mps_terminate_client(order->pipe_dir, &order->drop->list[i].client, &fault);
}

static _Noreturn void run_child(const struct drain_mps *mps, const struct order *order, int report)
{
    struct identity identity;
    if (identity_init(&identity, mps->uid, mps->gid) == 0 && identity_become(&identity) == 0 &&
        mps_find(order->pipe_dir, geteuid())) {
        if (order->drop)
            drop_clients(order);
        else
            list_clients(order->pipe_dir, report);
    }
    _exit(0);
}

/* Reads until the end of the pipe or the time limit. Returns the number of bytes. */
static size_t read_report(int fd, void *data, size_t size)
{
    int64_t end_us = clock_monotonic_us() + LIMIT_US, left_us;
    size_t used = 0;
    while (used < size && (left_us = end_us - clock_monotonic_us()) > 0) {
        struct pollfd news = {.fd = fd, .events = POLLIN};
        if (poll(&news, 1, (int)(left_us / MS_US) + 1) <= 0)
            continue;
        ssize_t n = read(fd, (char *)data + used, size - used);
        if (n <= 0)
            break;
        used += (size_t)n;
    }
    return used;
}

static size_t run_as_user(
    const struct drain_mps *mps, const struct order *order, void *report, size_t size)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return 0;
    pid_t child = fork();
    if (child == 0)
        run_child(mps, order, ends[1]);
    close(ends[1]);
    size_t n = child > 0 ? read_report(ends[0], report, size) : 0;
    close(ends[0]);
    if (child > 0)
        kill(child, SIGKILL);
    return n;
}

/* A process that has ended meanwhile counts as one that SIGTERM kills. */
static void read_process(pid_t pid, struct drain_process *ret_process)
{
    char path[32], program[PATH_MAX] = "", *status = NULL;
    size_t size;
    snprintf(path, sizeof path, "/proc/%d/exe", (int)pid);
    ssize_t n = readlink(path, program, sizeof program - 1);
    program[n > 0 ? n : 0] = '\0';
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    bool is_there = file_read(path, STATUS_LIMIT, NULL, &status, &size) == 0;
    drain_describe(is_there ? status : "", path_name(program), ret_process);
    free(status);
}

static void decide_fate(struct drain_client *client, const pid_t *pids, size_t n)
{
    struct drain_process chain[CHAIN_MAX];
    size_t top = 0;
    for (size_t i = 0; i < n; i++)
        read_process(pids[i], &chain[i]);
    client->fate = drain_plan(chain, n, &top);
    client->top = client->fate == DRAIN_SPARE ? pids[top] : client->client.pid;
}

void drain_find(const struct drain_mps *mps, pid_t root, struct drain_clients *ret_clients)
{
    const struct order order = {.pipe_dir = find_pipe_dir(mps->env)};
    struct mps_client found[DRAIN_CLIENTS_MAX];
    ret_clients->count = 0;
    if (!order.pipe_dir)
        return;
    size_t n = run_as_user(mps, &order, found, sizeof found) / sizeof *found;
    for (size_t i = 0; i < n; i++) {
        pid_t chain[CHAIN_MAX];
        size_t length = tree_list_ancestors(found[i].pid, root, chain, CHAIN_MAX);
        if (length == 0)
            continue;
        struct drain_client *client = &ret_clients->list[ret_clients->count++];
        *client = (struct drain_client){.client = found[i]};
        decide_fate(client, chain, length);
    }
}

void drain_drop(
    const struct drain_mps *mps, const struct drain_clients *clients, enum drain_fate fate)
{
    const struct order order = {find_pipe_dir(mps->env), clients, fate};
    char none;
    for (size_t i = 0; i < clients->count; i++) {
        if (clients->list[i].fate == fate) {
            run_as_user(mps, &order, &none, sizeof none);
            return;
        }
    }
}

void drain_drop_all(const struct drain_mps *mps, pid_t root)
{
    struct drain_clients clients;
    drain_find(mps, root, &clients);
    for (size_t i = 0; i < clients.count; i++)
        clients.list[i].fate = DRAIN_DROP;
    drain_drop(mps, &clients, DRAIN_DROP);
}
