/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of a request, by libmicrohttpd's callbacks: on_path once, on_data for its first line,
 * for each piece of its body and for its end, on_end once. At its end the handler of its route
 * runs. A handler that does not answer at once suspends the request; the answer resumes it, and
 * on_data is called again and sends it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "api/server_private.h"
#include "base/list.h"

#define ARGUMENTS_MAX 64 /* in a query; chosen: far more than any path has */

void *api_request_context(const struct api_request *request)
{
    return request->server->options.context;
}

void *api_request_server_data(const struct api_request *request)
{
    return request->server->options.server_data;
}

const char *api_request_path(const struct api_request *request)
{
    return request->path;
}

struct api_peer api_request_peer(const struct api_request *request)
{
    return request->peer;
}

bool api_request_is_signed(const struct api_request *request)
{
    return request->is_signed;
}

uint64_t api_request_id(const struct api_request *request)
{
    return request->id;
}

const char *api_request_name(const struct api_request *request)
{
    return request->name;
}

const json_t *api_request_body(const struct api_request *request)
{
    return request->body;
}

const char *api_request_query(const struct api_request *request, const char *key)
{
    return MHD_lookup_connection_value(request->connection, MHD_GET_ARGUMENT_KIND, key);
}

const char *api_request_header(const struct api_request *request, const char *name)
{
    return MHD_lookup_connection_value(request->connection, MHD_HEADER_KIND, name);
}

const char *api_request_target(const struct api_request *request)
{
    return request->counted->target ? request->counted->target : "";
}

const char *api_request_method(const struct api_request *request)
{
    return request->route->method;
}

const char *api_request_bytes(const struct api_request *request, size_t *ret_size)
{
    *ret_size = request->body_size;
    return request->body_text;
}

static bool is_admitted(struct api_request *request)
{
    const struct api_server_options *options = &request->server->options;
    return !options->admit || options->admit(options->server_data, request, &request->peer);
}

static void handle_admitted(struct api_request *request)
{
    if (request->problem != BODY_GOOD)
        reply_body_problem(request, request->problem);
    else if (!request->body_size || request_body_parse(request))
        request->route->handle(request->server->options.context, request);
}

/* Counts the connection for the user that sent the request, and calls the handler. */
static void handle_as_user(struct api_request *request)
{
    if (connection_set_user(
            request->server, request->counted, request->peer.uid, request->held_bytes))
        handle_admitted(request);
    else
        api_reply_error(request, 503, "you have too many connections: try again later");
}

static void dispatch_request(struct api_request *request)
{
    request->counted->unproven.is_judged = true;
    if (request->server->is_stopping)
        api_reply_error(request, 503, "the daemon is stopping");
    else if (!is_admitted(request))
        return;
    else if (request->peer.uid == QUOTA_UNPROVEN_UID)
        handle_admitted(request);
    else
        handle_as_user(request);
}

void api_request_admit(
    struct api_request *request, const struct api_peer *peer, const uint8_t key[static SHA256_SIZE])
{
    request->is_signed = true;
    memcpy(request->key, key, sizeof request->key);
    request->peer = *peer;
    handle_as_user(request);
}

static void suspend_request(struct api_request *request)
{
    struct api_server *server = request->server;
    request->is_suspended = true;
    LIST_PREPEND(&server->suspended, request);
    MHD_suspend_connection(request->connection);
}

/* What `connection` is counted as; NULL: the quota has refused it. */
static struct connection *find_counted(struct MHD_Connection *connection)
{
    return MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
}

/* libmicrohttpd decodes and splits the path in place, but `admit` may need it as it was sent. */
static void note_target(
    const struct api_server *server, const char *path, struct MHD_Connection *connection)
{
    struct connection *counted = server->options.admit ? find_counted(connection) : NULL;
    if (!counted)
        return;
    free(counted->target);
    counted->target = strdup(path);
}

/*
 * Refuses a request with too many query arguments before libmicrohttpd parses them: each takes some
 * hundred bytes of the connection's memory, and when that is used up the connection hangs until its
 * timeout. Returns the request's first context: none.
 */
void *http_request_on_path(void *context, const char *path, struct MHD_Connection *connection)
{
    static const char body[] = "{\"error\": {\"code\": \"bad-request\", \"message\": "
                               "\"the path has too many query arguments\"}}\n";
    size_t arguments = 0;
    for (const char *at = path; (at = strchr(at, '&')); at++)
        arguments++;
    if (arguments < ARGUMENTS_MAX) {
        note_target(context, path, connection);
        return NULL;
    }
    int fd = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    char reply[512];
    int size = snprintf(reply, sizeof reply,
        "HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n"
        "Connection: close\r\n\r\n%s",
        sizeof body - 1, body);
    send(fd, reply, (size_t)size, MSG_DONTWAIT | MSG_NOSIGNAL);
    shutdown(fd, SHUT_RDWR);
    return NULL;
}

enum MHD_Result http_request_on_data(void *context, struct MHD_Connection *connection,
    const char *url, const char *method, const char *version, const char *data, size_t *data_size,
    void **request_context)
{
    struct api_request *request = *request_context;
    if (!request) {
        struct connection *counted = find_counted(connection);
        request = counted ? calloc(1, sizeof *request) : NULL;
        if (!request)
            return MHD_NO;
        request->server = context;
        request->connection = connection;
        request->peer = connection_peer(context, connection);
        request->counted = counted;
        *request_context = request;
        return MHD_YES;
    }
    if (*data_size) {
        request_body_append(request, data, *data_size);
        *data_size = 0;
        return MHD_YES;
    }
    if (!request->response && !request->route) {
        int status;
        request->path = url;
        request->route = route_find(
            request->server->options.routes, method, url, &request->id, request->name, &status);
        if (request->route)
            dispatch_request(request);
        else
            api_reply_error(request, status, "%s %s: %s", method, url,
                status == 405 ? "this path has other methods"
                              : "no such path (docs/protocol.md lists them)");
    }
    if (!request->response) {
        suspend_request(request);
        return MHD_YES;
    }
    return MHD_queue_response(connection, (unsigned)request->status, request->response);
}

void http_request_on_end(void *context, struct MHD_Connection *connection, void **request_context,
    enum MHD_RequestTerminationCode code)
{
    struct api_request *request = *request_context;
    if (!request)
        return;
    quota_give_back(&request->server->quota, request->counted->user, request->held_bytes);
    if (request->response)
        MHD_destroy_response(request->response);
    json_decref(request->body);
    free(request->body_text);
    free(request);
    *request_context = NULL;
}
