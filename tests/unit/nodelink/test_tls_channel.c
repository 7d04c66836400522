/* SPDX-License-Identifier: Apache-2.0 */
/* TLS of the link over memory: both ends, peers without the key, and GnuTLS used in other ways. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <gnutls/gnutls.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nodelink/tls_channel.h"

static const uint8_t key[SHA256_SIZE] = "of all nodes", other_key[SHA256_SIZE] = "another";

/* One end, and the bytes that it has sent to the other one. */
struct end {
    struct tls_credentials *credentials;
    struct tls_channel *channel;
    char *sent;
    size_t n_sent;
    char *text; /* that it has read */
    size_t n_text;
    int result; /* of the last read that was not text */
    struct fault fault;
};

struct pair {
    struct end agent, controller;
};

static void start_end(struct end *end, const uint8_t *of_key, const char *node)
{
    struct fault fault = {0};
    if (tls_credentials_create(of_key, node, &fault, &end->credentials) < 0)
        fail_msg("%s", fault.text);
    end->channel = tls_channel_create(end->credentials);
    assert_non_null(end->channel);
}

static void stop_end(struct end *end)
{
    tls_channel_destroy(end->channel);
    tls_credentials_destroy(end->credentials);
    free(end->sent);
    free(end->text);
}

static int set_up(void **state)
{
    struct pair *pair = calloc(1, sizeof *pair);
    start_end(&pair->agent, key, "n1");
    start_end(&pair->controller, key, NULL);
    *state = pair;
    return 0;
}

static int tear_down(void **state)
{
    struct pair *pair = *state;
    stop_end(&pair->agent);
    stop_end(&pair->controller);
    free(pair);
    return 0;
}

static void append(char **text, size_t *size, const void *bytes, size_t n)
{
    *text = realloc(*text, *size + n + 1);
    memcpy(*text + *size, bytes, n);
    *size += n;
    (*text)[*size] = '\0';
}

static void note_output(struct end *end)
{
    size_t n;
    void *output = tls_channel_take_output(end->channel, &n);
    if (output)
        append(&end->sent, &end->n_sent, output, n);
    free(output);
}

/* Gives an end bytes as from its socket. */
static void give(struct end *end, const void *bytes, size_t n)
{
    char room[777]; /* smaller than a record */
    ssize_t got;
    /* On the heap, so that a sanitizer sees what is read beyond. */
    char *copy = malloc(n + !n);
    memcpy(copy, bytes, n);
    tls_channel_take(end->channel, copy, n);
    while ((got = tls_channel_read(end->channel, room, sizeof room, &end->fault)) > 0)
        append(&end->text, &end->n_text, room, (size_t)got);
    end->result = (int)got;
    note_output(end);
    free(copy);
}

/* Passes on what one end has sent, in pieces of a size. Returns how much it was. */
static size_t pass(struct end *from, struct end *to, size_t piece)
{
    char *bytes = from->sent;
    size_t size = from->n_sent;
    from->sent = NULL;
    from->n_sent = 0;
    for (size_t at = 0; at < size && to->result == 0; at += piece)
        give(to, bytes + at, size - at < piece ? size - at : piece);
    free(bytes);
    return size;
}

static void exchange(struct pair *pair, size_t piece)
{
    if (!tls_channel_is_open(pair->agent.channel))
        give(&pair->agent, "", 0);
    while (
        pass(&pair->agent, &pair->controller, piece) + pass(&pair->controller, &pair->agent, piece))
        continue;
}

static void say(struct end *end, const char *text)
{
    assert_int_equal(tls_channel_write(end->channel, text, strlen(text)), 0);
    note_output(end);
}

static void open_pair(struct pair *pair)
{
    exchange(pair, SIZE_MAX / 2);
    assert_true(tls_channel_is_open(pair->agent.channel));
    assert_true(tls_channel_is_open(pair->controller.channel));
}

#define ASSERT_REFUSED(end, error, part)                                                           \
    do {                                                                                           \
        if ((end)->result != -(error) || !strstr((end)->fault.text, part))                         \
            fail_msg("%d, %s", (end)->result, (end)->fault.text);                                  \
    } while (0)

/* ---- with the key ---- */

static void test_both_ways(void **state)
{
    struct pair *pair = *state;
    assert_string_equal(tls_channel_peer(pair->controller.channel), "");
    open_pair(pair);
    assert_string_equal(tls_channel_peer(pair->controller.channel), "n1");
    say(&pair->agent, "report 1\n");
    say(&pair->agent, "report 2\n");
    say(&pair->controller, "answer\n");
    assert_null(memmem(pair->agent.sent, pair->agent.n_sent, "report", 6));
    exchange(pair, SIZE_MAX / 2);
    assert_string_equal(pair->controller.text, "report 1\nreport 2\n");
    assert_string_equal(pair->agent.text, "answer\n");
}

/* A report may come together with the end of the handshake, and be longer than one may be. */
static void test_at_once_and_long(void **state)
{
    struct pair *pair = *state;
    char *text = malloc(600001);
    memset(text, 'x', 600000);
    text[600000] = '\0';
    give(&pair->agent, "", 0);
    pass(&pair->agent, &pair->controller, SIZE_MAX / 2);
    pass(&pair->controller, &pair->agent, SIZE_MAX / 2);
    say(&pair->agent, text);
    pass(&pair->agent, &pair->controller, SIZE_MAX / 2);
    assert_int_equal(pair->controller.result, 0);
    assert_string_equal(pair->controller.text, text);
    free(text);
}

static void test_byte_by_byte(void **state)
{
    struct pair *pair = *state;
    exchange(pair, 1);
    say(&pair->agent, "report\n");
    exchange(pair, 1);
    assert_string_equal(pair->controller.text, "report\n");
}

/* The controller offers no ticket with which an agent could begin without the key. */
static void test_no_tickets(void **state)
{
    struct pair *pair = *state;
    give(&pair->agent, "", 0);
    pass(&pair->agent, &pair->controller, SIZE_MAX / 2);
    pass(&pair->controller, &pair->agent, SIZE_MAX / 2);
    pass(&pair->agent, &pair->controller, SIZE_MAX / 2);
    assert_true(tls_channel_is_open(pair->controller.channel));
    assert_int_equal(pair->controller.n_sent, 0);
}

/* Two sessions by one key have nothing in common. */
static void test_not_of_another_session(void **state)
{
    struct pair *pair = *state, *second;
    set_up((void **)&second);
    open_pair(pair);
    open_pair(second);
    say(&pair->agent, "report\n");
    pass(&pair->agent, &second->controller, SIZE_MAX / 2);
    ASSERT_REFUSED(&second->controller, EPROTO, "altered");
    tear_down((void **)&second);
}

/* ---- without it ---- */

static void test_another_key(void **state)
{
    struct pair *pair = *state;
    stop_end(&pair->agent);
    pair->agent = (struct end){0};
    start_end(&pair->agent, other_key, "n1");
    exchange(pair, SIZE_MAX / 2);
    ASSERT_REFUSED(&pair->controller, EACCES, "node n1 has another key: copy");
    ASSERT_REFUSED(&pair->agent, EACCES, "it has another key than this node: copy");
    assert_false(tls_channel_is_open(pair->agent.channel));
    assert_false(tls_channel_is_open(pair->controller.channel));
}

static void test_not_a_name(void **state)
{
    struct pair *pair = *state;
    static const char *const names[] = {"two words", "a/b",
        "0123456789012345678901234567890123456789012345678901234567890123456789", "\xff\xfe"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        tear_down(state);
        set_up(state);
        pair = *state;
        stop_end(&pair->agent);
        pair->agent = (struct end){0};
        start_end(&pair->agent, key, names[i]);
        exchange(pair, SIZE_MAX / 2);
        ASSERT_REFUSED(&pair->controller, EPROTO, "does not speak TLS 1.3 with a shared key");
        assert_string_equal(tls_channel_peer(pair->controller.channel), "");
    }
}

/* Is it of the first three bytes of a record, its type and version? GnuTLS uses neither of an
 * encrypted one. */
static bool is_of_header(const struct end *end, size_t at)
{
    const unsigned char *bytes = (const unsigned char *)end->sent;
    size_t start = 0, next = 0;
    while (next <= at) {
        start = next;
        next += 5 + 256U * bytes[start + 3] + bytes[start + 4];
    }
    return at - start < 3;
}

/* The messages of the handshake: 0 of the agent, 1 of the controller, 2 of the agent. Cut off
 * anywhere or altered anywhere they open nothing. */
static void damage_message(int number, size_t at, bool is_cut, bool *ret_is_beyond)
{
    struct pair *pair;
    set_up((void **)&pair);
    struct end *from = number == 1 ? &pair->controller : &pair->agent;
    struct end *to = number == 1 ? &pair->agent : &pair->controller;
    give(&pair->agent, "", 0);
    if (number >= 1)
        pass(&pair->agent, &pair->controller, SIZE_MAX / 2);
    if (number == 2)
        pass(&pair->controller, &pair->agent, SIZE_MAX / 2);
    *ret_is_beyond = at >= from->n_sent;
    if (!*ret_is_beyond) {
        bool is_header = is_of_header(from, at);
        if (is_cut)
            from->n_sent = at;
        else
            from->sent[at] ^= 1;
        pass(from, to, SIZE_MAX / 2);
        assert_true(!tls_channel_is_open(to->channel) || (is_header && !is_cut));
        assert_true(to->result < 0 || to->n_sent == 0 || is_header); /* no answer either */
        assert_true(!is_cut || to->result == 0);
    }
    tear_down((void **)&pair);
}

static void test_handshake_cut_or_altered(void **state)
{
    for (int number = 0; number < 3; number++) {
        bool is_beyond = false;
        for (size_t at = 0; !is_beyond; at++) {
            damage_message(number, at, true, &is_beyond);
            damage_message(number, at, false, &is_beyond);
        }
    }
}

static void test_not_tls(void **state)
{
    static const char *const texts[] = {"GET / HTTP/1.1\r\n\r\n", "MUNGE:AwQDAAAabcdefghijkl:\n",
        "{\"v\":1}\n{\"v\":1}\n", "\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00",
        "\x15\x03\x03\x00\x02\x02\x28"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct end controller = {0};
        start_end(&controller, key, NULL);
        give(&controller, texts[i], i == 3 ? 10 : i == 4 ? 7 : strlen(texts[i]));
        ASSERT_REFUSED(&controller, EPROTO, "is node-auth tls on both machines?");
        assert_int_equal(tls_channel_read(controller.channel, &(char){0}, 1, NULL), -EPROTO);
        stop_end(&controller);
    }
}

/* A first message of 16 KiB, at once and slowly. */
static void test_too_much_before_the_key(void **state)
{
    struct end controller = {0};
    char bytes[16389] = "\x16\x03\x01\x40\x00\x01\x00\x3f\xfc\x03\x03";
    start_end(&controller, key, NULL);
    give(&controller, bytes, sizeof bytes);
    assert_true(controller.result == -EMSGSIZE || controller.result == -EPROTO);
    stop_end(&controller);
    controller = (struct end){0};
    start_end(&controller, key, NULL);
    give(&controller, "\x16\x03\x01\x40\x00\x01\x00\x3f\xfc\x03\x03", 11);
    for (int i = 0; i < TLS_HANDSHAKE_MAX && controller.result == 0; i++)
        give(&controller, bytes + 100, 1);
    ASSERT_REFUSED(&controller, EMSGSIZE, "without a proof of the key");
    stop_end(&controller);
}

/* ---- records of an open channel ---- */

/* Of three reports: the second is altered, repeated, left out, or before the first. */
static void test_altered_records(void **state)
{
    for (int what = 0; what < 4; what++) {
        tear_down(state);
        set_up(state);
        struct pair *pair = *state;
        struct end *agent = &pair->agent;
        size_t size[4] = {0};
        open_pair(pair);
        for (int i = 1; i < 4; i++) {
            say(agent, "report\n");
            size[i] = agent->n_sent;
        }
        switch (what) {
        case 0:
            agent->sent[size[2] - 1] ^= 1;
            give(&pair->controller, agent->sent, size[3]);
            break;
        case 1:
            give(&pair->controller, agent->sent, size[2]);
            give(&pair->controller, agent->sent + size[1], size[3] - size[1]);
            break;
        case 2:
            give(&pair->controller, agent->sent, size[1]);
            give(&pair->controller, agent->sent + size[2], size[3] - size[2]);
            break;
        case 3:
            give(&pair->controller, agent->sent + size[1], size[2] - size[1]);
            break;
        }
        ASSERT_REFUSED(&pair->controller, EPROTO, "altered");
        assert_true(pair->controller.n_text <= 14);
    }
}

/* ---- GnuTLS as other programs use it ---- */

struct raw {
    gnutls_session_t session;
    gnutls_psk_client_credentials_t client;
    gnutls_psk_server_credentials_t server;
    struct end *peer;
};

static ssize_t raw_pull(gnutls_transport_ptr_t context, void *room, size_t size)
{
    struct raw *raw = context;
    size_t n = raw->peer->n_sent < size ? raw->peer->n_sent : size;
    if (n == 0) {
        gnutls_transport_set_errno(raw->session, EAGAIN);
        return -1;
    }
    memcpy(room, raw->peer->sent, n);
    raw->peer->n_sent -= n;
    memmove(raw->peer->sent, raw->peer->sent + n, raw->peer->n_sent);
    return (ssize_t)n;
}

static ssize_t raw_push(gnutls_transport_ptr_t context, const void *bytes, size_t n)
{
    struct raw *raw = context;
    if (raw->peer->result == 0)
        give(raw->peer, bytes, n);
    return (ssize_t)n;
}

static int raw_timeout(gnutls_transport_ptr_t context, unsigned wait_ms)
{
    const struct raw *raw = context;
    return raw->peer->n_sent > 0;
}

static int raw_find_key(gnutls_session_t session, const char *identity, gnutls_datum_t *ret_key)
{
    ret_key->data = gnutls_malloc(SHA256_SIZE);
    ret_key->size = SHA256_SIZE;
    memcpy(ret_key->data, key, SHA256_SIZE);
    return 0;
}

static void start_raw(struct raw *raw, struct end *peer, unsigned role, const char *priority)
{
    const gnutls_datum_t datum = {(void *)key, SHA256_SIZE};
    *raw = (struct raw){.peer = peer};
    assert_int_equal(gnutls_init(&raw->session, role | GNUTLS_NONBLOCK), 0);
    gnutls_transport_set_ptr(raw->session, raw);
    gnutls_transport_set_pull_function(raw->session, raw_pull);
    gnutls_transport_set_pull_timeout_function(raw->session, raw_timeout);
    gnutls_transport_set_push_function(raw->session, raw_push);
    assert_int_equal(gnutls_priority_set_direct(raw->session, priority, NULL), 0);
    gnutls_psk_allocate_client_credentials(&raw->client);
    gnutls_psk_set_client_credentials(raw->client, "n1", &datum, GNUTLS_PSK_KEY_RAW);
    gnutls_psk_allocate_server_credentials(&raw->server);
    gnutls_psk_set_server_credentials_function(raw->server, raw_find_key);
    gnutls_credentials_set(raw->session, GNUTLS_CRD_PSK,
        role == GNUTLS_SERVER ? (void *)raw->server : (void *)raw->client);
}

static void stop_raw(struct raw *raw)
{
    gnutls_deinit(raw->session);
    gnutls_psk_free_client_credentials(raw->client);
    gnutls_psk_free_server_credentials(raw->server);
}

/* Returns what the handshake came to; the peer gets the alert for an error. */
static int shake_hands(struct raw *raw)
{
    int r;
    do {
        if (!tls_channel_is_open(raw->peer->channel) && raw->peer->result == 0)
            give(raw->peer, "", 0);
        r = gnutls_handshake(raw->session);
    } while (r < 0 && !gnutls_error_is_fatal(r) && raw->peer->n_sent > 0);
    if (r < 0)
        gnutls_alert_send_appropriate(raw->session, r);
    return r;
}

/* Older versions, which have renegotiation; without ephemeral keys; and without the key at all. */
static void test_other_ways_of_tls(void **state)
{
    static const char *const priorities[] = {
        "NORMAL:-VERS-ALL:+VERS-TLS1.2:+ECDHE-PSK:+DHE-PSK:+PSK",
        "NORMAL:-VERS-ALL:+VERS-TLS1.0:+ECDHE-PSK:+DHE-PSK:+PSK",
        "NORMAL:-VERS-ALL:+VERS-TLS1.3:-KX-ALL:+PSK", "NORMAL:-VERS-ALL:+VERS-TLS1.3"};
    for (size_t i = 0; i < sizeof priorities / sizeof *priorities; i++) {
        struct end controller = {0}, agent = {0};
        struct raw raw;
        start_end(&controller, key, NULL);
        start_raw(&raw, &controller, GNUTLS_CLIENT, priorities[i]);
        assert_true(shake_hands(&raw) < 0);
        ASSERT_REFUSED(&controller, EPROTO, "does not speak TLS 1.3 with a shared key");
        stop_raw(&raw);
        stop_end(&controller);
        start_end(&agent, key, "n1");
        start_raw(&raw, &agent, GNUTLS_SERVER, priorities[i]);
        assert_true(shake_hands(&raw) < 0);
        ASSERT_REFUSED(&agent, EPROTO, "does not speak TLS 1.3 with a shared key");
        stop_raw(&raw);
        stop_end(&agent);
    }
}

/* An agent of another make: keys may be renewed, and its end is the end. */
static void test_another_make(void **state)
{
    struct pair *pair = *state;
    struct raw raw;
    start_raw(&raw, &pair->controller, GNUTLS_CLIENT,
        "NORMAL:-VERS-ALL:+VERS-TLS1.3:-KX-ALL:+ECDHE-PSK:-CIPHER-ALL:+CHACHA20-POLY1305");
    assert_int_equal(shake_hands(&raw), 0);
    assert_int_equal(gnutls_record_send(raw.session, "one\n", 4), 4);
    assert_int_equal(gnutls_session_key_update(raw.session, GNUTLS_KU_PEER), 0);
    assert_int_equal(gnutls_record_send(raw.session, "two\n", 4), 4);
    assert_string_equal(pair->controller.text, "one\ntwo\n");
    assert_int_equal(pair->controller.result, 0);
    gnutls_bye(raw.session, GNUTLS_SHUT_WR);
    ASSERT_REFUSED(&pair->controller, ECONNRESET, "closed the connection");
    stop_raw(&raw);
}

int main(void)
{
#define TLS_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TLS_TEST(test_both_ways),
        TLS_TEST(test_at_once_and_long),
        TLS_TEST(test_byte_by_byte),
        TLS_TEST(test_no_tickets),
        TLS_TEST(test_not_of_another_session),
        TLS_TEST(test_another_key),
        TLS_TEST(test_not_a_name),
        TLS_TEST(test_handshake_cut_or_altered),
        TLS_TEST(test_not_tls),
        TLS_TEST(test_too_much_before_the_key),
        TLS_TEST(test_altered_records),
        TLS_TEST(test_other_ways_of_tls),
        TLS_TEST(test_another_make),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
