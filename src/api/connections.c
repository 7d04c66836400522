/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections and their users. Each connection is counted for the user at its other end (by
 * SO_PEERCRED); libmicrohttpd keeps the entry as the connection's context until it is closed.
 */
#include <stdlib.h>
#include <sys/socket.h>

#include "api/server.h"
#include "api/server_private.h"
#include "base/clock.h"
#include "base/list.h"
#include "base/tcp_address.h"

struct api_peer connection_peer(const struct api_server *server, struct MHD_Connection *connection)
{
    if (server->options.listen_fd)
        return (struct api_peer){.uid = QUOTA_UNPROVEN_UID, .gid = (gid_t)-1};
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(
        connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    struct ucred credentials = {.uid = (uid_t)-1, .gid = (gid_t)-1};
    socklen_t size = sizeof credentials;
    if (info && getsockopt(info->connect_fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) < 0)
        credentials.uid = (uid_t)-1;
    return (struct api_peer){
        .uid = credentials.uid, .gid = credentials.gid, .pid = credentials.pid};
}

static struct connection *connection_add(struct api_server *server, uid_t uid, int fd)
{
    bool is_unlisted = server->options.is_unlisted &&
                       server->options.is_unlisted(server->options.context, uid);
    struct quota_user *user = quota_connect(&server->quota, uid, is_unlisted);
    struct connection *added = user ? calloc(1, sizeof *added) : NULL;
    if (user && !added)
        quota_disconnect(&server->quota, user);
    if (!added)
        return NULL;
    *added = (struct connection){.user = user, .uid = uid, .fd = fd};
    LIST_PREPEND(&server->connections, added);
    return added;
}

/* Answers a request whose user is not yet known: its connection is suspended, and libmicrohttpd
 * would not close it. */
static void refuse_judged(struct api_server *server, const struct unproven *judged)
{
    struct api_request *request = server->suspended;
    while (request && &request->counted->unproven != judged)
        request = request->next;
    if (!request)
        return;
    server->options.forget(server->options.server_data, request);
    api_reply_error(request, 503, "it takes too long to find out the user: try again later");
}

/* The kernel keeps the descriptor until libmicrohttpd, which notices that, closes it. */
static void drop_unproven(struct api_server *server, struct unproven *dropped)
{
    if (dropped->is_judged)
        refuse_judged(server, dropped);
    unproven_remove(&server->unproven, dropped);
    shutdown(dropped->fd, SHUT_RDWR);
}

/* A judged one gets the time of a new one to read its answer. */
static void end_late(struct api_server *server, struct unproven *late, int64_t now_us)
{
    if (!late->is_judged) {
        drop_unproven(server, late);
        return;
    }
    refuse_judged(server, late);
    unproven_remove(&server->unproven, late);
    late->is_judged = false;
    late->begun_us = now_us;
    unproven_add(&server->unproven, late);
}

void connections_drop_late(struct api_server *server)
{
    int64_t now_us = clock_monotonic_us();
    struct unproven *late;
    while ((late = unproven_find_late(&server->unproven, now_us)))
        end_late(server, late, now_us);
}

static void add_unproven(struct api_server *server, struct connection *connection)
{
    struct tcp_address peer = {.size = sizeof peer.storage};
    connection->unproven = (struct unproven){
        .fd = connection->fd, .begun_us = clock_monotonic_us()};
    if (getpeername(connection->fd, (struct sockaddr *)&peer.storage, &peer.size) == 0)
        connection->unproven.network = tcp_address_network(&peer);
    unproven_add(&server->unproven, &connection->unproven);
    struct unproven *excess = unproven_find_excess(&server->unproven);
    if (excess)
        drop_unproven(server, excess);
}

static void connection_remove(struct api_server *server, struct connection *gone)
{
    unproven_remove(&server->unproven, &gone->unproven);
    quota_disconnect(&server->quota, gone->user);
    LIST_UNLINK(gone);
    free(gone->target);
    free(gone);
}

static bool move_to_user(
    struct api_server *server, struct connection *counted, uid_t uid, size_t held_bytes)
{
    struct quota_user *user = quota_connect(&server->quota, uid, false);
    if (!user)
        return false;
    if (quota_take(&server->quota, user, held_bytes) != QUOTA_TAKEN) {
        quota_disconnect(&server->quota, user);
        return false;
    }
    quota_give_back(&server->quota, counted->user, held_bytes);
    quota_disconnect(&server->quota, counted->user);
    counted->user = user;
    counted->uid = uid;
    return true;
}

bool connection_set_user(
    struct api_server *server, struct connection *counted, uid_t uid, size_t held_bytes)
{
    if (counted->uid != uid && !move_to_user(server, counted, uid, held_bytes))
        return false;
    unproven_remove(&server->unproven, &counted->unproven);
    return true;
}

void connection_on_change(void *context, struct MHD_Connection *connection, void **socket_context,
    enum MHD_ConnectionNotificationCode code)
{
    struct api_server *server = context;
    if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
        if (*socket_context)
            connection_remove(server, *socket_context);
        return;
    }
    int fd = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    *socket_context = connection_add(server, connection_peer(server, connection).uid, fd);
    if (!*socket_context)
        shutdown(fd, SHUT_RDWR);
    else if (server->options.proves_users)
        add_unproven(server, *socket_context);
}

void api_server_set_unlisted(struct api_server *server, uid_t uid, bool is_unlisted)
{
    if (!quota_set_unlisted(&server->quota, uid, is_unlisted))
        return;
    for (struct connection *at = server->connections; at; at = at->next)
        if (at->uid == uid)
            shutdown(at->fd, SHUT_RDWR);
}
