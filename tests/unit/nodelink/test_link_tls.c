/* SPDX-License-Identifier: Apache-2.0 */
/* The link within TLS: what the hub makes of agents with the key and without it. test_link.c has
 * the tests of both ends that are the same for munge and TLS. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "link_fixture.h"
#include "nodelink/munge_seal.h"
#include "nodelink/tls_channel.h"

static const uint8_t key[SHA256_SIZE] = "of all nodes", other_key[SHA256_SIZE] = "another";

static int set_up(void **state)
{
    *state = link_create(NULL, key);
    return 0;
}

static int tear_down(void **state)
{
    return link_destroy(*state);
}

/* ---- an agent that is only a socket with TLS ---- */

struct client {
    struct tls_credentials *credentials;
    struct tls_channel *tls;
    int fd;
    char text[8192]; /* the answers that came, a line each */
    size_t n_text;
    bool is_ended;
    struct fault fault;
};

static void send_output(struct client *client)
{
    size_t n;
    char *output = tls_channel_take_output(client->tls, &n);
    if (output)
        assert_int_equal(send(client->fd, output, n, MSG_NOSIGNAL), n);
    free(output);
}

static void take_input(struct client *client)
{
    char bytes[4096];
    ssize_t n = recv(client->fd, bytes, sizeof bytes, MSG_DONTWAIT), got;
    client->is_ended = client->is_ended || n == 0 || (n < 0 && errno != EAGAIN);
    if (n <= 0)
        return;
    tls_channel_take(client->tls, bytes, (size_t)n);
    while ((got = tls_channel_read(client->tls, client->text + client->n_text,
                sizeof client->text - client->n_text, &client->fault)) > 0)
        client->n_text += (size_t)got;
    send_output(client);
    client->is_ended = client->is_ended || got < 0;
}

static void begin_client_at(struct client *client, int fd, const uint8_t *of_key, const char *node)
{
    *client = (struct client){.fd = fd};
    assert_int_equal(tls_credentials_create(of_key, node, &client->fault, &client->credentials), 0);
    client->tls = tls_channel_create(client->credentials);
    assert_int_equal(tls_channel_read(client->tls, &(char){0}, 1, &client->fault), 0);
    send_output(client);
}

/* Runs the loop and the client until the condition holds. */
#define RUN_CLIENT_UNTIL(f, client, condition)                                                     \
    do {                                                                                           \
        uv_timer_start(&(f)->limit, link_on_limit, 60 * 1000, 0);                                  \
        do {                                                                                       \
            uv_run(&(f)->loop, UV_RUN_NOWAIT);                                                     \
            take_input(client);                                                                    \
        } while (!(condition));                                                                    \
        uv_timer_stop(&(f)->limit);                                                                \
    } while (0)

static void open_client(struct fixture *f, struct client *client, const char *node)
{
    begin_client_at(client, link_connect(f), key, node);
    RUN_CLIENT_UNTIL(f, client, tls_channel_is_open(client->tls));
}

static void end_client(struct client *client)
{
    tls_channel_destroy(client->tls);
    tls_credentials_destroy(client->credentials);
    close(client->fd);
}

static void send_text(struct client *client, const char *text)
{
    assert_int_equal(tls_channel_write(client->tls, text, strlen(text)), 0);
    assert_int_equal(tls_channel_write(client->tls, "\n", 1), 0);
    send_output(client);
}

static void send_report(struct client *client, const char *node, int64_t sequence)
{
    char *text = link_report_text(node, sequence);
    send_text(client, text);
    free(text);
}

/* The last answer that came. */
static struct node_answer last_answer(const struct client *client)
{
    struct node_answer answer;
    struct fault fault;
    size_t end = client->n_text, begin = end - 1;
    assert_true(end > 0 && client->text[end - 1] == '\n');
    while (begin > 0 && client->text[begin - 1] != '\n')
        begin--;
    assert_int_equal(node_answer_decode(client->text + begin, end - 1 - begin, &fault, &answer), 0);
    return answer;
}

/* ---- agents with the key ---- */

static void test_reports(void **state)
{
    struct fixture *f = *state;
    struct client client;
    open_client(f, &client, "n1");
    send_report(&client, "n1", 1);
    RUN_CLIENT_UNTIL(f, &client, client.n_text > 0);
    assert_int_equal(last_answer(&client).sequence, 1);
    assert_string_equal(last_answer(&client).key, ""); /* none is needed */
    send_report(&client, "n1", 2);
    send_report(&client, "n1", 3);
    RUN_CLIENT_UNTIL(f, &client, f->reports == 3);
    assert_int_equal(f->last_sequence, 3);
    node_hub_pin(f->hub, "n1", &(struct node_pin){.job = 12, .is_mps = true});
    client.n_text = 0;
    RUN_CLIENT_UNTIL(f, &client, client.n_text > 0);
    assert_int_equal(last_answer(&client).pins[0].job, 12);
    assert_int_equal(last_answer(&client).sequence, 3);
    end_client(&client);
    RUN_UNTIL(f, f->gone == 1);
    assert_int_equal(node_hub_counts(f->hub).refused, 0);
}

static void send_changes(struct client *client, int64_t since, int64_t sequence)
{
    char text[256];
    snprintf(text, sizeof text, "{\"v\":1,\"since\":%lld,\"sequence\":%lld,\"time_us\":%lld}",
        (long long)since, (long long)sequence, (long long)clock_wall_us());
    send_text(client, text);
}

/* An agent that sends changes of anything gets no further than its own connection. */
static void test_changes(void **state)
{
    struct fixture *f = *state;
    struct client client;
    open_client(f, &client, "n1");
    send_report(&client, "n1", 5);
    send_changes(&client, 5, 6);
    RUN_CLIENT_UNTIL(f, &client, f->reports == 2 && client.n_text > 0);
    assert_int_equal(f->last_sequence, 6);
    assert_string_equal(f->last_report.boot, "b");
    assert_true(last_answer(&client).takes_changes && !last_answer(&client).wants_whole);
    client.n_text = 0;
    send_changes(&client, 5, 7); /* of an older report */
    send_changes(&client, 7, 8); /* of the one that was refused */
    RUN_CLIENT_UNTIL(f, &client, node_hub_counts(f->hub).refused == 2 && client.n_text > 0);
    assert_int_equal(f->reports, 2);
    assert_true(last_answer(&client).wants_whole);
    assert_ptr_equal(strchr(client.text, '\n'), client.text + client.n_text - 1); /* once */
    send_report(&client, "n1", 9);
    send_changes(&client, 9, 10);
    RUN_CLIENT_UNTIL(f, &client, f->reports == 4);
    client.n_text = 0;
    send_changes(&client, 10, 10); /* repeated */
    RUN_CLIENT_UNTIL(f, &client, client.is_ended);
    assert_non_null(strstr(last_answer(&client).refused, "second agent"));
    end_client(&client);
    open_client(f, &client, "n1");
    send_changes(&client, 10, 11); /* of another connection */
    RUN_CLIENT_UNTIL(f, &client, client.is_ended);
    assert_non_null(strstr(last_answer(&client).refused, "without a report before"));
    assert_int_equal(f->reports, 4);
    end_client(&client);
}

static void expect_refused(struct fixture *f, struct client *client, const char *why)
{
    int reports = f->reports;
    client->n_text = 0;
    RUN_CLIENT_UNTIL(f, client, client->is_ended);
    if (!strstr(last_answer(client).refused, why))
        fail_msg("'%s' instead of '%s'", last_answer(client).refused, why);
    assert_int_equal(f->reports, reports);
    end_client(client);
}

/* A peer with the key gets the reason. */
static void test_refused_reports(void **state)
{
    struct fixture *f = *state;
    struct client client;
    static const char *const lines[][2] = {
        {"no report", "not JSON"}, {"{}", "install the same colloc"}, {"", "not JSON"}};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        open_client(f, &client, "n1");
        send_text(&client, lines[i][0]);
        expect_refused(f, &client, lines[i][1]);
    }
    open_client(f, &client, "n9");
    send_report(&client, "n9", 1);
    expect_refused(f, &client, "Slurm has no node n9");
    open_client(f, &client, "n2"); /* the name of the handshake is another one */
    send_report(&client, "n1", 1);
    expect_refused(f, &client, "another node than n1");
    assert_int_equal(f->gone, 0);
}

/* Time counts as with munge: what was held back on its way, and what is no newer. */
static void test_old_reports(void **state)
{
    struct fixture *f = *state;
    struct client client;
    struct node_report late = {.node = "n1",
        .boot = "b",
        .sequence = 6,
        .time_us = clock_wall_us() - (SEAL_TTL_S + 1) * SECOND_US};
    char *text;
    size_t size;
    open_client(f, &client, "n1");
    send_report(&client, "n1", 5);
    RUN_CLIENT_UNTIL(f, &client, f->reports == 1);
    send_report(&client, "n1", 5);
    expect_refused(f, &client, "second agent");
    assert_int_equal(node_report_encode(&late, &text, &size), 0);
    open_client(f, &client, "n1");
    send_text(&client, text);
    expect_refused(f, &client, "over a minute off");
    free(text);
}

/* A new connection of a node replaces the one before, whose end is then no news. */
static void test_second_connection(void **state)
{
    struct fixture *f = *state;
    struct client first, second;
    open_client(f, &first, "n1");
    send_report(&first, "n1", 1);
    RUN_CLIENT_UNTIL(f, &first, f->reports == 1);
    open_client(f, &second, "n1");
    send_report(&second, "n1", 2);
    RUN_CLIENT_UNTIL(f, &second, f->reports == 2);
    RUN_CLIENT_UNTIL(f, &first, first.is_ended);
    assert_int_equal(f->gone, 0);
    assert_int_equal(node_hub_counts(f->hub).nodes, 1);
    end_client(&second);
    RUN_UNTIL(f, f->gone == 1);
    end_client(&first);
}

static void test_too_long(void **state)
{
    struct fixture *f = *state;
    struct client client;
    char *text = malloc(65537);
    memset(text, 'x', 65536);
    text[65536] = '\0';
    open_client(f, &client, "n1");
    for (int i = 0; !client.is_ended; i++) {
        size_t n;
        assert_true(i < 100);
        tls_channel_write(client.tls, text, 65536);
        char *output = tls_channel_take_output(client.tls, &n);
        for (size_t sent = 0; sent < n && !client.is_ended;) {
            ssize_t now = send(client.fd, output + sent, n - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
            client.is_ended = now < 0 && errno != EAGAIN;
            sent += now > 0 ? (size_t)now : 0;
            uv_run(&f->loop, UV_RUN_NOWAIT);
        }
        free(output);
    }
    assert_int_equal(node_hub_counts(f->hub).refused, 1);
    end_client(&client);
    free(text);
}

/* ---- peers without it ---- */

static struct {
    int of_keys; /* warnings of another key */
    char last[1024];
} said;

void __wrap_log_write(enum log_level level, const char *format, ...);

void __wrap_log_write(enum log_level level, const char *format, ...)
{
    va_list arguments;
    char text[1024];
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (!strstr(text, "has another key"))
        return;
    assert_int_equal(level, LOG_LEVEL_WARNING);
    said.of_keys++;
    snprintf(said.last, sizeof said.last, "%s", text);
}

/* The hub's clock, which may be ahead. */
static int64_t ahead_us;
int64_t __real_clock_monotonic_us(void);
int64_t __wrap_clock_monotonic_us(void);

int64_t __wrap_clock_monotonic_us(void)
{
    return __real_clock_monotonic_us() + ahead_us;
}

static void try_another_key(struct fixture *f, const char *from, const char *node)
{
    struct client client;
    uint64_t refused = node_hub_counts(f->hub).refused;
    begin_client_at(&client, link_connect_from(f, from), other_key, node);
    RUN_CLIENT_UNTIL(f, &client, client.is_ended);
    assert_false(tls_channel_is_open(client.tls));
    assert_non_null(strstr(client.fault.text, "it has another key than this node"));
    assert_int_equal(node_hub_counts(f->hub).refused, refused + 1);
    end_client(&client);
    ahead_us += 60 * SECOND_US; /* its next try */
}

/* It is said once for each address, and again after an agent there was accepted. */
static void test_another_key(void **state)
{
    struct fixture *f = *state;
    struct client client;
    memset(&said, 0, sizeof said);
    for (int i = 0; i < 3; i++)
        try_another_key(f, "127.0.0.1", "n1");
    assert_int_equal(said.of_keys, 1);
    assert_non_null(strstr(said.last, "a report from 127.0.0.1:"));
    assert_non_null(strstr(said.last,
        "refused: node n1 has another key: copy the file of node-key-file from this machine to "
        "the node, and restart its agent"));
    try_another_key(f, "127.0.0.2", "n2");
    assert_int_equal(said.of_keys, 2);
    try_another_key(f, "127.0.0.2", "n2");
    try_another_key(f, "127.0.0.1", "n1");
    assert_int_equal(said.of_keys, 2);
    assert_int_equal(f->reports, 0);
    open_client(f, &client, "n1");
    send_report(&client, "n1", 1);
    RUN_CLIENT_UNTIL(f, &client, f->reports == 1);
    end_client(&client);
    try_another_key(f, "127.0.0.1", "n1");
    assert_int_equal(said.of_keys, 3);
    ahead_us = 0;
}

/* The uplink says so, too, and tries again. */
static void test_uplink_with_another_key(void **state)
{
    struct fixture *f = *state;
    struct node_report report = {
        .node = "n1", .boot = "b", .sequence = 1, .time_us = clock_wall_us()};
    f->agent_key = other_key;
    link_create_uplink(f);
    node_uplink_send(f->uplink, &report);
    RUN_UNTIL(f, node_hub_counts(f->hub).refused == 2);
    assert_int_equal(f->reports, 0);
    assert_int_equal(f->answers, 0);
    assert_false(node_uplink_is_accepted(f->uplink));
}

/* An uplink does not believe a controller with another key. */
static void test_another_controller(void **state)
{
    struct fixture *f = *state;
    struct node_report report = {
        .node = "n1", .boot = "b", .sequence = 1, .time_us = clock_wall_us()};
    link_create_uplink(f);
    node_uplink_send(f->uplink, &report);
    RUN_UNTIL(f, f->reports == 1 && node_uplink_is_accepted(f->uplink));
    link_end_hub(f);
    RUN_UNTIL(f, !node_uplink_is_accepted(f->uplink));
    uv_run(&f->loop, UV_RUN_NOWAIT);
    node_hub_destroy(f->hub);
    f->hub_key = other_key;
    link_listen(f, f->address);
    report.sequence = 2;
    node_uplink_send(f->uplink, &report);
    RUN_UNTIL(f, node_hub_counts(f->hub).refused == 1);
    assert_int_equal(f->reports, 1);
    assert_false(node_uplink_is_accepted(f->uplink));
}

static void test_not_tls(void **state)
{
    struct fixture *f = *state;
    static const char *const lines[] = {"GET / HTTP/1.1", "MUNGE:AwQDAAA:", "HMAC:00:1:{}",
        "{\"v\": 1, \"node\": \"n1\", \"boot\": \"b\", \"sequence\": 1}"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        int fd = link_connect(f);
        link_send_line(fd, lines[i]);
        char first = *link_read_to_end(f, fd);
        assert_true(first == '\0' || first == 0x15); /* an alert of TLS, if anything */
        assert_int_equal(node_hub_counts(f->hub).refused, i + 1);
    }
    assert_int_equal(f->reports, 0);
}

/* A first message that never ends: it counts as idle, and pushes out no other. */
static void test_flood_of_hellos(void **state)
{
    struct fixture *f = *state;
    struct client agent;
    int fds[FLOOD];
    open_client(f, &agent, "n1"); /* has not reported yet */
    for (int i = 0; i < FLOOD; i++) {
        fds[i] = link_connect(f);
        if (send(fds[i], "\x16\x03\x01\x00\xe2\x01", 6, MSG_NOSIGNAL) != 6)
            fail();
        uv_run(&f->loop, UV_RUN_NOWAIT);
    }
    RUN_UNTIL(f, node_hub_counts(f->hub).connections <= HUB_UNPROVEN_MAX + 1);
    send_report(&agent, "n1", 1);
    RUN_CLIENT_UNTIL(f, &agent, f->reports == 1);
    link_end_flood(fds);
    end_client(&agent);
}

/* One that begins and says no more is closed by the sweep of those without a report. */
static void test_slow_peer(void **state)
{
    struct fixture *f = *state;
    int fd = link_connect(f);
    assert_int_equal(send(fd, "\x16\x03", 2, MSG_NOSIGNAL), 2);
    RUN_UNTIL(f, node_hub_counts(f->hub).connections == 1);
    assert_string_equal(link_read_to_end(f, fd), "");
    assert_int_equal(node_hub_counts(f->hub).connections, 0);
}

int main(void)
{
#define LINK_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        LINK_TEST(test_reports),
        LINK_TEST(test_changes),
        LINK_TEST(test_refused_reports),
        LINK_TEST(test_old_reports),
        LINK_TEST(test_second_connection),
        LINK_TEST(test_too_long),
        LINK_TEST(test_another_key),
        LINK_TEST(test_uplink_with_another_key),
        LINK_TEST(test_another_controller),
        LINK_TEST(test_not_tls),
        LINK_TEST(test_flood_of_hellos),
        LINK_TEST(test_slow_peer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
