/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The MPS server as the control daemon's child. The daemon must not answer a client before the
 * server is in the table of processes, so the server writes one byte when it is, and the daemon
 * reads it. The kernel kills the server when the daemon ends.
 */
#include "emulator/mps_clients.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static const char SERVER[] = "nvidia-cuda-mps-server";

/* Finds the server beside this program: a real MPS server on PATH could not serve emulated GPUs.
 * Returns 0 or -errno. */
static int find_server(char *path, size_t size)
{
    ssize_t n = readlink("/proc/self/exe", path, size - 1);

    if (n < 0)
        return -errno;
    path[n] = '\0';
    char *name = strrchr(path, '/') + 1;
    if ((size_t)(name - path) + sizeof(SERVER) > size)
        return -ENAMETOOLONG;
    strcpy(name, SERVER);
    return 0;
}

/* The parent is compared, since it may have died before PR_SET_PDEATHSIG took effect: then no
 * signal would end the server. */
static _Noreturn void become_server(const char *path, int ready, pid_t parent)
{
    signal(SIGPIPE, SIG_DFL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() == parent && dup2(ready, STDOUT_FILENO) >= 0)
        execl(path, SERVER, (char *)NULL);
    _exit(127);
}

pid_t mps_server_start(void)
{
    char path[PATH_MAX], byte;
    int ready[2];
    pid_t parent = getpid();
    int r = find_server(path, sizeof(path));

    if (r < 0)
        return r;
    if (pipe2(ready, O_CLOEXEC) < 0)
        return -errno;
    pid_t pid = fork();
    if (pid == 0)
        become_server(path, ready[1], parent);
    close(ready[1]);
    if (pid > 0 && read(ready[0], &byte, 1) != 1) {
        waitpid(pid, NULL, 0);
        pid = -1;
    }
    close(ready[0]);
    return pid < 0 ? -EAGAIN : pid;
}

/* From the table of processes, so a client that was killed is not listed any more. */
int mps_server_clients(
    const struct world *world, pid_t server, const struct seat *seat, char separator, FILE *out)
{
    int count = 0;

    for (int i = 0; i < world->process_end; i++) {
        const struct process *p = &world->processes[i];
        if (p->present && p->mps_server == server && (!seat || process_sits_on(p, *seat))) {
            fprintf(out, "%d%c", (int)p->pid, separator);
            count++;
        }
    }
    return count;
}
