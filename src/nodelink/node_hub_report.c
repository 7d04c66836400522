/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The judgement of one report. A refusal without a valid signature closes the connection without an
 * answer; a signed report that is refused gets a signed answer that says why, because an
 * administrator then reads it in the agent's log.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/log.h"
#include "base/text.h"
#include "nodelink/node_hub_state.h"

#define REFUSAL_LOG_US (5 * SECOND_US) /* chosen: an attacker does not fill the log */

static void log_refusal(struct hub_connection *connection, const char *why)
{
    struct node_hub *hub = connection->hub;
    int64_t now_us = clock_monotonic_us();
    hub->counts.refused++;
    if (now_us - hub->refusal_logged_us < REFUSAL_LOG_US) {
        hub->refusals_not_logged++;
        return;
    }
    hub->refusal_logged_us = now_us;
    log_warning("a report from %s was refused: %s (%d others since the last such line)",
        connection->peer, why, hub->refusals_not_logged);
    hub->refusals_not_logged = 0;
}

struct node_answer *hub_outbox(struct hub_connection *connection)
{
    if (!connection->outbox)
        connection->outbox = calloc(1, sizeof *connection->outbox);
    if (connection->outbox && connection->node) {
        memcpy(connection->outbox->node, connection->node->name, NODE_NAME_SIZE);
        connection->outbox->sequence = connection->node->stream.sequence;
    }
    return connection->outbox;
}

/* The connection ends when the answer has been sent. */
static void refuse_report(struct hub_connection *connection, const char *why)
{
    struct node_answer *answer = hub_outbox(connection);
    log_refusal(connection, why);
    if (!answer) {
        hub_drop(connection);
        return;
    }
    snprintf(answer->node, sizeof answer->node, "%s", connection->report.node);
    snprintf(answer->refused, sizeof answer->refused, "%s", why);
    text_mend(answer->refused); /* it may quote what was sent, or be cut */
    connection->is_refused = true;
}

/* ---- nodes ---- */

/* Returns NULL when it is not of the cluster, or memory is out. */
static struct hub_node *find_node(struct node_hub *hub, const char *name)
{
    const struct node_hub_hooks *hooks = &hub->parts.hooks;
    if (!hooks->knows_node(hooks->context, name))
        return NULL;
    for (size_t i = 0; i < hub->n_nodes; i++)
        if (strcmp(hub->nodes[i]->name, name) == 0)
            return hub->nodes[i];
    struct hub_node *node = calloc(1, sizeof *node);
    if (!node || ARRAY_APPEND(hub->nodes, hub->n_nodes, hub->node_capacity, node) < 0) {
        free(node);
        return NULL;
    }
    snprintf(node->name, sizeof node->name, "%s", name);
    return node;
}

/* From now on this is the connection of its node; an earlier one is closed. */
static void become_node(struct hub_connection *connection, struct hub_node *node)
{
    struct hub_connection *earlier = node->connection;
    node->connection = connection;
    connection->node = node;
    connection->hub->n_unproven--;
    if (earlier)
        hub_drop(earlier);
    log_info("node %s: its agent reports from %s", node->name, connection->peer);
    struct node_answer *answer = hub_outbox(connection);
    if (!answer)
        return;
    if (report_session_begin(&connection->session) == 0) { /* else the next is sealed, too */
        report_session_key(&connection->session, answer->key);
        seal_derive_key(connection->hub->seal, connection->session.key);
    }
    hub_wait_for_turn(connection);
}

/* munge refuses what is that late; a report that a key signs was not seen by munge. */
static bool is_late(const struct node_report *report)
{
    return llabs(report->time_us - clock_wall_us()) > SEAL_TTL_S * SECOND_US;
}

static void watch_clock(struct hub_node *node)
{
    bool is_apart = node_stream_is_clock_apart(&node->stream);
    if (is_apart && !node->is_clock_logged)
        log_warning("node %s: its clock is %.0f s %s this machine's; munge refuses all reports "
                    "from %d s: check NTP",
            node->name, llabs(node->stream.clock_ahead_us) / 1e6,
            node->stream.clock_ahead_us > 0 ? "ahead of" : "behind", SEAL_TTL_S);
    node->is_clock_logged = is_apart;
}

/* ---- the judgement ---- */

static void take_signed(struct hub_connection *connection)
{
    struct node_hub *hub = connection->hub;
    const struct node_report *report = &connection->report;
    struct hub_node *node = find_node(hub, report->node);
    struct fault fault = {0};
    if (!node || (connection->node && connection->node != node)) {
        snprintf(fault.text, sizeof fault.text, "%s %s",
            node ? "the connection is of another node than" : "Slurm has no node", report->node);
        refuse_report(connection, fault.text);
        return;
    }
    if (is_late(report)) {
        refuse_report(connection, "its time is over a minute off: do the clocks of the two "
                                  "machines differ, or was it held back?");
        return;
    }
    switch (
        node_stream_accept(&node->stream, report, clock_monotonic_us(), clock_wall_us(), &fault)) {
    case STREAM_OLD:
        refuse_report(connection, fault.text);
        return;
    case STREAM_TOO_OFTEN:
        log_refusal(connection, fault.text);
        return;
    case STREAM_ACCEPTED:
        break;
    }
    if (!connection->node)
        become_node(connection, node);
    watch_clock(node);
    hub->counts.accepted++;
    hub->parts.hooks.on_report(hub->parts.hooks.context, report);
}

void hub_take_report(struct hub_connection *connection)
{
    if (connection->opened == 0) {
        take_signed(connection);
    } else if (connection->is_signed) {
        refuse_report(connection, connection->fault.text);
    } else {
        log_refusal(connection, connection->fault.text);
        if (connection->opened != -EAGAIN && connection->opened != -ENOMEM)
            hub_drop(connection); /* but munged that does not answer is not the agent's fault */
    }
}
