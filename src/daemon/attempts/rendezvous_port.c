/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two trainings on one server must not meet at one port: torchrun and MASTER_PORT have 29500 by
 * default, so the second of two tasks fails with "address in use", or joins the first. Each task
 * therefore has another port. It is derived from the task's number, so that tasks that start
 * at the same time have different ones before either listens.
 */
#include "daemon/attempts/rendezvous_port.h"

#include <stdio.h>
#include <unistd.h>

#include "base/tcp_address.h"

enum { TRIES_MAX = 100 }; /* chosen: 100 ports in a row are hardly ever taken */

int rendezvous_port_candidate(uint64_t task, int try)
{
    const uint64_t stride = 997; /* far from the ports of the tasks that follow */
    return RENDEZVOUS_PORT_FIRST + (int)((task + (uint64_t)try * stride) % RENDEZVOUS_PORTS);
}

static bool is_free(int port)
{
    char text[TCP_ADDRESS_TEXT_SIZE];
    struct tcp_address address;
    struct fault fault;
    snprintf(text, sizeof text, "0.0.0.0:%d", port);
    int fd = tcp_address_parse(text, &address) == 0 ? tcp_address_listen(&address, &fault) : -1;
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

int rendezvous_port_find(uint64_t task)
{
    for (int try = 0; try < TRIES_MAX; try++) {
        int port = rendezvous_port_candidate(task, try);
        if (is_free(port))
            return port;
    }
    return 0;
}
