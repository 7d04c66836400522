/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a connection. Its node is without an agent from then on; its memory stays until the
 * loop has closed its handle and no turn has it. */
#include <stdlib.h>

#include "base/list.h"
#include "base/log.h"
#include "nodelink/node_hub_state.h"

static void unlink_it(struct hub_connection *connection)
{
    struct node_hub *hub = connection->hub;
    LIST_UNLINK_FROM(hub->last, connection);
    hub->n_connections--;
    hub->n_unproven -= connection->node == NULL;
}

void hub_free_connection(struct hub_connection *connection)
{
    node_transport_fini(&connection->transport);
    node_report_fini(&connection->report);
    node_report_fini(&connection->last);
    free(connection->outbox);
    free(connection->answer_text);
    free(connection->sealed);
    free(connection);
}

void hub_reap(struct hub_connection *connection)
{
    if (connection->is_gone && !connection->is_in_turn && !connection->is_waiting)
        hub_free_connection(connection);
}

void hub_drop(struct hub_connection *connection)
{
    struct node_hub *hub = connection->hub;
    struct hub_node *node = connection->node;
    if (!connection->link)
        return;
    unlink_it(connection);
    node_transport_close(&connection->transport);
    if (!node || node->connection != connection)
        return;
    node->connection = NULL;
    if (hub->is_closing)
        return;
    log_info("node %s: its agent is not connected any more", node->name);
    hub->parts.hooks.on_gone(hub->parts.hooks.context, node->name);
}
