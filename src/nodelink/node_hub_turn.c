/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns: what needs munged waits in a queue, and goes to the thread pool by up to TURN_MAX
 * connections at a time, one turn after the other. In a turn each connection's line is opened and
 * parsed, and each connection's answer is sealed. Lines that are signed by the key of their
 * connection need neither munged nor a turn; within TLS nothing does.
 *
 * A report alone does not start a turn: it waits GATHER_MS for others, because waking the pool and
 * the loop once for each report is a third of the cost of a thousand agents. An answer starts one
 * at once, because a job is about to start.
 */
#include <stdlib.h>
#include <string.h>

#include "nodelink/node_hub_state.h"

enum { GATHER_MS = 50 }; /* chosen: agents report once a second */

enum { WRITES_MAX_BYTES = 256 * 1024 }; /* unsent; chosen: a peer that reads nothing is closed */

/* ---- in the pool ---- */

static void open_line(struct node_hub *hub, struct hub_connection *connection)
{
    char *text;
    size_t size;
    connection->opened = munge_seal_decode(
        hub->seal, connection->credential, &connection->fault, &text, &size);
    connection->is_signed = connection->opened == 0;
    if (connection->is_signed)
        connection->opened = node_report_decode(
            text, size, &connection->fault, &connection->report);
    free(text);
}

static void in_pool(uv_work_t *work)
{
    struct node_hub *hub = work->data;
    for (int i = 0; i < hub->n_turn; i++) {
        struct hub_connection *connection = hub->turn[i];
        struct fault ignored;
        if (connection->credential)
            open_line(hub, connection);
        if (connection->answer_text)
            munge_seal_encode(hub->seal, connection->answer_text, strlen(connection->answer_text),
                &ignored, &connection->sealed);
    }
}

/* ---- in the loop ---- */

/* What is left in the connection's queue is cancelled by its end: an answer that is the last is
 * written at once where the peer reads. A connection that has lost an answer ends, since within TLS
 * it cannot be used further, and a job may depend on the answer. */
static void finish_answer(struct hub_connection *connection)
{
    struct node_transport *transport = &connection->transport;
    int r = connection->sealed ? node_transport_send(transport, connection->sealed) : 0;
    free(connection->answer_text);
    free(connection->sealed);
    connection->answer_text = connection->sealed = NULL;
    if (r < 0 || connection->ends_after_answer ||
        node_transport_unsent(transport) > WRITES_MAX_BYTES)
        hub_drop(connection);
}

static void finish_connection(struct hub_connection *connection)
{
    bool had_line = connection->credential, had_answer = connection->answer_text;
    connection->is_in_turn = false;
    connection->credential = NULL;
    if (!connection->link) {
        hub_reap(connection); /* or the end of its handle does */
        return;
    }
    if (had_line)
        connection->hub->on_opened(connection);
    if (had_answer && connection->link)
        finish_answer(connection);
    if (connection->link && (connection->line || connection->outbox))
        hub_wait_for_turn(connection); /* also for what came during the turn */
}

static void plan_turn(struct node_hub *hub, bool is_urgent);

/* Waits any connection with an answer? */
static bool has_answer(const struct node_hub *hub)
{
    const struct hub_connection *connection = hub->first_waiting;
    while (connection && !connection->outbox)
        connection = connection->next_waiting;
    return connection;
}

static void on_turn(uv_work_t *work, int status)
{
    struct node_hub *hub = work->data;
    int n = hub->n_turn;
    for (int i = 0; i < n; i++)
        finish_connection(hub->turn[i]);
    hub->n_turn = 0;
    if (hub->first_waiting)
        plan_turn(hub, has_answer(hub));
}

/* One whose answer cannot be encoded is dropped: its agent connects again. */
static void encode_outbox(struct hub_connection *connection)
{
    if (node_answer_encode(connection->outbox, &connection->answer_text) == 0)
        connection->ends_after_answer = *connection->outbox->refused;
    else
        hub_drop(connection);
    free(connection->outbox);
    connection->outbox = NULL;
}

/* Gives the pool what is to do of one connection. */
static void prepare_connection(struct hub_connection *connection)
{
    connection->is_in_turn = true;
    connection->credential = connection->line;
    connection->line = NULL;
    if (connection->outbox && !connection->answer_text)
        encode_outbox(connection);
}

static struct hub_connection *take_waiting(struct node_hub *hub)
{
    struct hub_connection *connection = hub->first_waiting;
    hub->first_waiting = connection->next_waiting;
    if (!hub->first_waiting)
        hub->last_waiting = &hub->first_waiting;
    connection->next_waiting = NULL;
    connection->is_waiting = false;
    return connection;
}

static void start_turn(struct node_hub *hub)
{
    while (hub->first_waiting && hub->n_turn < TURN_MAX) {
        struct hub_connection *connection = take_waiting(hub);
        if (!connection->link) {
            hub_reap(connection);
            continue;
        }
        prepare_connection(connection);
        hub->turn[hub->n_turn++] = connection;
    }
    hub->work.data = hub;
    if (hub->n_turn > 0)
        uv_queue_work(hub->parts.loop, &hub->work, in_pool, on_turn);
}

static void on_gathered(uv_timer_t *timer)
{
    struct node_hub *hub = timer->data;
    if (hub->n_turn == 0)
        start_turn(hub);
}

/* Begins a turn when it is time; where one is under way, its end calls this again. */
static void plan_turn(struct node_hub *hub, bool is_urgent)
{
    if (hub->n_turn > 0 || hub->is_closing)
        return;
    if (is_urgent)
        start_turn(hub);
    else if (!uv_is_active((uv_handle_t *)&hub->gather))
        uv_timer_start(&hub->gather, on_gathered, GATHER_MS, 0);
}

/* Within TLS. */
static void send_at_once(struct hub_connection *connection)
{
    if (!connection->outbox || !connection->link)
        return;
    encode_outbox(connection);
    connection->sealed = connection->answer_text;
    connection->answer_text = NULL;
    if (connection->link)
        finish_answer(connection);
}

void hub_wait_for_turn(struct hub_connection *connection)
{
    struct node_hub *hub = connection->hub;
    if (hub->credentials) {
        send_at_once(connection);
        return;
    }
    if (connection->is_waiting || connection->is_in_turn)
        return;
    connection->is_waiting = true;
    *hub->last_waiting = connection;
    hub->last_waiting = &connection->next_waiting;
    plan_turn(hub, connection->outbox != NULL);
}
