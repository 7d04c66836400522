/* SPDX-License-Identifier: Apache-2.0 */
/* Lines over a connection, in the clear and within TLS, and what peers can do to it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "nodelink/node_transport.h"

enum { LINE_MAX_SIZE = 64 * 1024 };

static const uint8_t key[SHA256_SIZE] = "of all nodes", other_key[SHA256_SIZE] = "another";

/* One end, and what it has seen. */
struct end {
    struct node_transport transport;
    struct tls_credentials *credentials;
    char lines[4 * LINE_MAX_SIZE]; /* with a line end each */
    int n_lines, n_open, n_end, n_closed;
    enum transport_end how;
    char why[512];
    bool closes_at_open, closes_at_line, pauses;
};

struct fixture {
    uv_loop_t loop;
    uv_timer_t limit;
    struct end agent, controller;
    int fd; /* of a peer that is no transport; -1: none */
};

/* ---- hooks ---- */

static void on_open(struct node_transport *transport)
{
    struct end *end = transport->owner;
    end->n_open++;
    if (end->closes_at_open)
        node_transport_close(transport);
}

static void on_line(struct node_transport *transport, char *line)
{
    struct end *end = transport->owner;
    assert_int_equal(end->n_open, 1);
    for (; line && end->n_closed == 0; line = node_transport_next_line(transport)) {
        assert_true(strlen(end->lines) + strlen(line) + 2 < sizeof end->lines);
        strcat(end->lines, line);
        strcat(end->lines, "\n");
        end->n_lines++;
        if (end->pauses) {
            node_transport_pause(transport);
            return;
        }
    }
    if (end->closes_at_line)
        node_transport_close(transport);
}

static void on_end(struct node_transport *transport, enum transport_end how, const char *why)
{
    struct end *end = transport->owner;
    assert_int_equal(end->n_end++, 0);
    end->how = how;
    snprintf(end->why, sizeof end->why, "%s", why);
    node_transport_close(transport);
}

static void on_closed(struct node_transport *transport)
{
    struct end *end = transport->owner;
    end->n_closed++;
    node_transport_fini(transport);
}

/* ---- the fixture ---- */

static void on_limit(uv_timer_t *timer)
{
    fail_msg("nothing happened for a minute");
}

#define RUN_UNTIL(f, condition)                                                                    \
    do {                                                                                           \
        uv_timer_start(&(f)->limit, on_limit, 60 * 1000, 0);                                       \
        while (!(condition))                                                                       \
            uv_run(&(f)->loop, UV_RUN_ONCE);                                                       \
        uv_timer_stop(&(f)->limit);                                                                \
    } while (0)

/* Two ends of a connection on this machine. */
static void connect_pair(int fds[2])
{
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof here;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&here, size), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&here, &size), 0);
    fds[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fds[0], (struct sockaddr *)&here, size), 0);
    fds[1] = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    close(listener);
}

/* With a NULL key: in the clear. With a NULL node: the controller. */
static void init_end(
    struct fixture *f, struct end *end, int fd, const uint8_t *of_key, const char *node)
{
    static const struct node_transport_hooks hooks = {on_open, on_line, on_end, on_closed};
    struct fault fault;
    if (of_key)
        assert_int_equal(tls_credentials_create(of_key, node, &fault, &end->credentials), 0);
    assert_int_equal(node_transport_init(
                         &end->transport, &f->loop, end->credentials, LINE_MAX_SIZE, &hooks, end),
        0);
    assert_int_equal(uv_tcp_open(&end->transport.tcp, fd), 0);
}

static void start_pair(struct fixture *f, const uint8_t *agents, const uint8_t *controllers)
{
    int fds[2];
    connect_pair(fds);
    init_end(f, &f->agent, fds[0], agents, "n1");
    init_end(f, &f->controller, fds[1], controllers, NULL);
    node_transport_start(&f->controller.transport);
    node_transport_start(&f->agent.transport);
}

/* The controller, and a peer that is only a socket. */
static void start_controller(struct fixture *f, const uint8_t *of_key)
{
    int fds[2];
    connect_pair(fds);
    f->fd = fds[0];
    init_end(f, &f->controller, fds[1], of_key, NULL);
    node_transport_start(&f->controller.transport);
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    uv_loop_init(&f->loop);
    uv_timer_init(&f->loop, &f->limit);
    f->fd = -1;
    *state = f;
    return 0;
}

static void stop_end(struct end *end)
{
    if (end->transport.hooks)
        node_transport_close(&end->transport);
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    stop_end(&f->agent);
    stop_end(&f->controller);
    uv_close((uv_handle_t *)&f->limit, NULL);
    uv_run(&f->loop, UV_RUN_DEFAULT);
    tls_credentials_destroy(f->agent.credentials);
    tls_credentials_destroy(f->controller.credentials);
    if (f->fd >= 0)
        close(f->fd);
    int r = uv_loop_close(&f->loop);
    free(f);
    return r;
}

static void send_bytes(struct fixture *f, const char *bytes, size_t n)
{
    assert_int_equal(send(f->fd, bytes, n, MSG_NOSIGNAL), n);
}

/* ---- both ways ---- */

static const uint8_t *const keys[] = {NULL, key};
enum { CLEAR, TLS, WAYS };

#define FOR_BOTH_WAYS(state, f)                                                                    \
    struct fixture *f = *(state);                                                                  \
    for (int way = CLEAR; way < WAYS; way++, tear_down(state), set_up(state), (f) = *(state))

static void test_lines(void **state)
{
    FOR_BOTH_WAYS(state, f)
    {
        start_pair(f, keys[way], keys[way]);
        RUN_UNTIL(f, f->agent.n_open == 1 && f->controller.n_open == 1);
        assert_int_equal(node_transport_is_proven(&f->controller.transport), way == TLS);
        node_transport_send(&f->agent.transport, "one");
        node_transport_send(&f->agent.transport, "");
        node_transport_send(&f->agent.transport, "three");
        node_transport_send(&f->controller.transport, "answer");
        RUN_UNTIL(f, f->controller.n_lines == 3 && f->agent.n_lines == 1);
        assert_string_equal(f->controller.lines, "one\n\nthree\n");
        assert_string_equal(f->agent.lines, "answer\n");
        node_transport_close(&f->agent.transport);
        RUN_UNTIL(f, f->controller.n_closed == 1);
        assert_int_equal(f->controller.how, TRANSPORT_GONE);
    }
}

/* A line of `size` bytes, on the heap. */
static char *long_line(size_t size)
{
    char *line = malloc(size + 1);
    memset(line, 'x', size);
    line[size] = '\0';
    return line;
}

static void test_long_lines(void **state)
{
    FOR_BOTH_WAYS(state, f)
    {
        char *longest = long_line(LINE_MAX_SIZE - 1), *too_long = long_line(LINE_MAX_SIZE);
        start_pair(f, keys[way], keys[way]);
        RUN_UNTIL(f, f->agent.n_open == 1);
        node_transport_send(&f->agent.transport, longest);
        node_transport_send(&f->agent.transport, "next");
        RUN_UNTIL(f, f->controller.n_lines == 2);
        node_transport_send(&f->agent.transport, too_long);
        RUN_UNTIL(f, f->controller.n_closed == 1);
        assert_int_equal(f->controller.how, TRANSPORT_TOO_LONG);
        assert_int_equal(f->controller.n_lines, 2);
        free(longest);
        free(too_long);
    }
}

/* Hooks may close the connection; then no other one is called. */
static void test_closing_within_hooks(void **state)
{
    FOR_BOTH_WAYS(state, f)
    {
        f->controller.closes_at_line = true;
        start_pair(f, keys[way], keys[way]);
        RUN_UNTIL(f, f->agent.n_open == 1);
        node_transport_send(&f->agent.transport, "one");
        node_transport_send(&f->agent.transport, "two");
        RUN_UNTIL(f, f->controller.n_closed == 1 && f->agent.n_closed == 1);
        assert_int_equal(f->controller.n_end, 0);
    }
    FOR_BOTH_WAYS(state, g)
    {
        g->agent.closes_at_open = true;
        start_pair(g, keys[way], keys[way]);
        RUN_UNTIL(g, g->agent.n_closed == 1 && g->controller.n_closed == 1);
        assert_int_equal(g->agent.n_end, 0);
    }
}

/* One that has paused gets no further line until it goes on, and within TLS none at all. */
static void test_pauses(void **state)
{
    FOR_BOTH_WAYS(state, f)
    {
        f->controller.pauses = true;
        start_pair(f, keys[way], keys[way]);
        RUN_UNTIL(f, f->agent.n_open == 1);
        node_transport_send(&f->agent.transport, "one");
        node_transport_send(&f->agent.transport, "two"); /* at once */
        RUN_UNTIL(f, f->controller.n_lines > 0);
        for (int i = 0; i < 20; i++)
            uv_run(&f->loop, UV_RUN_NOWAIT);
        assert_int_equal(f->controller.n_lines, 1);
        if (way == TLS)
            continue;
        f->controller.pauses = false;
        if (!node_transport_next_line(&f->controller.transport)) {
            node_transport_resume(&f->controller.transport);
            RUN_UNTIL(f, f->controller.n_lines == 2);
        }
    }
}

/* The peer reads nothing: what it was sent is stored, and known. */
static void test_unsent(void **state)
{
    FOR_BOTH_WAYS(state, f)
    {
        char *line = long_line(LINE_MAX_SIZE - 1);
        start_pair(f, keys[way], keys[way]);
        RUN_UNTIL(f, f->agent.n_open == 1 && f->controller.n_open == 1);
        node_transport_pause(&f->agent.transport);
        for (int i = 0; node_transport_unsent(&f->controller.transport) < 1000000; i++) {
            assert_true(i < 1000);
            node_transport_send(&f->controller.transport, line);
        }
        free(line);
    }
}

/* ---- peers without the key ---- */

static void test_another_key(void **state)
{
    struct fixture *f = *state;
    start_pair(f, other_key, key);
    RUN_UNTIL(f, f->controller.n_closed == 1 && f->agent.n_closed == 1);
    assert_int_equal(f->controller.how, TRANSPORT_REFUSED);
    assert_int_equal(f->agent.how, TRANSPORT_REFUSED);
    assert_non_null(strstr(f->controller.why, "node n1 has another key"));
    assert_non_null(strstr(f->agent.why, "another key than this node"));
    assert_int_equal(f->controller.n_open + f->agent.n_open, 0);
}

/* One end has TLS, the other has not: both say so. */
static void test_only_one_has_tls(void **state)
{
    struct fixture *f = *state;
    start_pair(f, NULL, key);
    node_transport_send(&f->agent.transport, "MUNGE:AwQDAAA:");
    RUN_UNTIL(f, f->controller.n_closed == 1 && f->agent.n_closed == 1);
    assert_int_equal(f->controller.how, TRANSPORT_REFUSED);
    assert_non_null(strstr(f->controller.why, "is node-auth tls on both machines?"));
    assert_non_null(strstr(f->agent.why, "it speaks TLS: is node-auth munge on both machines?"));
    tear_down(state);
    set_up(state);
    f = *state;
    start_pair(f, key, NULL);
    RUN_UNTIL(f, f->controller.n_closed == 1 && f->agent.n_closed == 1);
    assert_int_equal(f->controller.how, TRANSPORT_REFUSED);
    assert_non_null(strstr(f->controller.why, "it speaks TLS"));
    assert_int_equal(f->controller.n_lines, 0);
    assert_int_equal(f->agent.how, TRANSPORT_GONE);
    assert_non_null(strstr(f->agent.why, "is node-auth tls there, too?"));
}

static void test_garbage(void **state)
{
    struct fixture *f = *state;
    start_controller(f, key);
    send_bytes(f, "\x16\x03\x01\x02\x00garbage that is longer than a record's header", 49);
    for (int i = 0; i < 20; i++)
        uv_run(&f->loop, UV_RUN_NOWAIT);
    assert_int_equal(f->controller.n_end, 0); /* it may go on */
    char *line = long_line(512);
    send_bytes(f, line, 512);
    free(line);
    RUN_UNTIL(f, f->controller.n_closed == 1);
    assert_int_equal(f->controller.how, TRANSPORT_REFUSED);
}

/* A first message that is cut off, by the peer's end. */
static void test_gone_during_the_handshake(void **state)
{
    struct fixture *f = *state;
    start_controller(f, key);
    send_bytes(f, "\x16\x03\x01\x00\xe2\x01", 6);
    for (int i = 0; i < 20; i++)
        uv_run(&f->loop, UV_RUN_NOWAIT);
    close(f->fd);
    f->fd = -1;
    RUN_UNTIL(f, f->controller.n_closed == 1);
    assert_int_equal(f->controller.how, TRANSPORT_GONE);
}

/* A record of TLS that was altered between the two machines. */
static void test_altered(void **state)
{
    struct fixture *f = *state;
    start_pair(f, key, key);
    RUN_UNTIL(f, f->agent.n_open == 1 && f->controller.n_open == 1);
    uv_os_fd_t fd;
    uv_fileno((uv_handle_t *)&f->agent.transport.tcp, &fd);
    assert_int_equal(send(fd, "\x17\x03\x03\x00\x20", 5, MSG_NOSIGNAL), 5);
    node_transport_send(&f->agent.transport, "a report of more than that");
    RUN_UNTIL(f, f->controller.n_closed == 1);
    assert_int_equal(f->controller.how, TRANSPORT_REFUSED);
    assert_non_null(strstr(f->controller.why, "altered on its way"));
    assert_int_equal(f->controller.n_lines, 0);
}

int main(void)
{
#define TRANSPORT_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TRANSPORT_TEST(test_lines),
        TRANSPORT_TEST(test_long_lines),
        TRANSPORT_TEST(test_closing_within_hooks),
        TRANSPORT_TEST(test_pauses),
        TRANSPORT_TEST(test_unsent),
        TRANSPORT_TEST(test_another_key),
        TRANSPORT_TEST(test_only_one_has_tls),
        TRANSPORT_TEST(test_garbage),
        TRANSPORT_TEST(test_gone_during_the_handshake),
        TRANSPORT_TEST(test_altered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
