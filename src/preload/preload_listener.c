/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The socket on which the daemon hears of processes with the library. A connection is new until its
 * first packet says what it is. Silent new connections are closed after some seconds, or when
 * others need their places: they keep no process out, whatever users they are of. One packet is
 * read in each turn of the loop, so that no connection delays the others.
 */
#include "preload/preload_listener.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clamp.h"
#include "base/list.h"
#include "base/process.h"
#include "preload/connection_quota.h"
#include "preload/passed_fd.h"

enum { SWEEP_MS = 1000, SILENCE_MAX_MS = 5000, BACKLOG = 128 };

enum role { ROLE_NEW, ROLE_PROCESS, ROLE_WAITER };

struct connection {
    struct preload_listener *listener;
    struct connection *next, **link; /* NULL: it is closed, and waits for the loop */
    uv_poll_t poll;
    int fd;
    enum role role;
    uint64_t begun_ms;
    uint64_t program; /* of the process when it connected; 0: not known */
    struct preload_peer peer;
    struct preload_process process;
    struct preload_waiter waiter;
};

struct preload_listener {
    uv_loop_t *loop;
    struct preload_hooks hooks;
    struct connection *first, **last;
    struct connection_quota quota;
    int fd;
    char path[sizeof(((struct sockaddr_un *)NULL)->sun_path)];
    uv_poll_t poll;
    uv_timer_t sweep;
    bool is_closing, is_full; /* full: nothing is accepted until the next sweep */
};

/* ---- the list ---- */

static void unlink_it(struct connection *connection)
{
    struct preload_listener *listener = connection->listener;
    LIST_UNLINK_FROM(listener->last, connection);
    connection_quota_remove(&listener->quota, connection->peer.uid);
}

/* ---- the end of a connection ---- */

static void on_closed(uv_handle_t *handle)
{
    struct connection *connection = handle->data;
    close(connection->fd);
    if (connection->process.page)
        munmap(connection->process.page, PRELOAD_PAGE_SIZE);
    free(connection);
}

static void drop_connection(struct connection *connection)
{
    if (!connection->link)
        return;
    unlink_it(connection);
    uv_close((uv_handle_t *)&connection->poll, on_closed);
}

/* Only from the loop: hooks are called. */
static void end_connection(struct connection *connection)
{
    const struct preload_hooks *hooks = &connection->listener->hooks;
    if (connection->role == ROLE_PROCESS)
        hooks->ends(hooks->context, &connection->process);
    if (connection->role == ROLE_WAITER)
        hooks->stops_waiting(hooks->context, &connection->waiter);
    drop_connection(connection);
}

/* ---- a process and its page ---- */

static struct preload_page *create_page(int *ret_fd)
{
    int fd = memfd_create("colloc-preload", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    struct preload_page *page = MAP_FAILED;
    if (fd >= 0 && ftruncate(fd, PRELOAD_PAGE_SIZE) == 0 &&
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
        page = mmap(NULL, PRELOAD_PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (page == MAP_FAILED) {
        if (fd >= 0)
            close(fd);
        return NULL;
    }
    page->magic = PRELOAD_PAGE_MAGIC;
    page->version = PRELOAD_PAGE_VERSION;
    *ret_fd = fd;
    return page;
}

static bool send_with_descriptor(
    struct connection *connection, struct preload_message *message, int fd)
{
    struct iovec part = {.iov_base = message, .iov_len = sizeof(*message)};
    struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1};
    union passed_fd_room room;
    passed_fd_attach(&header, &room, fd);
    return sendmsg(connection->fd, &header, MSG_NOSIGNAL | MSG_DONTWAIT) ==
           (ssize_t)sizeof(*message);
}

/* Returns whether the connection follows the protocol and continues. */
static bool take_hello(struct connection *connection)
{
    const struct preload_hooks *hooks = &connection->listener->hooks;
    int fd;
    if (connection->role != ROLE_NEW)
        return false;
    connection->process = (struct preload_process){
        .peer = connection->peer, .page = create_page(&fd)};
    if (!connection->process.page)
        return false;
    connection->role = ROLE_PROCESS;
    hooks->begins(hooks->context, &connection->process);
    struct preload_message welcome = preload_message_of(PRELOAD_WELCOME);
    bool sent = send_with_descriptor(connection, &welcome, fd);
    close(fd);
    return sent;
}

/* ---- memory for its copy ---- */

bool preload_give_room(struct preload_process *process, enum preload_place place, uint64_t bytes,
    uint64_t offset, int fd)
{
    struct connection *connection = (struct connection *)((char *)process -
                                                          offsetof(struct connection, process));
    struct preload_message room = preload_message_of(PRELOAD_ROOM);
    room.reason = (uint8_t)place;
    room.bytes = bytes;
    room.held_bytes = offset;
    if (fd >= 0)
        return send_with_descriptor(connection, &room, fd);
    return send(connection->fd, &room, sizeof(room), MSG_NOSIGNAL | MSG_DONTWAIT) ==
           (ssize_t)sizeof(room);
}

/* ---- a thread that waits ---- */

static bool take_wait(struct connection *connection, const struct preload_message *message)
{
    const struct preload_hooks *hooks = &connection->listener->hooks;
    struct preload_waiter *waiter = &connection->waiter;
    if (connection->role == ROLE_PROCESS || waiter->is_asking)
        return false;
    if (connection->role == ROLE_NEW)
        waiter->since_ms = uv_now(connection->listener->loop);
    else
        waiter->retries++;
    connection->role = ROLE_WAITER;
    waiter->peer = connection->peer;
    waiter->reason = message->reason;
    waiter->bytes = message->bytes;
    waiter->held_bytes = message->held_bytes;
    memcpy(waiter->gpu_uuid, message->gpu_uuid, sizeof(waiter->gpu_uuid));
    waiter->is_asking = true;
    hooks->waits(hooks->context, waiter);
    return true;
}

static struct connection *connection_of(struct preload_waiter *waiter)
{
    return (struct connection *)((char *)waiter - offsetof(struct connection, waiter));
}

/* If its buffer is full, or the other end has closed, the loop finds the connection closed. */
void preload_answer(struct preload_waiter *waiter, enum preload_kind kind, uint64_t bound_ms)
{
    struct connection *connection = connection_of(waiter);
    struct preload_message answer = preload_message_of(kind);
    answer.bound_ms = bound_ms;
    waiter->is_asking = waiter->is_asking && kind == PRELOAD_BOUND;
    if (send(connection->fd, &answer, sizeof(answer), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
        shutdown(connection->fd, SHUT_RDWR);
}

/* ---- packets ---- */

static bool take_packet(struct connection *connection, const char *packet, size_t size)
{
    const struct preload_hooks *hooks = &connection->listener->hooks;
    struct preload_message message;
    if (preload_request_decode(packet, size, &message) < 0)
        return false;
    if (connection->role == ROLE_NEW) {
        connection->peer.task = message.task;
        connection->peer.attempt = message.attempt;
        if (!hooks->admits(hooks->context, &connection->peer))
            return false;
    }
    return message.kind == PRELOAD_HELLO ? take_hello(connection) : take_wait(connection, &message);
}

/* The kernel drops a descriptor that comes with a packet: the buffer has no space for it. */
static void on_readable(uv_poll_t *poll, int status, int events)
{
    struct connection *connection = poll->data;
    char packet[sizeof(struct preload_message) + 1];
    ssize_t n = recv(connection->fd, packet, sizeof(packet), MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0 || !take_packet(connection, packet, (size_t)n))
        end_connection(connection);
}

/* ---- new connections ---- */

/* Returns the oldest silent connection whose place another of the user can have, or NULL. */
static struct connection *find_silent(
    struct preload_listener *listener, enum connection_answer why, uid_t uid)
{
    for (struct connection *c = listener->first; c; c = c->next) {
        bool is_shared = connection_quota_is_beyond(&listener->quota, c->peer.uid);
        if (c->role == ROLE_NEW &&
            (c->peer.uid == uid || (why == CONNECTION_ALL_FULL && is_shared)))
            return c;
    }
    return NULL;
}

/* Returns whether there is a place for one more connection of the user. The oldest silent one gives
 * up its place, one of the same user where that has too many. */
static bool make_place(struct preload_listener *listener, uid_t uid)
{
    enum connection_answer answer = connection_quota_check(&listener->quota, uid);
    if (answer == CONNECTION_ADMITTED)
        return true;
    struct connection *silent = find_silent(listener, answer, uid);
    if (silent)
        end_connection(silent);
    else
        listener->hooks.refuses(
            listener->hooks.context, uid, connection_quota_count(&listener->quota, uid));
    return silent;
}

static uint64_t read_born(pid_t pid)
{
    struct process_stat stat;
    return process_read_stat(pid, &stat) == 0 ? stat.start_ticks : 0;
}

static int add_connection(struct preload_listener *listener, int fd)
{
    struct ucred credentials;
    socklen_t size = sizeof(credentials);
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) < 0 ||
        !make_place(listener, credentials.uid))
        return -EAGAIN;
    struct connection *connection = calloc(1, sizeof(*connection));
    if (!connection)
        return -ENOMEM;
    *connection = (struct connection){.listener = listener,
        .fd = fd,
        .begun_ms = uv_now(listener->loop),
        .program = process_read_program(credentials.pid),
        .peer = {
            .pid = credentials.pid, .born = read_born(credentials.pid), .uid = credentials.uid}};
    int r = connection_quota_add(&listener->quota, credentials.uid);
    if (r == 0 && (r = uv_poll_init(listener->loop, &connection->poll, fd)) < 0)
        connection_quota_remove(&listener->quota, credentials.uid);
    if (r < 0) {
        free(connection);
        return r;
    }
    connection->poll.data = connection;
    LIST_APPEND(listener->last, connection);
    uv_poll_start(&connection->poll, UV_READABLE, on_readable);
    return 0;
}

static void on_sweep(uv_timer_t *timer);

static void on_connection(uv_poll_t *poll, int status, int events)
{
    struct preload_listener *listener = poll->data;
    int fd = accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)) {
        listener->is_full = true;
        uv_poll_stop(poll);
    }
    if (fd >= 0 && add_connection(listener, fd) < 0)
        close(fd);
    if (!uv_is_active((uv_handle_t *)&listener->sweep))
        uv_timer_start(&listener->sweep, on_sweep, SWEEP_MS, SWEEP_MS);
}

/* Does another program run in the process, which has kept the descriptor? No answer comes then.
 * Looks only at processes whose gate is closed: these are few, and the daemon waits for them. */
static bool has_other_program(const struct connection *c)
{
    if (c->role != ROLE_PROCESS || atomic_load(&c->process.page->gate) != PRELOAD_GATE_CLOSED)
        return false;
    uint64_t program = process_read_program(c->peer.pid);
    return c->program && program && program != c->program;
}

/* Without connections nothing wakes the loop for it. */
static void on_sweep(uv_timer_t *timer)
{
    struct preload_listener *listener = timer->data;
    for (struct connection *c = listener->first, *next; c; c = next) {
        next = c->next;
        bool is_silent = c->role == ROLE_NEW &&
                         uv_now(listener->loop) - c->begun_ms > SILENCE_MAX_MS;
        if (is_silent || has_other_program(c))
            end_connection(c);
    }
    if (listener->is_full) {
        listener->is_full = false;
        uv_poll_start(&listener->poll, UV_READABLE, on_connection);
    }
    if (!listener->first)
        uv_timer_stop(timer);
}

/* ---- its life ---- */

static int open_socket(const char *path, struct fault *fault)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct stat status;
    if (strlen(path) >= sizeof(address.sun_path))
        return fault_set(fault, ENAMETOOLONG, "%s: a socket's path may have at most %zu characters",
            path, sizeof(address.sun_path) - 1);
    memcpy(address.sun_path, path, strlen(path) + 1);
    if (lstat(path, &status) == 0 && S_ISSOCK(status.st_mode))
        unlink(path);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0 &&
        chmod(path, 0666) == 0 && listen(fd, BACKLOG) == 0)
        return fd;
    int r = fault_set(fault, errno, "%s: %s", path, strerror(errno));
    if (fd >= 0)
        close(fd);
    return r;
}

int preload_listener_create(uv_loop_t *loop, const char *path, int most,
    const struct preload_hooks *hooks, struct fault *fault, struct preload_listener **ret_listener)
{
    struct preload_listener *listener = calloc(1, sizeof(*listener));
    if (!listener)
        return fault_set(fault, ENOMEM, "out of memory");
    *listener = (struct preload_listener){.loop = loop, .hooks = *hooks};
    listener->last = &listener->first;
    connection_quota_init(&listener->quota, most);
    listener->fd = open_socket(path, fault);
    int r = listener->fd;
    if (r >= 0) {
        memcpy(listener->path, path, strlen(path) + 1);
        r = uv_poll_init(loop, &listener->poll, listener->fd);
    }
    if (r < 0) {
        if (listener->fd >= 0)
            close(listener->fd);
        free(listener);
        return r;
    }
    uv_timer_init(loop, &listener->sweep);
    listener->poll.data = listener->sweep.data = listener;
    uv_poll_start(&listener->poll, UV_READABLE, on_connection);
    *ret_listener = listener;
    return 0;
}

void preload_listener_close(struct preload_listener *listener)
{
    if (!listener || listener->is_closing)
        return;
    listener->is_closing = true;
    while (listener->first)
        drop_connection(listener->first);
    uv_close((uv_handle_t *)&listener->poll, NULL);
    uv_close((uv_handle_t *)&listener->sweep, NULL);
    close(listener->fd);
    unlink(listener->path);
}

void preload_listener_destroy(struct preload_listener *listener)
{
    if (listener)
        connection_quota_fini(&listener->quota);
    free(listener);
}

/* ---- the list, for its owner ---- */

static struct connection *first_of(const struct preload_listener *listener)
{
    return listener ? listener->first : NULL;
}

static struct connection *next_of_role(struct connection *from, enum role role)
{
    while (from && from->role != role)
        from = from->next;
    return from;
}

struct preload_process *preload_next_process(
    struct preload_listener *listener, const struct preload_process *after)
{
    const size_t at = offsetof(struct connection, process);
    struct connection *from = after ? ((const struct connection *)((const char *)after - at))->next
                                    : first_of(listener);
    struct connection *found = next_of_role(from, ROLE_PROCESS);
    return found ? &found->process : NULL;
}

struct preload_process *preload_next_of_task(
    struct preload_listener *listener, uint64_t task, const struct preload_process *after)
{
    struct preload_process *process = preload_next_process(listener, after);
    while (process && process->peer.task != task)
        process = preload_next_process(listener, process);
    return process;
}

struct preload_process *preload_next_of_process(struct preload_listener *listener, uint64_t task,
    struct process_id id, const struct preload_process *after)
{
    struct preload_process *process = preload_next_of_task(listener, task, after);
    while (process && !process_id_is(preload_peer_id(&process->peer), id))
        process = preload_next_of_task(listener, task, process);
    return process;
}

struct preload_process *preload_process_of(
    struct preload_listener *listener, const struct preload_waiter *waiter)
{
    return preload_next_of_process(
        listener, waiter->peer.task, preload_peer_id(&waiter->peer), NULL);
}

struct preload_waiter *preload_next_waiter(
    struct preload_listener *listener, const struct preload_waiter *after)
{
    const size_t at = offsetof(struct connection, waiter);
    struct connection *from = after ? ((const struct connection *)((const char *)after - at))->next
                                    : first_of(listener);
    struct connection *found = next_of_role(from, ROLE_WAITER);
    return found ? &found->waiter : NULL;
}

/* ---- for its owners ---- */

bool preload_uuid_is(const char *text, const unsigned char uuid[16])
{
    static const char digits[] = "0123456789abcdef";
    const char *at = strchr(text, '-');
    for (int i = 0; at && i < 16; i++) {
        at += *at == '-';
        if (tolower(at[0]) != digits[uuid[i] >> 4] || tolower(at[1]) != digits[uuid[i] & 15])
            return false;
        at += 2;
    }
    return at && *at == '\0';
}

int preload_connections_for_limit(void)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) < 0)
        return PRELOAD_CONNECTIONS_MAX;
    return (int)clamp_int64((int64_t)(files.rlim_cur / 4), 128, PRELOAD_CONNECTIONS_MAX);
}
