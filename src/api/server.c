/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server over libmicrohttpd: one epoll, one thread, requests that may be answered later.
 *
 * Contract:
 * 1. Every byte of a body and every long answer is counted in the quota (api/quota.h) until the
 *    request is over; a connection that the quota refuses is closed and never handled.
 * 2. The caller runs the server at least once in RUN_AGAIN_MS. When accept fails for want of
 *    descriptors, libmicrohttpd stops to listen until its next run, and nothing else wakes it.
 * 3. A body is parsed only while there is memory for what parsing takes: libjansson does not
 *    survive a failed allocation.
 */
#include "api/server.h"

#include <errno.h>
#include <microhttpd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "api/quota.h"
#include "base/units.h"

#define CONNECTIONS_MAX      2048
#define CONNECTIONS_RESERVED 64 /* for root */
#define GOODBYE_TURNS        64
#define RUN_AGAIN_MS         1000
#define VALUES_MAX           100000
#define ARGUMENTS_MAX        64
#define BYTES_PER_USER       ((size_t)(64 * MIB))
#define BYTES_RESERVED       ((size_t)(64 * MIB)) /* for root */
#define SMALL_ANSWER         ((size_t)(64 * KIB))
#define SMALL_BODY           ((size_t)(64 * KIB))

/* What a JSON text of n bytes and v values takes beside itself while it is read, at most: the text
 * of a string as it grows by doubling and its copies, and an object, key and slot for each value.
 * chosen: from libjansson's structures, rounded up. */
#define PARSE_BYTES_PER_BYTE  4
#define PARSE_BYTES_PER_VALUE 512

struct connection {
    struct quota_user *user;
    uid_t uid;
    int fd;
    struct connection *next, **link; /* in server->connections */
};

struct api_server {
    struct api_server_options options;
    char socket_path[sizeof((struct sockaddr_un *)0)->sun_path];
    dev_t socket_device;
    ino_t socket_inode;
    struct MHD_Daemon *http;
    struct quota quota;
    struct connection *connections; /* that the quota let in */
    struct api_request *waiting;    /* suspended, to be answered when the server goes */
    bool going;
};

struct api_request {
    struct api_server *server;
    struct MHD_Connection *connection;
    struct api_peer peer;
    struct quota_user *user;
    size_t held_bytes;
    const struct api_route *route;
    uint64_t id;
    char *body_text;
    size_t body_size, body_room;
    enum body_problem {
        BODY_GOOD,
        BODY_TOO_LARGE,
        BODY_USER_FULL, /* the user's quota of bytes is used up */
        BODY_ALL_FULL,  /* everybody's is */
        BODY_NO_MEMORY,
    } problem;
    json_t *body;
    struct MHD_Response *response; /* the answer, once there is one */
    int status;
    bool suspended;
    struct api_request *next, **link; /* in server->waiting */
};

/* ---- who is asking ---- */

static struct api_peer peer_of(struct MHD_Connection *connection)
{
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
    bool is_stranger = server->options.is_stranger &&
                       server->options.is_stranger(server->options.context, uid);
    struct quota_user *user = quota_connect(&server->quota, uid, is_stranger);
    struct connection *added = user ? calloc(1, sizeof *added) : NULL;
    if (user && !added)
        quota_disconnect(&server->quota, user);
    if (!added)
        return NULL;
    *added = (struct connection){.user = user,
        .uid = uid,
        .fd = fd,
        .next = server->connections,
        .link = &server->connections};
    if (added->next)
        added->next->link = &added->next;
    server->connections = added;
    return added;
}

static void connection_remove(struct api_server *server, struct connection *gone)
{
    quota_disconnect(&server->quota, gone->user);
    *gone->link = gone->next;
    if (gone->next)
        gone->next->link = gone->link;
    free(gone);
}

/* Counts connections by user; one that the quota refuses is shut before it can say anything. */
static void on_connection(void *context, struct MHD_Connection *connection, void **socket_context,
    enum MHD_ConnectionNotificationCode code)
{
    struct api_server *server = context;
    if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
        if (*socket_context)
            connection_remove(server, *socket_context);
        return;
    }
    int fd = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    *socket_context = connection_add(server, peer_of(connection).uid, fd);
    if (!*socket_context)
        shutdown(fd, SHUT_RDWR);
}

void api_server_set_stranger(struct api_server *server, uid_t uid, bool is_stranger)
{
    if (!quota_set_stranger(&server->quota, uid, is_stranger))
        return;
    for (struct connection *at = server->connections; at; at = at->next)
        if (at->uid == uid)
            shutdown(at->fd, SHUT_RDWR);
}

static enum body_problem hold(struct api_request *request, size_t bytes)
{
    switch (quota_take(&request->server->quota, request->user, bytes)) {
    case QUOTA_USER_FULL:
        return BODY_USER_FULL;
    case QUOTA_ALL_FULL:
        return BODY_ALL_FULL;
    case QUOTA_TAKEN:
        break;
    }
    request->held_bytes += bytes;
    return BODY_GOOD;
}

struct api_peer api_request_peer(const struct api_request *request)
{
    return request->peer;
}

uint64_t api_request_id(const struct api_request *request)
{
    return request->id;
}

const json_t *api_request_body(const struct api_request *request)
{
    return request->body;
}

const char *api_request_query(const struct api_request *request, const char *key)
{
    return MHD_lookup_connection_value(request->connection, MHD_GET_ARGUMENT_KIND, key);
}

/* ---- answering ---- */

static void answer(struct api_request *request, int status, struct MHD_Response *response)
{
    if (request->response || !response)
        return;
    MHD_add_response_header(response, "Colloc-Version", request->server->options.version);
    request->status = status;
    request->response = response;
    if (request->suspended) {
        *request->link = request->next;
        if (request->next)
            request->next->link = request->link;
        request->suspended = false;
        MHD_resume_connection(request->connection);
    }
}

static void reply_problem(struct api_request *request, enum body_problem problem)
{
    switch (problem) {
    case BODY_GOOD:
        break;
    case BODY_TOO_LARGE:
        api_reply_error(request, 413, "the body is larger than %zu bytes",
            request->server->options.body_max_bytes);
        break;
    case BODY_USER_FULL:
        api_reply_error(request, 503,
            "your requests under way hold more than %zu bytes: try again when they are done",
            BYTES_PER_USER);
        break;
    case BODY_ALL_FULL:
        api_reply_error(request, 503,
            "all requests under way hold as many bytes as they may (%zu): try again later",
            request->server->options.bytes_max);
        break;
    case BODY_NO_MEMORY:
        api_reply_error(request, 503,
            "there is not enough memory for a body of %zu bytes at the moment: try again later",
            request->body_size);
        break;
    }
}

bool api_request_hold(struct api_request *request, size_t bytes)
{
    enum body_problem problem = hold(request, bytes);
    reply_problem(request, problem);
    return problem == BODY_GOOD;
}

void api_reply_held_text(struct api_request *request, int status, char *text)
{
    static char out_of_memory[] =
        "{\"error\": {\"code\": \"internal\", \"message\": \"out of memory\"}}\n";
    struct MHD_Response *response = text ? MHD_create_response_from_buffer(
                                               strlen(text), text, MHD_RESPMEM_MUST_FREE)
                                         : MHD_create_response_from_buffer(strlen(out_of_memory),
                                               out_of_memory, MHD_RESPMEM_PERSISTENT);
    if (response)
        MHD_add_response_header(response, "Content-Type", "application/json");
    answer(request, text ? status : 500, response);
}

void api_reply_text(struct api_request *request, int status, char *text)
{
    if (text && strlen(text) > SMALL_ANSWER && !api_request_hold(request, strlen(text)))
        free(text);
    else
        api_reply_held_text(request, status, text);
}

void api_reply(struct api_request *request, int status, json_t *body)
{
    char *text = body ? json_dumps(body, API_JSON_FLAGS) : NULL;
    json_decref(body);
    api_reply_text(request, status, text);
}

static const char *error_code(int status)
{
    static const struct {
        int status;
        const char *code;
    } codes[] = {{400, "bad-request"}, {403, "not-yours"}, {404, "not-found"}, {405, "bad-method"},
        {409, "wrong-state"}, {413, "too-large"}, {503, "not-now"}, {507, "log-not-writable"}};
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (codes[i].status == status)
            return codes[i].code;
    return "internal";
}

void api_reply_error(struct api_request *request, int status, const char *format, ...)
{
    char message[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    json_t *text = json_string(message);
    if (!text) { /* it quotes what is no UTF-8, or was cut within a character */
        for (char *at = message; *at; at++)
            if ((unsigned char)*at >= 0x80)
                *at = '?';
        text = json_string(message);
    }
    api_reply(request, status,
        json_pack("{s:{s:s, s:o}}", "error", "code", error_code(status), "message", text));
}

void api_reply_bytes(struct api_request *request, const char *type, const void *data, size_t size,
    const struct api_header *headers)
{
    struct MHD_Response *response = MHD_create_response_from_buffer(
        size, (void *)(uintptr_t)data, MHD_RESPMEM_MUST_COPY);
    if (response) {
        MHD_add_response_header(response, "Content-Type", type);
        for (; headers && headers->name; headers++)
            MHD_add_response_header(response, headers->name, headers->value);
    }
    answer(request, 200, response);
}

/* ---- routing ---- */

/* Does the path have the pattern's shape? Its {id} goes to ret_id. */
static bool path_matches(const char *pattern, const char *path, uint64_t *ret_id)
{
    *ret_id = 0;
    while (*pattern && *path) {
        if (strncmp(pattern, "{id}", 4) == 0) {
            char digits[20] = "";
            size_t n = strspn(path, "0123456789");
            int64_t id;
            if (n >= sizeof digits)
                return false;
            memcpy(digits, path, n);
            if (parse_int64(digits, 1, INT64_MAX, &id) < 0)
                return false;
            *ret_id = (uint64_t)id;
            pattern += 4;
            path += n;
        } else if (*pattern++ != *path++) {
            return false;
        }
    }
    return !*pattern && !*path;
}

/* The route, or NULL with the status that says why there is none. */
static const struct api_route *find_route(const struct api_server *server, const char *method,
    const char *path, uint64_t *ret_id, int *ret_status)
{
    *ret_status = 404;
    for (const struct api_route *route = server->options.routes; route->method; route++) {
        if (!path_matches(route->path, path, ret_id))
            continue;
        if (strcmp(route->method, method) == 0)
            return route;
        *ret_status = 405;
    }
    return NULL;
}

static size_t count_values(const char *text, size_t size)
{
    size_t values = 0;
    bool in_string = false;
    for (size_t i = 0; i < size; i++) {
        if (in_string && text[i] == '\\')
            i++;
        else if (text[i] == '"')
            in_string = !in_string;
        else if (!in_string && (text[i] == ',' || text[i] == '[' || text[i] == '{'))
            values++;
    }
    return values;
}

/* Asks the kernel, whose answer holds for RLIMIT_AS and for a machine that does not overcommit. */
static bool is_memory_there(size_t size)
{
    void *probe = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (probe == MAP_FAILED)
        return false;
    munmap(probe, size);
    return true;
}

static bool parse_body(struct api_request *request)
{
    json_error_t error;
    size_t size = request->body_size, values = count_values(request->body_text, size);
    if (values > VALUES_MAX) {
        api_reply_error(request, 400, "the body has more than %d values", VALUES_MAX);
        return false;
    }
    if (size > SMALL_BODY &&
        !is_memory_there(size * PARSE_BYTES_PER_BYTE + values * PARSE_BYTES_PER_VALUE)) {
        reply_problem(request, BODY_NO_MEMORY);
        return false;
    }
    request->body = json_loadb(request->body_text, size, JSON_REJECT_DUPLICATES, &error);
    if (!request->body)
        api_reply_error(
            request, 400, "the body is no JSON: %s (byte %d)", error.text, error.position);
    return request->body;
}

static void dispatch(struct api_request *request)
{
    if (request->server->going)
        api_reply_error(request, 503, "the daemon is going down");
    else if (request->problem != BODY_GOOD)
        reply_problem(request, request->problem);
    else if (!request->body_size || parse_body(request))
        request->route->handle(request->server->options.context, request);
}

static enum body_problem append_to_body(struct api_request *request, const char *data, size_t size)
{
    size_t total = request->body_size + size;
    if (total > request->server->options.body_max_bytes)
        return BODY_TOO_LARGE;
    enum body_problem problem = hold(request, size);
    if (problem != BODY_GOOD)
        return problem;
    if (total > request->body_room) {
        char *text = realloc(request->body_text, 2 * total);
        if (!text)
            return BODY_NO_MEMORY;
        request->body_text = text;
        request->body_room = 2 * total;
    }
    memcpy(request->body_text + request->body_size, data, size);
    request->body_size = total;
    return BODY_GOOD;
}

/* What comes after a problem is read and dropped. */
static void take_body(struct api_request *request, const char *data, size_t size)
{
    if (request->problem == BODY_GOOD)
        request->problem = append_to_body(request, data, size);
}

static void wait_for_answer(struct api_request *request)
{
    struct api_server *server = request->server;
    request->suspended = true;
    request->next = server->waiting;
    request->link = &server->waiting;
    if (request->next)
        request->next->link = &request->next;
    server->waiting = request;
    MHD_suspend_connection(request->connection);
}

/*
 * Answers a request with too many query arguments before libmicrohttpd reads them: each takes some
 * hundred bytes of the connection's memory, and when that is used up the connection hangs until its
 * timeout. Called with the request's whole path; returns the request's first context, none.
 */
static void *on_path(void *context, const char *path, struct MHD_Connection *connection)
{
    static const char words[] = "{\"error\": {\"code\": \"bad-request\", \"message\": "
                                "\"the path has too many query arguments\"}}\n";
    size_t arguments = 0;
    for (const char *at = path; (at = strchr(at, '&')); at++)
        arguments++;
    if (arguments < ARGUMENTS_MAX)
        return NULL;
    int fd = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    char reply[512];
    int size = snprintf(reply, sizeof reply,
        "HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n"
        "Connection: close\r\n\r\n%s",
        sizeof words - 1, words);
    send(fd, reply, (size_t)size, MSG_DONTWAIT | MSG_NOSIGNAL);
    shutdown(fd, SHUT_RDWR);
    return NULL;
}

static enum MHD_Result on_request(void *context, struct MHD_Connection *connection, const char *url,
    const char *method, const char *version, const char *data, size_t *data_size,
    void **request_context)
{
    struct api_request *request = *request_context;
    if (!request) {
        const struct connection *counted =
            MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
        request = counted ? calloc(1, sizeof *request) : NULL;
        if (!request)
            return MHD_NO;
        request->server = context;
        request->connection = connection;
        request->peer = peer_of(connection);
        request->user = counted->user;
        *request_context = request;
        return MHD_YES;
    }
    if (*data_size) {
        take_body(request, data, *data_size);
        *data_size = 0;
        return MHD_YES;
    }
    if (!request->response && !request->route) {
        int status;
        request->route = find_route(request->server, method, url, &request->id, &status);
        if (request->route)
            dispatch(request);
        else
            api_reply_error(request, status, "%s %s: %s", method, url,
                status == 405 ? "not with this method"
                              : "no such path (docs/protocol.md lists them)");
    }
    if (!request->response) {
        wait_for_answer(request);
        return MHD_YES;
    }
    return MHD_queue_response(connection, (unsigned)request->status, request->response);
}

static void on_completed(void *context, struct MHD_Connection *connection, void **request_context,
    enum MHD_RequestTerminationCode code)
{
    struct api_request *request = *request_context;
    if (!request)
        return;
    quota_give_back(&request->server->quota, request->user, request->held_bytes);
    if (request->response)
        MHD_destroy_response(request->response);
    json_decref(request->body);
    free(request->body_text);
    free(request);
    *request_context = NULL;
}

/* ---- the socket ---- */

static bool somebody_listens(const struct sockaddr_un *address)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool alive = fd >= 0 && (connect(fd, (const struct sockaddr *)address, sizeof *address) == 0 ||
                                errno == EAGAIN);
    if (fd >= 0)
        close(fd);
    return alive;
}

static int listen_on(struct api_server *server, struct fault *fault, int *ret_fd)
{
    const char *path = server->options.socket_path;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path)
        return fault_set(fault, ENAMETOOLONG, "%s: a socket's path may have at most %zu characters",
            path, sizeof address.sun_path - 1);
    memcpy(address.sun_path, path, strlen(path) + 1);
    if (somebody_listens(&address))
        return fault_set(fault, EADDRINUSE, "%s: another collocd answers there", path);
    struct stat status;
    if (lstat(path, &status) == 0 && S_ISSOCK(status.st_mode))
        unlink(path);

    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) < 0 ||
        chmod(path, server->options.socket_mode) < 0 || listen(fd, SOMAXCONN) < 0 ||
        lstat(path, &status) < 0) {
        int r = fault_set(fault, errno, "%s: %s", path, strerror(errno));
        if (fd >= 0)
            close(fd);
        return r;
    }
    memcpy(server->socket_path, address.sun_path, sizeof server->socket_path);
    server->socket_device = status.st_dev;
    server->socket_inode = status.st_ino;
    *ret_fd = fd;
    return 0;
}

/* Only our own: a newer daemon may have put its socket there. */
static void remove_socket(const struct api_server *server)
{
    struct stat status;
    if (server->socket_path[0] && lstat(server->socket_path, &status) == 0 &&
        status.st_dev == server->socket_device && status.st_ino == server->socket_inode)
        unlink(server->socket_path);
}

/* Of all users: half of the descriptors that the process may have, the rest is the caller's. */
static int connections_max(void)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur / 2 < CONNECTIONS_MAX)
        return (int)files.rlim_cur / 2 + 1;
    return CONNECTIONS_MAX;
}

static int init_quota(struct api_server *server)
{
    int connections = connections_max();
    struct quota_limits limits = {
        .connections = connections,
        .connections_reserved = connections / 4 < CONNECTIONS_RESERVED ? connections / 4
                                                                       : CONNECTIONS_RESERVED,
        .connections_per_user = server->options.connections_per_user_max,
        .bytes = server->options.bytes_max,
        .bytes_reserved = server->options.bytes_max / 2 < BYTES_RESERVED
                              ? server->options.bytes_max / 2
                              : BYTES_RESERVED,
        .bytes_per_user = BYTES_PER_USER,
    };
    return quota_init(&server->quota, &limits);
}

static void free_server(struct api_server *server)
{
    quota_fini(&server->quota);
    free(server);
}

int api_server_create(
    const struct api_server_options *options, struct fault *fault, struct api_server **ret_server)
{
    struct api_server *server = calloc(1, sizeof *server);
    int fd;
    if (!server)
        return fault_set(fault, ENOMEM, "out of memory");
    server->options = *options;
    int r = init_quota(server);
    r = r < 0 ? fault_set(fault, ENOMEM, "out of memory") : listen_on(server, fault, &fd);
    if (r < 0) {
        free_server(server);
        return r;
    }
    server->http = MHD_start_daemon(MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL,
        on_request, server, MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_TIMEOUT,
        (unsigned)options->idle_timeout_s, MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)server->quota.limits.connections, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)(32 * KIB), MHD_OPTION_NOTIFY_COMPLETED, on_completed, NULL,
        MHD_OPTION_NOTIFY_CONNECTION, on_connection, server, MHD_OPTION_URI_LOG_CALLBACK, on_path,
        NULL, MHD_OPTION_END);
    if (!server->http) {
        remove_socket(server);
        close(fd);
        free_server(server);
        return fault_set(fault, EIO, "%s: the HTTP server does not start", options->socket_path);
    }
    *ret_server = server;
    return 0;
}

/* Lets go out what can go out at once. */
static void say_goodbye(struct api_server *server)
{
    for (int i = 0; i < GOODBYE_TURNS && (i == 0 || api_server_timeout_ms(server) == 0); i++)
        MHD_run(server->http);
}

void api_server_destroy(struct api_server *server)
{
    if (!server)
        return;
    remove_socket(server);
    server->going = true;
    while (server->waiting)
        api_reply_error(server->waiting, 503, "the daemon is going down");
    say_goodbye(server);
    MHD_stop_daemon(server->http);
    free_server(server);
}

int api_server_fd(const struct api_server *server)
{
    return MHD_get_daemon_info(server->http, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
}

void api_server_run(struct api_server *server)
{
    MHD_run(server->http);
}

int64_t api_server_timeout_ms(struct api_server *server)
{
    MHD_UNSIGNED_LONG_LONG timeout;
    bool is_due = MHD_get_timeout(server->http, &timeout) == MHD_YES;
    return is_due && timeout < RUN_AGAIN_MS ? (int64_t)timeout : RUN_AGAIN_MS;
}
