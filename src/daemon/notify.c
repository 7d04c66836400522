/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reports to systemd that the daemon is ready or stops. The protocol of sd_notify(3): a datagram of
 * lines "KEY=VALUE" to the socket that the environment variable NOTIFY_SOCKET names.
 */
#include "daemon/notify.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

void notify_open(struct notify *notify)
{
    const char *name = getenv("NOTIFY_SOCKET");
    size_t length = name ? strlen(name) : 0;
    *notify = (struct notify){.address.sun_family = AF_UNIX};
    if (length > 1 && length < sizeof notify->address.sun_path &&
        (name[0] == '/' || name[0] == '@')) {
        memcpy(notify->address.sun_path, name, length);
        if (name[0] == '@')
            notify->address.sun_path[0] = '\0';
        notify->size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
    }
    unsetenv("NOTIFY_SOCKET");
}

/* A message that cannot be delivered at once is lost: the daemon does not wait for its manager. */
static void send_state(const struct notify *notify, const char *state)
{
    if (notify->size == 0)
        return;
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return;
    (void)!sendto(fd, state, strlen(state), MSG_NOSIGNAL | MSG_DONTWAIT,
        (const struct sockaddr *)&notify->address, notify->size);
    close(fd);
}

void notify_ready(const struct notify *notify)
{
    send_state(notify, "READY=1");
}

void notify_reloading(const struct notify *notify)
{
    char state[80];
    snprintf(state, sizeof state, "RELOADING=1\nMONOTONIC_USEC=%" PRId64, clock_monotonic_us());
    send_state(notify, state);
}

void notify_stopping(const struct notify *notify)
{
    send_state(notify, "STOPPING=1");
}
