/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent's end of the link: connects to the controller, sends reports, receives answers. It
 * connects again by itself, after a pause that doubles from one second to half a minute and starts
 * anew with the first answer that accepts a report.
 *
 * Contract:
 *   1. Only the newest report is sent: one that could not be sent meanwhile is dropped. Where the
 *      controller takes it, what has changed since the last one that was sent on this connection is
 *      sent instead, at most for a minute without a whole report.
 *   2. An answer reaches on_answer only when the user `controller` signed it for this node, or the
 *      controller has proven by TLS that it has the key.
 *   3. munged and name services are called in the loop's thread pool only.
 */
#ifndef COLLOC_NODELINK_NODE_UPLINK_H
#define COLLOC_NODELINK_NODE_UPLINK_H

#include <uv.h>

#include "nodelink/node_answer.h"

struct node_uplink_options {
    uv_loop_t *loop;          /* borrowed */
    const char *controller;   /* "login1:7490", "10.0.0.1:7490", "[::1]:7490"; copied */
    const char *munge_socket; /* NULL or "": libmunge's own */
    uid_t controller_uid;     /* the user that the controller runs as */
    const uint8_t *key;       /* as of the hub: TLS by it; NULL: munge */
    const char *node;         /* Slurm's name of this node; copied */
    void *context;
    void (*on_answer)(void *context, const struct node_answer *answer); /* may be NULL */
};

struct node_uplink;

/* Begins to connect. Returns 0; or -EINVAL (the address or the name of the node), -ENOMEM, with a
 * fault. */
int node_uplink_create(const struct node_uplink_options *options, struct fault *fault,
    struct node_uplink **ret_uplink);

/* Sends a report, copied, as soon as munged has signed it. Returns 0, -EMSGSIZE, or -ENOMEM. */
int node_uplink_send(struct node_uplink *uplink, const struct node_report *report);

/* Has the controller accepted a report of this connection? */
bool node_uplink_is_accepted(const struct node_uplink *uplink);

/* Ends the connection. NULL is fine. */
void node_uplink_close(struct node_uplink *uplink);

/* Releases it once the loop has run after node_uplink_close. NULL is fine. */
void node_uplink_destroy(struct node_uplink *uplink);

#endif
