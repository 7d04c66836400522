#include "api/server.h"

#include <errno.h>
#include <microhttpd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/units.h"

#define CONNECTIONS_MAX 2048
#define USERS_MAX       256
#define GOODBYE_TURNS   64
#define VALUES_MAX      100000
#define HELD_MAX        ((size_t)(64 * MIB)) /* of one user, in bodies and answers under way */
#define SMALL_ANSWER    ((size_t)(64 * KIB))

struct user_connections {
    uid_t uid;
    int count;
    size_t held_bytes;
};

struct api_server {
    struct api_server_options options;
    char socket_path[sizeof((struct sockaddr_un *)0)->sun_path];
    dev_t socket_device;
    ino_t socket_inode;
    struct MHD_Daemon *http;
    struct user_connections users[USERS_MAX];
    struct api_request *waiting; /* suspended, to be answered when the server goes */
    bool going;
};

struct api_request {
    struct api_server *server;
    struct MHD_Connection *connection;
    struct api_peer peer;
    struct user_connections *user; /* NULL: is not counted */
    size_t held_bytes;
    const struct api_route *route;
    uint64_t id;
    char *body_text;
    size_t body_size, body_room;
    bool too_large, too_much;
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

static struct user_connections *connections_of(struct api_server *server, uid_t uid)
{
    struct user_connections *free_entry = NULL;
    for (int i = 0; i < USERS_MAX; i++) {
        if (server->users[i].count && server->users[i].uid == uid)
            return &server->users[i];
        if (!server->users[i].count && !free_entry)
            free_entry = &server->users[i];
    }
    if (free_entry)
        free_entry->uid = uid;
    return free_entry;
}

/* Counts connections by user; one too many is shut before it can say anything. */
static void on_connection(void *context, struct MHD_Connection *connection, void **socket_context,
    enum MHD_ConnectionNotificationCode code)
{
    struct api_server *server = context;
    if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
        struct user_connections *counted = *socket_context;
        if (counted)
            counted->count--;
        return;
    }
    struct api_peer peer = peer_of(connection);
    struct user_connections *user = peer.uid ? connections_of(server, peer.uid) : NULL;
    *socket_context = user;
    if (user && ++user->count > server->options.connections_per_user_max)
        shutdown(MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd,
            SHUT_RDWR);
}

/* Who is below the limit may go beyond it once: a list longer than that can still be had. */
static bool hold(struct api_request *request, size_t bytes)
{
    struct user_connections *user = request->user;
    if (!user)
        return true;
    if (user->held_bytes > HELD_MAX)
        return false;
    user->held_bytes += bytes;
    request->held_bytes += bytes;
    return true;
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

static void reply_too_much(struct api_request *request)
{
    api_reply_error(request, 503,
        "your requests under way hold more than %zu bytes: try again when they are done", HELD_MAX);
}

void api_reply_text(struct api_request *request, int status, char *text)
{
    static char out_of_memory[] =
        "{\"error\": {\"code\": \"internal\", \"message\": \"out of memory\"}}\n";
    if (text && strlen(text) > SMALL_ANSWER && !hold(request, strlen(text))) {
        free(text);
        reply_too_much(request);
        return;
    }
    struct MHD_Response *response = text ? MHD_create_response_from_buffer(
                                               strlen(text), text, MHD_RESPMEM_MUST_FREE)
                                         : MHD_create_response_from_buffer(strlen(out_of_memory),
                                               out_of_memory, MHD_RESPMEM_PERSISTENT);
    if (response)
        MHD_add_response_header(response, "Content-Type", "application/json");
    answer(request, text ? status : 500, response);
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

/* Each value of a JSON text takes some hundred bytes in memory, however short it is written. */
static bool has_too_many_values(const char *text, size_t size)
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
    return values > VALUES_MAX;
}

static void dispatch(struct api_request *request)
{
    if (request->server->going) {
        api_reply_error(request, 503, "the daemon is going down");
        return;
    }
    if (request->too_large) {
        api_reply_error(request, 413, "the body is larger than %zu bytes",
            request->server->options.body_max_bytes);
        return;
    }
    if (request->too_much) {
        reply_too_much(request);
        return;
    }
    if (request->body_size) {
        json_error_t error;
        if (has_too_many_values(request->body_text, request->body_size)) {
            api_reply_error(request, 400, "the body has more than %d values", VALUES_MAX);
            return;
        }
        request->body = json_loadb(
            request->body_text, request->body_size, JSON_REJECT_DUPLICATES, &error);
        if (!request->body) {
            api_reply_error(
                request, 400, "the body is no JSON: %s (byte %d)", error.text, error.position);
            return;
        }
    }
    request->route->handle(request->server->options.context, request);
}

static void take_body(struct api_request *request, const char *data, size_t size)
{
    size_t total = request->body_size + size;
    if (request->too_large || total > request->server->options.body_max_bytes) {
        request->too_large = true;
        return;
    }
    request->too_much |= !hold(request, size);
    if (request->too_much)
        return;
    if (total > request->body_room) {
        char *text = realloc(request->body_text, 2 * total);
        if (!text) {
            request->too_large = true;
            return;
        }
        request->body_text = text;
        request->body_room = 2 * total;
    }
    memcpy(request->body_text + request->body_size, data, size);
    request->body_size = total;
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

static enum MHD_Result on_request(void *context, struct MHD_Connection *connection, const char *url,
    const char *method, const char *version, const char *data, size_t *data_size,
    void **request_context)
{
    struct api_request *request = *request_context;
    if (!request) {
        request = calloc(1, sizeof *request);
        if (!request)
            return MHD_NO;
        request->server = context;
        request->connection = connection;
        request->peer = peer_of(connection);
        request->user =
            MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
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
    if (request->user)
        request->user->held_bytes -= request->held_bytes;
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

int api_server_create(
    const struct api_server_options *options, struct fault *fault, struct api_server **ret_server)
{
    struct api_server *server = calloc(1, sizeof *server);
    int fd;
    if (!server)
        return fault_set(fault, ENOMEM, "out of memory");
    server->options = *options;
    int r = listen_on(server, fault, &fd);
    if (r < 0) {
        free(server);
        return r;
    }
    server->http = MHD_start_daemon(MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL,
        on_request, server, MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_TIMEOUT,
        (unsigned)options->idle_timeout_s, MHD_OPTION_CONNECTION_LIMIT, CONNECTIONS_MAX,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)(32 * KIB), MHD_OPTION_NOTIFY_COMPLETED,
        on_completed, NULL, MHD_OPTION_NOTIFY_CONNECTION, on_connection, server, MHD_OPTION_END);
    if (!server->http) {
        remove_socket(server);
        close(fd);
        free(server);
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
    free(server);
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
    return MHD_get_timeout(server->http, &timeout) == MHD_YES ? (int64_t)timeout : -1;
}
