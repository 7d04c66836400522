/* SPDX-License-Identifier: Apache-2.0 */
/*
 * State notifications to systemd (Type=notify) without libsystemd. Where the environment has no
 * NOTIFY_SOCKET, nothing is sent.
 */
#ifndef COLLOC_DAEMON_NOTIFY_H
#define COLLOC_DAEMON_NOTIFY_H

#include <sys/socket.h>
#include <sys/un.h>

struct notify {
    struct sockaddr_un address;
    socklen_t size; /* 0: there is no socket */
};

/* Reads the address from NOTIFY_SOCKET, a path or "@" and a name in the abstract namespace, and
 * removes the variable, which is not for the daemon's children. */
void notify_open(struct notify *notify);

void notify_ready(const struct notify *notify);     /* the daemon listens */
void notify_reloading(const struct notify *notify); /* until the next notify_ready */
void notify_stopping(const struct notify *notify);

#endif
