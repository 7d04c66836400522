/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The connection between a user's terminal (`colloc attach`) and the terminal of a task (the
 * relay): packets over a Unix socket of the abstract namespace, which leaves no file behind. Both
 * ends check by the kernel's credentials that the other is of the same user.
 *
 * Packets keep their bounds (SOCK_SEQPACKET): the first byte says what the rest is.
 */
#ifndef COLLOC_TERMINAL_LINK_H
#define COLLOC_TERMINAL_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/fault.h"

enum link_packet {
    LINK_DATA = 'd',   /* either way: bytes of the terminal */
    LINK_SIZE = 's',   /* to the relay: struct link_size */
    LINK_DETACH = 'b', /* to the relay: the user leaves on purpose; no limit of time begins */
    LINK_TAKEN = 't',  /* from the relay: another terminal has taken over */
    LINK_EXIT = 'x',   /* from the relay: struct link_exit; the last packet */
};

struct link_size {
    uint16_t rows, columns;
};

struct link_exit {
    int32_t wait_status; /* as waitpid gives it */
};

enum { LINK_DATA_MAX = 4096, LINK_NAME_SIZE = 64 };

/* What one call of link_receive read. */
struct link_message {
    enum link_packet packet;
    size_t size; /* of the data */
    char data[LINK_DATA_MAX];
};

/* Makes a name for a new link: "colloc-terminal-" and 128 random bits. Returns 0 or -errno. */
int link_make_name(char name[LINK_NAME_SIZE]);

/* Is it such a name? */
bool link_is_name(const char *name);

/* Listens under a name. Returns a descriptor, non-blocking, or -errno with a fault. */
int link_listen(const char *name, struct fault *fault);

/* Accepts a terminal of the same user. Returns a descriptor, non-blocking; -EPERM for another
 * user's, which is closed; or another -errno. */
int link_accept(int listener);

/*
 * Connects to a relay of the same user.
 *
 * Returns a descriptor, non-blocking; -ECONNREFUSED when there is none (yet); or another -errno,
 * each with a fault.
 */
int link_connect(const char *name, struct fault *fault);

/* The same two for a stream of bytes without packets, which a program takes as its input and
 * output; link_accept serves both. */
int link_listen_stream(const char *name, struct fault *fault);
int link_connect_stream(const char *name, struct fault *fault);

/* Sends one packet. Returns 0; -EAGAIN when the other end takes nothing now; or another -errno. */
int link_send(int fd, enum link_packet packet, const void *data, size_t size);

/* Receives one packet. Returns 1; 0 at the end; -EAGAIN when there is none now; -EPROTO for a
 * packet that is not one of the above, or of a wrong size; or another -errno. */
int link_receive(int fd, struct link_message *ret_message);

#endif
