/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/drain.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "base/units.h"
#include "exec/identity.h"
#include "exec/tree.h"
#include "gpu/mps.h"
#include "gpu/run.h"

#define PIPE_VARIABLE "CUDA_MPS_PIPE_DIRECTORY="
#define LIMIT_US      (2 * SECOND_US)
#define CLIENTS_MAX   256
#define STATUS_LIMIT  (64 * KIB)

/* The mask of caught signals in /proc/PID/status. */
static bool handles_sigterm(pid_t pid)
{
    char path[32], *text;
    size_t size;
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    if (file_read(path, STATUS_LIMIT, NULL, &text, &size) < 0)
        return false;
    const char *caught = strstr(text, "\nSigCgt:");
    bool handles = caught && strtoull(caught + strlen("\nSigCgt:"), NULL, 16) >> (SIGTERM - 1) & 1;
    free(text);
    return handles;
}

static void drop_clients(const char *pipe_dir, pid_t root, bool all)
{
    struct mps_client clients[CLIENTS_MAX];
    struct fault fault;
    int n = mps_list_clients(pipe_dir, clients, CLIENTS_MAX, &fault);
    for (int i = 0; i < n; i++)
        if (tree_find_root(clients[i].pid, &root, 1) == 0 &&
            (all || !handles_sigterm(clients[i].pid)))
            mps_terminate_client(pipe_dir, &clients[i], &fault);
}

static const char *find_pipe_dir(const char *const *env)
{
    for (; env && *env; env++)
        if (strncmp(*env, PIPE_VARIABLE, strlen(PIPE_VARIABLE)) == 0)
            return *env + strlen(PIPE_VARIABLE);
    return NULL;
}

void drain(const char *const *env, uid_t uid, gid_t gid, pid_t root, bool all)
{
    const char *pipe_dir = find_pipe_dir(env);
    if (!pipe_dir)
        return;
    pid_t child = fork();
    if (child == 0) {
        struct identity identity;
        if (identity_init(&identity, uid, gid) == 0 && identity_become(&identity) == 0 &&
            mps_find(pipe_dir, geteuid()))
            drop_clients(pipe_dir, root, all);
        _exit(0);
    }
    if (child < 0)
        return;
    run_wait_gone(child, LIMIT_US);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}
