/* SPDX-License-Identifier: Apache-2.0 */
/* The hub, the uplink and the sockets of link_fixture.h, over one loop. */
#include "link_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"

/* ---- the controller's hooks ---- */

static bool knows_node(void *context, const char *node)
{
    return strcmp(node, "n1") == 0 || strcmp(node, "n2") == 0;
}

static void on_report(void *context, const struct node_report *report)
{
    struct fixture *f = context;
    f->reports++;
    f->last_sequence = report->sequence;
    node_report_fini(&f->last_report);
    assert_int_equal(node_report_copy(report, &f->last_report), 0);
}

static void on_gone(void *context, const char *node)
{
    struct fixture *f = context;
    assert_string_equal(node, "n1");
    f->gone++;
}

static void on_answer(void *context, const struct node_answer *answer)
{
    struct fixture *f = context;
    f->answers++;
    f->last_answer = *answer;
}

/* ---- the fixture ---- */

void link_on_limit(uv_timer_t *timer)
{
    fail_msg("nothing happened for a minute");
}

void link_listen(struct fixture *f, const char *address)
{
    struct fault fault = {0};
    const struct node_hub_options options = {.loop = &f->loop,
        .address = address,
        .munge_socket = f->munge_socket,
        .key = f->hub_key,
        .agents = geteuid(),
        .hooks = {f, knows_node, on_report, on_gone}};
    if (node_hub_create(&options, &fault, &f->hub) < 0)
        fail_msg("%s", fault.text);
    tcp_address_format(node_hub_address(f->hub), f->address);
}

void link_create_uplink_to(struct fixture *f, const char *address)
{
    struct fault fault = {0};
    const struct node_uplink_options options = {.loop = &f->loop,
        .controller = address,
        .munge_socket = f->munge_socket,
        .key = f->agent_key,
        .controller_uid = geteuid(),
        .node = "n1",
        .context = f,
        .on_answer = on_answer};
    assert_int_equal(node_uplink_create(&options, &fault, &f->uplink), 0);
}

void link_create_uplink(struct fixture *f)
{
    link_create_uplink_to(f, f->address);
}

void link_end_hub(struct fixture *f)
{
    node_hub_close(f->hub);
    RUN_UNTIL(f, uv_run(&f->loop, UV_RUN_NOWAIT) >= 0 && node_hub_counts(f->hub).connections == 0);
}

struct fixture *link_create(const char *munge_socket, const uint8_t *key)
{
    struct fixture *f = calloc(1, sizeof *f);
    uv_loop_init(&f->loop);
    uv_timer_init(&f->loop, &f->limit);
    f->munge_socket = munge_socket;
    f->hub_key = f->agent_key = key;
    link_listen(f, "127.0.0.1:0");
    return f;
}

int link_destroy(struct fixture *f)
{
    if (!f)
        return 0;
    node_hub_close(f->hub);
    node_uplink_close(f->uplink);
    uv_close((uv_handle_t *)&f->limit, NULL);
    uv_run(&f->loop, UV_RUN_DEFAULT);
    node_hub_destroy(f->hub);
    node_uplink_destroy(f->uplink);
    node_report_fini(&f->last_report);
    int r = uv_loop_close(&f->loop);
    free(f);
    return r;
}

/* ---- clients ---- */

char *link_report_text(const char *node, int64_t sequence)
{
    const struct node_report report = {
        .boot = "b", .sequence = sequence, .time_us = clock_wall_us()};
    struct node_report named = report;
    char *text;
    size_t size;
    snprintf(named.node, sizeof named.node, "%s", node);
    assert_int_equal(node_report_encode(&named, &text, &size), 0);
    return text;
}

int link_connect(const struct fixture *f)
{
    const struct tcp_address *address = node_hub_address(f->hub);
    int fd = socket(address->storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&address->storage, address->size), 0);
    return fd;
}

void link_send_line(int fd, const char *line)
{
    size_t size = strlen(line);
    for (size_t sent = 0; sent < size;) {
        ssize_t n = send(fd, line + sent, size - sent, MSG_NOSIGNAL);
        assert_true(n > 0);
        sent += (size_t)n;
    }
    assert_int_equal(send(fd, "\n", 1, MSG_NOSIGNAL), 1);
}

/* Reads until the end of the connection. Returns what came, in one buffer of the fixture's. */
const char *link_read_to_end(struct fixture *f, int fd)
{
    static char text[8192];
    size_t used = 0;
    for (;;) {
        ssize_t n = recv(fd, text + used, sizeof text - 1 - used, MSG_DONTWAIT);
        if (n == 0 || (n < 0 && errno != EAGAIN))
            break;
        used += n > 0 ? (size_t)n : 0;
        RUN_UNTIL(f, uv_run(&f->loop, UV_RUN_NOWAIT) >= 0);
    }
    close(fd);
    text[used] = '\0';
    return text;
}

/* ---- floods ---- */

int link_connect_from(const struct fixture *f, const char *source)
{
    const struct tcp_address *address = node_hub_address(f->hub);
    struct sockaddr_in from = {.sin_family = AF_INET};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    inet_pton(AF_INET, source, &from.sin_addr);
    assert_int_equal(bind(fd, (const struct sockaddr *)&from, sizeof from), 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&address->storage, address->size), 0);
    return fd;
}

/* Connections that never send anything. */
void link_flood_from(struct fixture *f, const char *source, int fds[static FLOOD])
{
    for (int i = 0; i < FLOOD; i++) {
        fds[i] = link_connect_from(f, source);
        uv_run(&f->loop, UV_RUN_NOWAIT);
    }
    RUN_UNTIL(f, node_hub_counts(f->hub).connections <= HUB_UNPROVEN_MAX + 1);
}

void link_end_flood(const int fds[static FLOOD])
{
    for (int i = 0; i < FLOOD; i++)
        close(fds[i]);
}
