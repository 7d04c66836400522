/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a program listens on a port is found out by listening there for a moment: that needs no
 * rights, and sees programs of all users. With SO_REUSEADDR closed connections do not matter if
 * their server had set it, too, as nearly all do.
 */
#include "daemon/service_port.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "base/tcp_address.h"

/* 0: it has none. */
static int port_of(const struct task *task, const struct jobs *jobs)
{
    const struct job *job = task->request.service.is_service ? jobs_find(jobs, task->id) : NULL;
    return job && !task_was_ended(task) ? job->port : 0;
}

int service_port_check_claims(
    const struct core *core, const struct jobs *jobs, int port, struct fault *fault)
{
    uint64_t id = 0;
    for (const struct task *task; (task = core_next_task(core, id));) {
        id = task->id;
        if (port_of(task, jobs) == port)
            return fault_set(fault, EADDRINUSE,
                "port=%d: task %" PRIu64 ", a service, has this port: give another one", port, id);
    }
    return 0;
}

int service_port_check_quota(
    const struct core *core, const struct jobs *jobs, uid_t uid, struct fault *fault)
{
    uint64_t id = 0;
    int n = 0;
    for (const struct task *task; (task = core_next_task(core, id));) {
        id = task->id;
        n += task->uid == uid && port_of(task, jobs) != 0;
    }
    return n < SERVICE_PORTS_PER_USER
               ? 0
               : fault_set(fault, EDQUOT,
                     "port: %d of your services have one, which is the most for a user: cancel one, "
                     "or submit this one without a port",
                     n);
}

int service_port_check_free(int port, struct fault *fault)
{
    char text[TCP_ADDRESS_TEXT_SIZE];
    struct tcp_address address;
    snprintf(text, sizeof text, "127.0.0.1:%d", port);
    int r = tcp_address_parse(text, &address);
    int fd = r == 0 ? tcp_address_listen(&address, fault) : r;
    if (fd == -EADDRINUSE)
        return fault_set(fault, EADDRINUSE,
            "port %d is taken by another program, or connections to it are still closing", port);
    if (fd >= 0)
        close(fd);
    return fd < 0 ? fd : 0;
}
