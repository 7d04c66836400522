/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A service's port is its own: the probe would take another program's answers for the service's
 * (services/services.h), and trainings would be admitted on their latency.
 */
#ifndef COLLOC_DAEMON_SERVICE_PORT_H
#define COLLOC_DAEMON_SERVICE_PORT_H

#include "core/core.h"
#include "daemon/jobs.h"

/*
 * Tests whether another service was submitted with the port, in whatever state it is. One that
 * colloc ends does not count: its port will be free.
 *
 * Returns 0, or -EADDRINUSE with a fault that names the task.
 */
int service_port_check_claims(
    const struct core *core, const struct jobs *jobs, int port, struct fault *fault);

enum { SERVICE_PORTS_PER_USER = 16 }; /* chosen: servers of one person, on a machine of 8 GPUs */

/*
 * Tests whether a user may claim one more port: all services together have few, and a held one has
 * its port, too.
 *
 * Returns 0, or -EDQUOT with a fault.
 */
int service_port_check_quota(
    const struct core *core, const struct jobs *jobs, uid_t uid, struct fault *fault);

/*
 * Tests whether a program can listen on 127.0.0.1:`port` now, in the daemon's network namespace,
 * where the probe connects. Nothing reserves the port, and whose socket listens there later is not
 * tested (docs/services.md).
 *
 * Returns 0; -EADDRINUSE, or another -errno where that cannot be found out; with a fault.
 */
int service_port_check_free(int port, struct fault *fault);

#endif
