/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What systemd is told of the daemon's life (Type=notify): sd_notify(3) in a few lines, so that
 * libsystemd is not needed. Without NOTIFY_SOCKET in the environment nothing is sent.
 */
#ifndef COLLOC_DAEMON_NOTIFY_H
#define COLLOC_DAEMON_NOTIFY_H

#include <sys/socket.h>
#include <sys/un.h>

struct notify {
    struct sockaddr_un address;
    socklen_t size; /* 0: nobody is to be notified */
};

/* Takes the address from NOTIFY_SOCKET, a path or "@" and a name in the abstract namespace, and
 * removes the variable: it is not meant for the daemon's children. */
void notify_open(struct notify *notify);

void notify_ready(const struct notify *notify);     /* it listens */
void notify_reloading(const struct notify *notify); /* until notify_ready */
void notify_stopping(const struct notify *notify);

#endif
