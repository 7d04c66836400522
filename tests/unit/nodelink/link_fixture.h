/* SPDX-License-Identifier: Apache-2.0 */
/* A hub, an uplink and their loop for the tests of the link, and clients that are only sockets. */
#ifndef COLLOC_TESTS_NODELINK_LINK_FIXTURE_H
#define COLLOC_TESTS_NODELINK_LINK_FIXTURE_H

#include "nodelink/node_hub.h"
#include "nodelink/node_uplink.h"

struct fixture {
    uv_loop_t loop;
    uv_timer_t limit;
    struct node_hub *hub;
    struct node_uplink *uplink;
    const char *munge_socket;           /* borrowed */
    const uint8_t *hub_key, *agent_key; /* TLS; NULL: munge */
    char address[TCP_ADDRESS_TEXT_SIZE];
    int reports, gone, answers;
    int64_t last_sequence;
    struct node_report last_report; /* as on_report saw it */
    struct node_answer last_answer;
};

/* Runs the loop until the condition holds. */
#define RUN_UNTIL(f, condition)                                                                    \
    do {                                                                                           \
        uv_timer_start(&(f)->limit, link_on_limit, 60 * 1000, 0);                                  \
        while (!(condition))                                                                       \
            uv_run(&(f)->loop, UV_RUN_ONCE);                                                       \
        uv_timer_stop(&(f)->limit);                                                                \
    } while (0)

void link_on_limit(uv_timer_t *timer);

/* Creates both ends' loop and the hub; its nodes are n1 and n2. */
struct fixture *link_create(const char *munge_socket, const uint8_t *key);

/* NULL is fine. Returns 0 when nothing of the loop is left. */
int link_destroy(struct fixture *f);

/* A new hub. */
void link_listen(struct fixture *f, const char *address);

/* Closes the hub's connections; node_hub_destroy must follow. */
void link_end_hub(struct fixture *f);

/* The agent of n1. */
void link_create_uplink(struct fixture *f);
void link_create_uplink_to(struct fixture *f, const char *address);

/* The text of a report without GPUs; the caller frees it. */
char *link_report_text(const char *node, int64_t sequence);

/* Connects a socket to the hub, from another address of this machine. */
int link_connect(const struct fixture *f);
int link_connect_from(const struct fixture *f, const char *source);

void link_send_line(int fd, const char *line);

/* Reads until the end of the connection, and closes it. Returns what came, which is valid until the
 * next call. */
const char *link_read_to_end(struct fixture *f, int fd);

/* Connections that never send anything. */
enum { FLOOD = 3 * HUB_UNPROVEN_MAX };
void link_flood_from(struct fixture *f, const char *source, int fds[static FLOOD]);
void link_end_flood(const int fds[static FLOOD]);

#endif
