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
#include "base/hash.h"
#include "base/log.h"
#include "base/text.h"
#include "nodelink/node_changes.h"
#include "nodelink/node_hub_state.h"

#define REFUSAL_LOG_US (5 * SECOND_US) /* chosen: an attacker does not fill the log */

/* By the peer's address without its port. */
static uint64_t hash_address(const struct hub_connection *connection)
{
    const char *colon = strrchr(connection->peer, ':');
    return hash_bytes(HASH_START, connection->peer, colon ? (size_t)(colon - connection->peer) : 0);
}

/* Notes it, unless it is known. */
static bool is_known_refusal(const struct hub_connection *connection, const char *why)
{
    struct node_hub *hub = connection->hub;
    const struct hub_refusal refusal = {hash_address(connection), hash_text(HASH_START, why)};
    for (size_t i = 0; i < hub->n_refusals && i < REFUSALS_KNOWN; i++)
        if (hub->refusals[i].address == refusal.address && hub->refusals[i].why == refusal.why)
            return true;
    hub->refusals[hub->n_refusals++ % REFUSALS_KNOWN] = refusal;
    return false;
}

/* A report of this address was accepted: if it is refused again, that is news. */
static void forget_refusals(const struct hub_connection *connection)
{
    struct node_hub *hub = connection->hub;
    uint64_t address = hash_address(connection);
    for (size_t i = 0; i < REFUSALS_KNOWN; i++)
        if (hub->refusals[i].address == address)
            hub->refusals[i] = (struct hub_refusal){0};
}

void hub_log_refusal(struct hub_connection *connection, const char *why)
{
    struct node_hub *hub = connection->hub;
    int64_t now_us = clock_monotonic_us();
    hub->counts.refused++;
    if (now_us - hub->refusal_logged_us < REFUSAL_LOG_US || is_known_refusal(connection, why)) {
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
    hub_log_refusal(connection, why);
    if (!answer) {
        hub_drop(connection);
        return;
    }
    if (connection->report.node[0]) /* else that of the connection, if it is known */
        snprintf(answer->node, sizeof answer->node, "%s", connection->report.node);
    snprintf(answer->refused, sizeof answer->refused, "%s", why);
    text_mend(answer->refused); /* it may quote what was sent, or be cut */
    connection->is_refused = true;
}

/* ---- nodes ---- */

/* Returns NULL when it is not of the cluster, or memory is out. */
static struct hub_node *find_node(const struct hub_connection *connection, const char *name)
{
    struct node_hub *hub = connection->hub;
    const struct node_hub_hooks *hooks = &hub->parts.hooks;
    if (!hooks->knows_node(hooks->context, name))
        return NULL;
    if (connection->node && strcmp(connection->node->name, name) == 0)
        return connection->node;
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
    forget_refusals(connection);
    log_info("node %s: its agent reports from %s", node->name, connection->peer);
    struct node_answer *answer = hub_outbox(connection);
    if (!answer)
        return;
    answer->takes_changes = true;
    bool is_tls = connection->hub->credentials;
    if (!is_tls && report_session_begin(&connection->session) == 0) /* else the next is sealed */
        report_session_key(&connection->session, answer->key);
    hub_wait_for_turn(connection);
}

/* munge refuses what is that late; a report by a key or within TLS was not seen by munge, and may
 * have been held back. */
static bool is_late(const struct node_report *report)
{
    return llabs(report->time_us - clock_wall_us()) > SEAL_TTL_S * SECOND_US;
}

static void watch_clock(struct hub_node *node)
{
    bool is_apart = node_stream_is_clock_apart(&node->stream);
    if (is_apart && !node->is_clock_logged)
        log_warning("node %s: its clock is %.0f s %s this machine's; all its reports are refused "
                    "from %d s: check NTP",
            node->name, llabs(node->stream.clock_ahead_us) / 1e6,
            node->stream.clock_ahead_us > 0 ? "ahead of" : "behind", SEAL_TTL_S);
    node->is_clock_logged = is_apart;
}

/* Within TLS the peer has named its node with its key. */
static bool is_of_another(const struct hub_connection *connection, const struct hub_node *node)
{
    const struct tls_channel *tls = connection->transport.tls;
    return (connection->node && connection->node != node) ||
           (tls && strcmp(tls_channel_peer(tls), node->name) != 0);
}

/* ---- the judgement ---- */

/* It is the last one of its connection now. */
static void keep_report(struct hub_connection *connection)
{
    node_report_fini(&connection->last);
    connection->last = connection->report;
    connection->report = (struct node_report){0};
    connection->is_whole_wanted = false;
}

/* Changes do not build on the last accepted report: one between was refused, for coming too often.
 * The agent is asked once, since the connection loses nothing. */
static void ask_for_whole(struct hub_connection *connection)
{
    hub_log_refusal(connection, connection->fault.text);
    struct node_answer *answer = connection->is_whole_wanted ? NULL : hub_outbox(connection);
    if (!answer)
        return;
    answer->wants_whole = connection->is_whole_wanted = true;
    hub_wait_for_turn(connection);
}

static void take_signed(struct hub_connection *connection)
{
    struct node_hub *hub = connection->hub;
    const struct node_report *report = &connection->report;
    struct hub_node *node = find_node(connection, report->node);
    struct fault fault = {0};
    if (!node || is_of_another(connection, node)) {
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
        hub_log_refusal(connection, fault.text);
        connection->is_whole_wanted = false; /* if it was the whole one, it has to come again */
        return;
    case STREAM_ACCEPTED:
        break;
    }
    if (!connection->node)
        become_node(connection, node);
    if (!connection->link) /* the answer could not be sent */
        return;
    watch_clock(node);
    hub->counts.accepted++;
    keep_report(connection);
    hub->parts.hooks.on_report(hub->parts.hooks.context, &connection->last);
}

void hub_take_report(struct hub_connection *connection)
{
    if (connection->opened == 0) {
        take_signed(connection);
    } else if (connection->opened == CHANGES_UNFIT && connection->is_signed) {
        ask_for_whole(connection);
    } else if (connection->is_signed) {
        refuse_report(connection, connection->fault.text);
    } else {
        hub_log_refusal(connection, connection->fault.text);
        if (connection->opened != -EAGAIN && connection->opened != -ENOMEM)
            hub_drop(connection); /* but munged that does not answer is not the agent's fault */
    }
}

/* ---- lines that need no turn ---- */

bool hub_is_quick(const struct hub_connection *connection)
{
    return connection->hub->credentials || report_session_is_line(connection->line);
}

void hub_open_quick_line(struct hub_connection *connection)
{
    const char *line = connection->line, *text = line;
    connection->line = NULL; /* an answer that the judgement brings must not take it to munged */
    connection->opened = 0;
    if (!connection->hub->credentials)
        connection->opened = report_session_open(
            &connection->session, line, &connection->fault, &text);
    connection->is_signed = connection->opened == 0;
    if (connection->is_signed)
        connection->opened = node_changes_decode(
            &connection->last, text, strlen(text), &connection->fault, &connection->report);
    hub_take_report(connection);
    node_report_fini(&connection->report);
}
