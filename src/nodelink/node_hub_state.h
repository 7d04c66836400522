/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the hub share. */
#ifndef COLLOC_NODELINK_NODE_HUB_STATE_H
#define COLLOC_NODELINK_NODE_HUB_STATE_H

#include "base/tcp_address.h"
#include "nodelink/munge_seal.h"
#include "nodelink/node_answer.h"
#include "nodelink/node_hub_options.h"
#include "nodelink/node_stream.h"
#include "nodelink/node_transport.h"
#include "nodelink/report_session.h"

enum { REFUSALS_KNOWN = 64 }; /* chosen */
enum { TURN_MAX = 256 };      /* connections in one visit of the pool; chosen: 20 ms of munge */

/* A connection. It is freed once it is closed and in no turn. */
struct hub_connection {
    struct node_transport transport;
    struct node_hub *hub;
    struct hub_connection *next, **link; /* in the hub's list, oldest first; NULL: closed */
    struct hub_connection *next_waiting; /* for a turn */
    uint64_t begun_ms, heard_ms;
    char peer[TCP_ADDRESS_TEXT_SIZE];
    uint64_t network; /* that it comes from: an address of IPv4, or a /64 of IPv6 */
    struct report_session session;
    struct hub_node *node;      /* NULL: unproven, until its first accepted report */
    char *line;                 /* complete and not yet used, within `transport`; NULL: none */
    struct node_answer *outbox; /* to be sealed and sent; NULL: nothing */
    struct node_report last;    /* that was accepted: what changes build on */
    bool is_whole_wanted;       /* the agent was asked for a whole report, which has not come yet */
    bool is_waiting, is_in_turn, is_gone;
    bool is_refused;        /* nothing more is read from it, */
    bool ends_after_answer; /* and it ends when the answer of this turn is sent */

    /* The pool thread's while is_in_turn: */
    const char *credential; /* to open; NULL: none */
    int opened;             /* as munge_seal_decode or node_changes_decode returned */
    bool is_signed;         /* by the agents' user, whatever the text is */
    struct fault fault;
    struct node_report report;
    char *answer_text; /* to seal; NULL: none */
    char *sealed;      /* the result; NULL: it failed */
};

/* A refusal that was logged, by hashes of the two. */
struct hub_refusal {
    uint64_t address, why;
};

/* A node that has reported. */
struct hub_node {
    char name[NODE_NAME_SIZE];
    struct node_stream stream;
    struct hub_connection *connection; /* NULL: its agent is not there */
    bool is_clock_logged;
};

struct node_hub {
    struct node_hub_options parts;
    struct tls_credentials *credentials; /* NULL: munge */
    struct tcp_address address;
    uv_tcp_t listener;
    uv_timer_t sweep;
    bool is_closing;

    struct hub_connection *first, **last;
    int n_connections, n_unproven;
    struct hub_node **nodes;
    size_t n_nodes, node_capacity;
    struct node_hub_counts counts;

    /* node_hub_turn.c */
    void (*on_opened)(struct hub_connection *connection); /* a turn has opened its line */
    struct munge_seal *seal;                              /* NULL: within TLS nothing is sealed */
    struct hub_connection *first_waiting, **last_waiting;
    uv_timer_t gather; /* while reports wait for others */
    uv_work_t work;
    struct hub_connection *turn[TURN_MAX];
    int n_turn; /* 0: the pool has nothing of the hub */

    int64_t refusal_logged_us; /* monotonic */
    int refusals_not_logged;
    struct hub_refusal refusals[REFUSALS_KNOWN]; /* that were logged; the oldest is overwritten */
    size_t n_refusals;
};

/* ---- node_hub_connection.c ---- */

/* Ends a connection. It is freed by the loop later, and not before its turn has ended. */
void hub_drop(struct hub_connection *connection);

/* Frees a connection that was dropped, once nothing uses it any more. */
void hub_reap(struct hub_connection *connection);

/* Frees it at once: nothing uses it. */
void hub_free_connection(struct hub_connection *connection);

/* ---- node_hub_turn.c ---- */

/* The connection has a line or an answer for the next turn; within TLS the answer is sent. */
void hub_wait_for_turn(struct hub_connection *connection);

/* ---- node_hub_report.c ---- */

/* Can its line be opened at once: came it within TLS, or is it signed by the connection's key? */
bool hub_is_quick(const struct hub_connection *connection);

/* Opens such a line, and judges it. */
void hub_open_quick_line(struct hub_connection *connection);

/* Judges what was opened of the connection. */
void hub_take_report(struct hub_connection *connection);

/* Counts a refusal and logs it, once for each address and reason, and not too often. */
void hub_log_refusal(struct hub_connection *connection, const char *why);

/* The answer that is to be sent, made when there is none yet. Returns NULL when memory is out. */
struct node_answer *hub_outbox(struct hub_connection *connection);

#endif
