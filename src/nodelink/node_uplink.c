/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The connection goes through these states; one timer limits each but the last. A name may have
 * several addresses, which are tried in turn before the next pause:
 *
 *     pausing --> resolving --> connecting --> unproven --answer accepts--> accepted
 *        ^            |             |             |                            |
 *        +------------+-------------+-------------+----------------------------+  with the reason
 *
 * munge signs and opens in turns in the thread pool, one turn at a time. A turn belongs to the
 * connection that was there when it began, by its number; its result is dropped when that has
 * ended. Once an answer has brought a key, reports are signed by it, at once. Within TLS there are
 * no turns.
 */
#include "nodelink/node_uplink.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/log.h"
#include "nodelink/munge_seal.h"
#include "nodelink/node_changes.h"
#include "nodelink/node_transport.h"

enum {
    PAUSE_MIN_MS = 1000,        /* chosen */
    PAUSE_MAX_MS = 30 * 1000,   /* chosen: jobs start without MPS meanwhile, no longer */
    PROOF_MAX_MS = 15 * 1000,   /* from an address to the first accepted report; chosen */
    CHANGES_MAX = 59,           /* between whole reports; chosen: a mistake ends in a minute */
    UNACKED_MAX_MS = 30 * 1000, /* chosen: a report a second; the kernel's own limit is 15 min */
    ANSWER_LINE_MAX = ANSWER_SIZE_MAX / 3 * 4 + 4096,
};

enum uplink_state {
    UPLINK_PAUSING,
    UPLINK_RESOLVING,
    UPLINK_CONNECTING,
    UPLINK_UNPROVEN,
    UPLINK_ACCEPTED
};

struct uplink_connection {
    struct node_transport transport;
    uv_connect_t connecting;
    struct node_uplink *uplink;
    uint64_t number; /* among all connections so far */
    struct report_session session;
    char *line;              /* complete and not yet opened; NULL: none */
    struct node_report sent; /* the last one, which the next one builds on; no `node`: none */
    bool takes_changes;
    int n_changes; /* that were sent since the last whole report */
};

struct node_uplink {
    uv_loop_t *loop;
    void *context;
    void (*on_answer)(void *context, const struct node_answer *answer);
    struct tls_credentials *credentials; /* NULL: munge */
    char controller[280], host[256], port[8], node[NODE_NAME_SIZE];
    enum uplink_state state;
    struct uplink_connection *connection; /* from UPLINK_CONNECTING on */
    uint64_t n_connections;
    uv_getaddrinfo_t resolving;
    struct addrinfo *addresses, *next_address; /* owned; and the one of them to try next */
    uv_timer_t timer;
    int pause_ms;
    char why[512]; /* the last reason for a pause, logged once */
    bool is_closing;

    struct node_report newest; /* not sent yet, nor given to a turn; no `node`: none */

    /* The turn; the pool thread's while `is_in_turn`: */
    uv_work_t work;
    bool is_in_turn;
    uint64_t turn_of;        /* the number of its connection */
    struct munge_seal *seal; /* NULL: TLS */
    char *turn_text, *sealed, *credential;
    size_t turn_text_size;
    int seal_answer, open_answer;
    struct fault seal_fault, open_fault;
    struct node_answer answer;
};

static void begin_resolving(struct node_uplink *uplink);
static void connect_next(struct node_uplink *uplink, const char *why);
static void take_answer(struct node_uplink *uplink);
static void start_turn(struct node_uplink *uplink);

/* ---- the end of a connection ---- */

static void on_closed(struct node_transport *transport)
{
    struct uplink_connection *connection = transport->owner;
    node_transport_fini(transport);
    node_report_fini(&connection->sent);
    free(connection);
}

static void drop_connection(struct node_uplink *uplink)
{
    if (uplink->connection)
        node_transport_close(&uplink->connection->transport);
    uplink->connection = NULL;
}

static void on_timer(uv_timer_t *timer);

/* A quarter more or less, so that a thousand agents do not return in the same instant. */
static uint64_t with_jitter(int ms)
{
    unsigned char byte = 0;
    if (getrandom(&byte, 1, GRND_NONBLOCK) != 1)
        byte = 128;
    return (uint64_t)ms * 3 / 4 + (uint64_t)ms * byte / 510;
}

/* Pauses, then connects again. */
static void fail_uplink(struct node_uplink *uplink, const char *why)
{
    if (uplink->is_closing)
        return;
    if (strcmp(why, uplink->why) != 0)
        log_warning("controller %s: %s; trying again", uplink->controller, why);
    snprintf(uplink->why, sizeof uplink->why, "%s", why);
    drop_connection(uplink);
    uplink->state = UPLINK_PAUSING;
    uv_timer_start(&uplink->timer, on_timer, with_jitter(uplink->pause_ms), 0);
    uplink->pause_ms = 2 * uplink->pause_ms < PAUSE_MAX_MS ? 2 * uplink->pause_ms : PAUSE_MAX_MS;
}

static void on_timer(uv_timer_t *timer)
{
    struct node_uplink *uplink = timer->data;
    if (uplink->state == UPLINK_PAUSING)
        begin_resolving(uplink);
    else if (uplink->state == UPLINK_RESOLVING)
        uv_timer_start(timer, on_timer, PROOF_MAX_MS, 0); /* the name service ends by itself */
    else if (uplink->state == UPLINK_CONNECTING)
        connect_next(uplink, "it cannot be reached");
    else
        fail_uplink(uplink, "no answer that accepts a report");
}

/* ---- reading ---- */

/* Within TLS an answer needs no turn. */
static void take_lines(struct uplink_connection *connection, const char *line)
{
    struct node_uplink *uplink = connection->uplink;
    while (line && uplink->connection == connection) {
        uplink->open_answer = node_answer_decode(
            line, strlen(line), &uplink->open_fault, &uplink->answer);
        take_answer(uplink);
        line = node_transport_next_line(&connection->transport);
    }
}

static void on_line(struct node_transport *transport, char *line)
{
    struct uplink_connection *connection = transport->owner;
    if (connection->uplink->credentials) {
        take_lines(connection, line);
        return;
    }
    node_transport_pause(transport);
    connection->line = line;
    start_turn(connection->uplink);
}

static void on_end(struct node_transport *transport, enum transport_end end, const char *why)
{
    struct uplink_connection *connection = transport->owner;
    fail_uplink(connection->uplink, end == TRANSPORT_TOO_LONG ? "its answer is too long" : why);
}

/* The line was opened: on to the next one. */
static void resume_uplink(struct node_uplink *uplink)
{
    struct uplink_connection *connection = uplink->connection;
    connection->line = node_transport_next_line(&connection->transport);
    if (!connection->line)
        node_transport_resume(&connection->transport);
}

/* ---- connecting ---- */

/* The controller's machine may be gone without a word. */
static void limit_unacked(uv_tcp_t *tcp)
{
    const unsigned limit_ms = UNACKED_MAX_MS;
    uv_os_fd_t fd;
    if (uv_fileno((uv_handle_t *)tcp, &fd) == 0)
        setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &limit_ms, sizeof limit_ms);
}

/* Reports can be sent. */
static void on_open(struct node_transport *transport)
{
    struct uplink_connection *connection = transport->owner;
    start_turn(connection->uplink);
}

static void on_connected(uv_connect_t *request, int status)
{
    struct uplink_connection *connection = request->data;
    struct node_uplink *uplink = connection->uplink;
    if (uplink->connection != connection)
        return;
    if (status < 0) {
        connect_next(uplink, uv_strerror(status));
        return;
    }
    uplink->state = UPLINK_UNPROVEN;
    uv_tcp_keepalive(&connection->transport.tcp, 1, 20);
    limit_unacked(&connection->transport.tcp);
    node_transport_start(&connection->transport);
}

/* Returns 0 or an error of libuv. */
static int connect_to(struct node_uplink *uplink, const struct sockaddr *address)
{
    static const struct node_transport_hooks hooks = {on_open, on_line, on_end, on_closed};
    struct uplink_connection *connection = calloc(1, sizeof *connection);
    if (!connection)
        return UV_ENOMEM;
    connection->uplink = uplink;
    connection->number = ++uplink->n_connections;
    connection->connecting.data = connection;
    uplink->connection = connection;
    uplink->state = UPLINK_CONNECTING;
    uv_timer_start(&uplink->timer, on_timer, PROOF_MAX_MS, 0);
    struct node_transport *transport = &connection->transport;
    int r = node_transport_init(
        transport, uplink->loop, uplink->credentials, ANSWER_LINE_MAX, &hooks, connection);
    return r < 0 ? UV_ENOMEM
                 : uv_tcp_connect(&connection->connecting, &transport->tcp, address, on_connected);
}

/* Tries the addresses that are left; pauses, for the last reason, when there is none. */
static void connect_next(struct node_uplink *uplink, const char *why)
{
    while (uplink->next_address) {
        const struct sockaddr *address = uplink->next_address->ai_addr;
        uplink->next_address = uplink->next_address->ai_next;
        drop_connection(uplink);
        int r = connect_to(uplink, address);
        if (r == 0)
            return;
        why = uv_strerror(r);
    }
    fail_uplink(uplink, why);
}

static void on_resolved(uv_getaddrinfo_t *request, int status, struct addrinfo *found)
{
    struct node_uplink *uplink = request->data;
    uv_freeaddrinfo(uplink->addresses);
    uplink->addresses = uplink->next_address = status < 0 ? NULL : found;
    if (!uplink->is_closing)
        connect_next(uplink, status < 0 ? uv_strerror(status) : "it has no address");
}

static void begin_resolving(struct node_uplink *uplink)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    uplink->state = UPLINK_RESOLVING;
    uv_timer_start(&uplink->timer, on_timer, PROOF_MAX_MS, 0);
    int r = uv_getaddrinfo(
        uplink->loop, &uplink->resolving, on_resolved, uplink->host, uplink->port, &hints);
    if (r < 0)
        fail_uplink(uplink, uv_strerror(r));
}

/* ---- turns ---- */

static void in_pool(uv_work_t *work)
{
    struct node_uplink *uplink = work->data;
    char *text = NULL;
    size_t size;
    if (uplink->turn_text)
        uplink->seal_answer = munge_seal_encode(uplink->seal, uplink->turn_text,
            uplink->turn_text_size, &uplink->seal_fault, &uplink->sealed);
    if (!uplink->credential)
        return;
    uplink->open_answer = munge_seal_decode(
        uplink->seal, uplink->credential, &uplink->open_fault, &text, &size);
    if (uplink->open_answer == 0)
        uplink->open_answer = node_answer_decode(text, size, &uplink->open_fault, &uplink->answer);
    free(text);
}

static int send_line(struct node_uplink *uplink, const char *line)
{
    return node_transport_send(&uplink->connection->transport, line);
}

static void begin_session(struct node_uplink *uplink, const char *key)
{
    struct report_session *session = &uplink->connection->session;
    if (report_session_take_key(session, key) < 0)
        log_warning("controller %s: its key is not valid: all reports are sealed like the first",
            uplink->controller);
}

static void accept_answer(struct node_uplink *uplink)
{
    const struct node_answer *answer = &uplink->answer;
    if (uplink->state != UPLINK_ACCEPTED)
        log_info("controller %s accepts the reports of node %s", uplink->controller, uplink->node);
    uplink->state = UPLINK_ACCEPTED;
    uplink->pause_ms = PAUSE_MIN_MS;
    *uplink->why = '\0';
    uv_timer_stop(&uplink->timer);
    if (*answer->key)
        begin_session(uplink, answer->key);
    uplink->connection->takes_changes |= answer->takes_changes;
    if (answer->wants_whole)
        node_report_fini(&uplink->connection->sent);
    if (uplink->on_answer)
        uplink->on_answer(uplink->context, answer);
}

static void take_answer(struct node_uplink *uplink)
{
    const struct node_answer *answer = &uplink->answer;
    char why[512];
    if (uplink->open_answer != 0) {
        snprintf(why, sizeof why, "its answer is not valid: %.400s", uplink->open_fault.text);
        fail_uplink(uplink, why);
    } else if (strcmp(answer->node, uplink->node) != 0) {
        fail_uplink(uplink, "its answer is for another node");
    } else if (*answer->refused) {
        snprintf(why, sizeof why, "it refuses the reports: %.300s", answer->refused);
        fail_uplink(uplink, why);
    } else {
        accept_answer(uplink);
    }
}

static void on_turn(uv_work_t *work, int status)
{
    struct node_uplink *uplink = work->data;
    bool is_same = uplink->connection && uplink->connection->number == uplink->turn_of;
    bool had_credential = uplink->credential;
    uplink->is_in_turn = false;
    if (is_same && uplink->sealed)
        send_line(uplink, uplink->sealed);
    if (is_same && uplink->seal_answer < 0)
        fail_uplink(uplink, uplink->seal_fault.text);
    else if (is_same && had_credential)
        take_answer(uplink);
    free(uplink->turn_text);
    free(uplink->sealed);
    free(uplink->credential);
    uplink->turn_text = uplink->sealed = uplink->credential = NULL;
    uplink->seal_answer = 0;
    if (is_same && uplink->connection && had_credential)
        resume_uplink(uplink);
    start_turn(uplink);
}

/* ---- sending ---- */

/* Sends without munged: within TLS, or signed by the connection's key. */
static bool is_quick(const struct node_uplink *uplink)
{
    return uplink->credentials || uplink->connection->session.has_key;
}

/* Writes the newest report: what has changed since the last one of the connection, where that will
 * do. */
static int write_newest(struct node_uplink *uplink, char **ret_text, size_t *ret_size)
{
    struct uplink_connection *connection = uplink->connection;
    bool may_be_changes = connection->takes_changes && is_quick(uplink) && *connection->sent.node &&
                          connection->n_changes < CHANGES_MAX;
    int r = may_be_changes
                ? node_changes_encode(&connection->sent, &uplink->newest, ret_text, ret_size)
                : CHANGES_UNFIT;
    connection->n_changes = r == CHANGES_UNFIT ? 0 : connection->n_changes + 1;
    return r == CHANGES_UNFIT ? node_report_encode(&uplink->newest, ret_text, ret_size) : r;
}

/* Returns the text of the newest report, after which the next one builds on it; or NULL. */
static char *take_newest(struct node_uplink *uplink, size_t *ret_size)
{
    char *text;
    if (write_newest(uplink, &text, ret_size) < 0) {
        log_warning("a report could not be made: out of memory");
        node_report_fini(&uplink->newest);
        return NULL;
    }
    node_report_fini(&uplink->connection->sent);
    uplink->connection->sent = uplink->newest;
    uplink->newest = (struct node_report){0};
    return text;
}

static void send_at_once(struct node_uplink *uplink)
{
    char *line = NULL;
    size_t size;
    char *text = take_newest(uplink, &size);
    if (text && uplink->credentials && send_line(uplink, text) < 0)
        fail_uplink(uplink, "out of memory"); /* TLS cannot go on without what was not sent */
    else if (text && !uplink->credentials &&
             report_session_seal(&uplink->connection->session, text, size, &line) == 0)
        send_line(uplink, line);
    free(line);
    free(text);
}

static void start_turn(struct node_uplink *uplink)
{
    struct uplink_connection *connection = uplink->connection;
    if (uplink->is_closing || uplink->state < UPLINK_UNPROVEN || !connection->transport.is_open)
        return;
    bool can_send = node_transport_unsent(&connection->transport) == 0;
    if (*uplink->newest.node && can_send && is_quick(uplink))
        send_at_once(uplink);
    if (uplink->credentials)
        return;
    if (uplink->is_in_turn)
        return;
    if (*uplink->newest.node && can_send)
        uplink->turn_text = take_newest(uplink, &uplink->turn_text_size);
    if (connection->line) {
        uplink->credential = strdup(connection->line);
        connection->line = NULL;
    }
    if (!uplink->turn_text && !uplink->credential)
        return;
    uplink->is_in_turn = true;
    uplink->turn_of = connection->number;
    uplink->work.data = uplink;
    uv_queue_work(uplink->loop, &uplink->work, in_pool, on_turn);
}

int node_uplink_send(struct node_uplink *uplink, const struct node_report *report)
{
    node_report_fini(&uplink->newest);
    int r = node_report_copy(report, &uplink->newest);
    if (r < 0) {
        node_report_fini(&uplink->newest);
        return r;
    }
    start_turn(uplink);
    return 0;
}

bool node_uplink_is_accepted(const struct node_uplink *uplink)
{
    return uplink->state == UPLINK_ACCEPTED;
}

/* ---- its life ---- */

/* "host:port", with brackets around a numeric address of IPv6. Returns 0 or -EINVAL. */
static int split_address(struct node_uplink *uplink, const char *address)
{
    const char *colon = strrchr(address, ':');
    size_t size = colon ? (size_t)(colon - address) : 0;
    if (size > 2 && address[0] == '[' && address[size - 1] == ']') {
        address++;
        size -= 2;
    }
    if (size == 0 || size >= sizeof uplink->host || strlen(colon + 1) >= sizeof uplink->port ||
        strspn(colon + 1, "0123456789") != strlen(colon + 1) || !colon[1])
        return -EINVAL;
    memcpy(uplink->host, address, size);
    snprintf(uplink->port, sizeof uplink->port, "%s", colon + 1);
    return 0;
}

static int prepare_proof(
    struct node_uplink *uplink, const struct node_uplink_options *options, struct fault *fault)
{
    uid_t user = options->controller_uid;
    if (options->key)
        return tls_credentials_create(options->key, options->node, fault, &uplink->credentials);
    uplink->seal = munge_seal_create(options->munge_socket, user, user);
    return uplink->seal ? 0 : fault_set(fault, ENOMEM, "out of memory");
}

int node_uplink_create(
    const struct node_uplink_options *options, struct fault *fault, struct node_uplink **ret_uplink)
{
    struct node_uplink *uplink = calloc(1, sizeof *uplink);
    *ret_uplink = NULL;
    if (!uplink)
        return fault_set(fault, ENOMEM, "out of memory");
    int r = 0;
    if (split_address(uplink, options->controller) < 0)
        r = fault_set(fault, EINVAL, "%s: not an address with a port, such as login1:7490",
            options->controller);
    else if (!node_name_is_valid(options->node))
        r = fault_set(fault, EINVAL, "%s: not the name of a node", options->node);
    else
        r = prepare_proof(uplink, options, fault);
    if (r < 0) {
        free(uplink);
        return r;
    }
    uplink->loop = options->loop;
    uplink->context = options->context;
    uplink->on_answer = options->on_answer;
    snprintf(uplink->controller, sizeof uplink->controller, "%s", options->controller);
    snprintf(uplink->node, sizeof uplink->node, "%s", options->node);
    uplink->pause_ms = PAUSE_MIN_MS;
    uplink->resolving.data = uplink;
    uv_timer_init(uplink->loop, &uplink->timer);
    uplink->timer.data = uplink;
    begin_resolving(uplink);
    *ret_uplink = uplink;
    return 0;
}

void node_uplink_close(struct node_uplink *uplink)
{
    if (!uplink || uplink->is_closing)
        return;
    uplink->is_closing = true;
    drop_connection(uplink);
    uv_cancel((uv_req_t *)&uplink->resolving);
    uv_close((uv_handle_t *)&uplink->timer, NULL);
}

void node_uplink_destroy(struct node_uplink *uplink)
{
    if (!uplink)
        return;
    munge_seal_destroy(uplink->seal);
    tls_credentials_destroy(uplink->credentials);
    uv_freeaddrinfo(uplink->addresses);
    node_report_fini(&uplink->newest);
    free(uplink->turn_text);
    free(uplink->sealed);
    free(uplink->credential);
    free(uplink);
}
