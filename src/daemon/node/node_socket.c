/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests of slurmstepd, on a socket that only root (or the agent's own user) may use. A
 * connection is one request and one answer:
 *
 *     start   noted as a step; answered with the variables of MPS, perhaps once the user's control
 *             daemon has started
 *     end     answered when it is known whether the job is requeued (crash_verdict.c)
 *
 * The plugin waits for a bounded time and continues without an answer; an answer to a closed
 * connection is dropped. After `end` the plugin asks again if the agent was killed before it
 * answered.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/list.h"
#include "base/log.h"
#include "daemon/node/crash_verdict.h"
#include "daemon/node/node_gres.h"
#include "daemon/node/node_state.h"
#include "daemon/node/step_request.h"
#include "preload/protocol.h"

enum { CONNECTIONS_MAX = 1024, BACKLOG = 128 };

struct step_connection {
    struct step_server *server;
    struct step_connection *next, **link;
    uv_poll_t poll;
    int fd;
    pid_t stepd;
    bool waits_for_mps;
    uid_t uid;
    struct crash_verdict *verdict; /* under way; NULL: none */
};

struct step_server {
    struct node *node;
    int fd;
    char path[sizeof(((struct sockaddr_un *)NULL)->sun_path)];
    uv_poll_t poll;
    struct step_connection *first;
    int n_connections;
};

/* ---- connections ---- */

static void on_closed(uv_handle_t *handle)
{
    struct step_connection *connection = handle->data;
    close(connection->fd);
    free(connection);
}

static void drop_connection(struct step_connection *connection)
{
    LIST_UNLINK(connection);
    connection->server->n_connections--;
    crash_verdict_leave(connection->verdict);
    uv_close((uv_handle_t *)&connection->poll, on_closed);
}

static void reply_and_close(struct step_connection *connection, const char *text)
{
    send(connection->fd, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT);
    drop_connection(connection);
}

/* ---- a step starts ---- */

/* The variables of the preloaded library, for a job that the controller has pinned. The plugin puts
 * the library before those that the user preloads. Returns the length. */
static size_t write_preload(const struct node_step *step, char *text, size_t size)
{
    const struct node *node = step->node;
    const char *socket = job_waits_socket(node);
    int n = 0;
    if (step->is_pinned && socket)
        n = snprintf(text, size,
            PRELOAD_LIBRARY_VARIABLE "=%s\n" PRELOAD_SOCKET_VARIABLE "=%s\n" PRELOAD_JOB_VARIABLE
                                     "=%u\n",
            node->parts.config->preload_library, socket, step->job);
    if (n > 0 && (size_t)n < size && node->parts.config->carrier)
        n += snprintf(text + n, size - (size_t)n, PRELOAD_CARRIER_VARIABLE "=1\n");
    if (n < 0 || (size_t)n >= size)
        n = 0;
    text[n] = '\0';
    return (size_t)n;
}

/* Answers unless the control daemon is still starting. */
static void answer_start(struct step_connection *connection, struct node_step *step)
{
    struct mps *mps = connection->server->node->parts.mps;
    char text[STEP_ANSWER_MAX];
    const char *pipe_dir = NULL;
    struct fault fault = {0};
    size_t length = step ? write_preload(step, text, sizeof text) : 0;
    if (!step || !step->is_mps) {
        reply_and_close(connection, length ? text : "");
        return;
    }
    int r = mps_prepare(mps, step->uid, step->gid, "", &pipe_dir, &fault);
    connection->waits_for_mps = r == MPS_WAIT;
    connection->uid = step->uid;
    if (r == MPS_WAIT)
        return;
    if (r == 0) {
        snprintf(text + length, sizeof text - length, "CUDA_MPS_PIPE_DIRECTORY=%s\n", pipe_dir);
        reply_and_close(connection, text);
        return;
    }
    log_warning("job %u starts without MPS: %s", step->job, fault.text);
    step->is_mps = false;
    step_record_save(step);
    reply_and_close(connection, length ? text : "");
}

static bool is_pin_of(const struct node_pin *pin, const struct step_request *request)
{
    if (pin->is_of_array)
        return request->array_job == pin->job && request->array_task == pin->array_task;
    return request->job == pin->job;
}

/* The controller's last order for the step's job; NULL: none is stored. */
static const struct node_pin *find_pin(const struct node *node, const struct step_request *request)
{
    size_t known = node->n_pins < PINS_KEPT ? node->n_pins : PINS_KEPT;
    for (size_t i = 1; i <= known; i++) {
        const struct node_pin *pin = &node->pins[(node->n_pins - i) % PINS_KEPT];
        if (is_pin_of(pin, request))
            return pin;
    }
    return NULL;
}

/* As the user wants it, as the controller has decided, as the node is configured. */
static bool shares_by_mps(const struct node *node, const struct step_request *request)
{
    const struct node_pin *pin = find_pin(node, request);
    if (request->sharing != STEP_SHARING_ANY)
        return request->sharing == STEP_SHARING_MPS;
    return pin ? pin->is_mps : node->parts.config->sharing == SHARING_MPS;
}

static void start_step(struct step_connection *connection, const struct step_request *request)
{
    struct node *node = connection->server->node;
    const struct node_pin *pin = find_pin(node, request);
    const struct node_step step = {.job = request->job,
        .array_job = request->array_job,
        .array_task = request->array_task,
        .step = request->step,
        .uid = request->uid,
        .gid = request->gid,
        .stepd = connection->stepd,
        .gpus = node_gres_numbers(request->gpus, node->gres_numbers),
        .is_mps = request->gpus && shares_by_mps(node, request),
        .is_pinned = pin,
        .was_shared = pin && pin->may_share_elsewhere};
    if (node_step_find(node, connection->stepd) || request->gpus == 0)
        reply_and_close(connection, "");
    else
        answer_start(connection, node_step_add(node, &step));
}

void step_server_mps_ready(struct node *node, uid_t uid)
{
    for (struct step_connection *c = node->server->first, *next; c; c = next) {
        next = c->next;
        if (c->waits_for_mps && c->uid == uid)
            answer_start(c, node_step_find(node, c->stepd));
    }
}

/* ---- a task of a step has ended ---- */

static void on_verdict(void *context, const struct node_crash *crash)
{
    struct step_connection *connection = context;
    connection->verdict = NULL;
    reply_and_close(connection, crash ? "requeued" : "final");
}

/* An unknown step began under an earlier agent: it may have shared its GPUs. If it was alone, the
 * setting recoveries limits its runs. */
static void end_step(struct step_connection *connection, const struct step_request *request)
{
    struct node *node = connection->server->node;
    const struct node_step unknown = {.job = request->job,
        .array_job = request->array_job,
        .array_task = request->array_task,
        .step = request->step,
        .uid = request->uid,
        .gid = request->gid,
        .was_shared = true};
    const struct node_step *step = node_step_find(node, connection->stepd);
    if (!step)
        step = &unknown;
    if (step->step == STEP_BATCH && step->was_shared && request->status)
        connection->verdict = crash_verdict_begin(
            node, step, request->status, on_verdict, connection);
    if (!connection->verdict)
        reply_and_close(connection, "final");
}

/* ---- requests ---- */

static void on_readable(uv_poll_t *poll, int status, int events)
{
    struct step_connection *connection = poll->data;
    char packet[STEP_REQUEST_MAX];
    struct step_request request;
    struct fault fault = {0};
    ssize_t n = recv(connection->fd, packet, sizeof packet - 1, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    bool is_second = connection->waits_for_mps || connection->verdict;
    if (n <= 0 || is_second) { /* the plugin waits no longer */
        drop_connection(connection);
        return;
    }
    packet[n] = '\0';
    if (step_request_parse(packet, &fault, &request) < 0) {
        log_warning("a request of process %d is not valid: %s", (int)connection->stepd, fault.text);
        drop_connection(connection);
    } else if (request.kind == STEP_STARTS) {
        start_step(connection, &request);
    } else {
        end_step(connection, &request);
    }
}

static int add_connection(struct step_server *server, int fd)
{
    struct ucred peer;
    socklen_t size = sizeof peer;
    if (server->n_connections >= CONNECTIONS_MAX ||
        getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
        return -EAGAIN;
    if (peer.uid != 0 && peer.uid != geteuid())
        return -EPERM;
    struct step_connection *connection = calloc(1, sizeof *connection);
    if (!connection)
        return -ENOMEM;
    *connection = (struct step_connection){.server = server, .fd = fd, .stepd = peer.pid};
    uv_poll_init(server->node->parts.loop, &connection->poll, fd);
    connection->poll.data = connection;
    LIST_PREPEND(&server->first, connection);
    server->n_connections++;
    uv_poll_start(&connection->poll, UV_READABLE | UV_DISCONNECT, on_readable);
    return 0;
}

static void on_connection(uv_poll_t *poll, int status, int events)
{
    struct step_server *server = poll->data;
    int fd = accept4(server->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd >= 0 && add_connection(server, fd) < 0)
        close(fd);
}

/* ---- its life ---- */

static int listen_on(const char *path, struct fault *fault)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct stat status;
    if (strlen(path) >= sizeof address.sun_path)
        return fault_set(fault, ENAMETOOLONG, "%s: a socket's path may have at most %zu characters",
            path, sizeof address.sun_path - 1);
    memcpy(address.sun_path, path, strlen(path) + 1);
    if (lstat(path, &status) == 0 && S_ISSOCK(status.st_mode))
        unlink(path);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof address) == 0 &&
        chmod(path, 0600) == 0 && listen(fd, BACKLOG) == 0)
        return fd;
    int r = fault_set(fault, errno, "%s: %s", path, strerror(errno));
    if (fd >= 0)
        close(fd);
    return r;
}

int step_server_open(struct node *node, struct fault *fault)
{
    const char *path = node->parts.config->node_socket;
    int fd = listen_on(path, fault);
    struct step_server *server = fd >= 0 ? calloc(1, sizeof *server) : NULL;
    if (fd < 0)
        return fd;
    if (!server) {
        close(fd);
        return fault_set(fault, ENOMEM, "out of memory");
    }
    *server = (struct step_server){.node = node, .fd = fd};
    snprintf(server->path, sizeof server->path, "%s", path);
    uv_poll_init(node->parts.loop, &server->poll, fd);
    server->poll.data = server;
    uv_poll_start(&server->poll, UV_READABLE, on_connection);
    node->server = server;
    return 0;
}

void step_server_close(struct node *node)
{
    struct step_server *server = node->server;
    if (!server)
        return;
    while (server->first)
        drop_connection(server->first);
    uv_close((uv_handle_t *)&server->poll, NULL);
    close(server->fd);
    unlink(server->path);
}

void step_server_destroy(struct node *node)
{
    free(node->server);
}
