/* SPDX-License-Identifier: Apache-2.0 */
/* What a hub is created with, and what it counts. */
#ifndef COLLOC_NODELINK_NODE_HUB_OPTIONS_H
#define COLLOC_NODELINK_NODE_HUB_OPTIONS_H

#include <uv.h>

#include "nodelink/node_report.h"

enum { HUB_UNPROVEN_MAX = 128 }; /* chosen; which is closed for a new one: node_hub.c */

/* All must be set; each gets `context`. */
struct node_hub_hooks {
    void *context;

    /* Is it a node of the cluster? */
    bool (*knows_node)(void *context, const char *node);

    /* A report was accepted; valid during the call. */
    void (*on_report)(void *context, const struct node_report *report);

    /* The connection of this node's agent has ended: it is not known any more what the node
     * does. */
    void (*on_gone)(void *context, const char *node);
};

struct node_hub_options {
    uv_loop_t *loop;          /* borrowed */
    const char *address;      /* to listen on: numeric, "0.0.0.0:7490"; port 0: a free one */
    const char *munge_socket; /* NULL or "": libmunge's own */
    uid_t agents;             /* the user that agents run as: 0 */
    const uint8_t *key;       /* SHA256_SIZE bytes, of the call: TLS by it; NULL: munge */
    struct node_hub_hooks hooks;
};

/* Counts since the start, for metrics and logs. */
struct node_hub_counts {
    uint64_t accepted, refused; /* reports */
    int connections, nodes;     /* now: all connections, and those of known nodes */
};

#endif
