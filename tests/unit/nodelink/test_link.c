/* SPDX-License-Identifier: Apache-2.0 */
/* Both ends of the link over a munged of the test's own: what an agent sends reaches the
 * controller, and nothing else does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <munge.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "link_fixture.h"
#include "munged.h"
#include "nodelink/munge_seal.h"
#include "nodelink/node_stream.h"

static struct munged munged;
static bool has_munge;

/* The name service of this test, before that of the C library. */
int getaddrinfo(
    const char *host, const char *port, const struct addrinfo *hints, struct addrinfo **ret_found)
{
    int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **);
    *(void **)&real = dlsym(RTLD_NEXT, "getaddrinfo");
    if (!host || strcmp(host, "two-addresses") != 0)
        return real(host, port, hints, ret_found);
    int r = real("127.0.0.2", port, hints, ret_found);
    return r == 0 ? real("127.0.0.1", port, hints, &(*ret_found)->ai_next) : r;
}

static const uint8_t key[SHA256_SIZE] = "of all nodes";

static int set_up(void **state)
{
    if (has_munge)
        *state = link_create(munged.socket, NULL);
    return 0;
}

static int set_up_tls(void **state)
{
    *state = link_create(NULL, key);
    return 0;
}

static int tear_down(void **state)
{
    return link_destroy(*state);
}

/* ---- clients ---- */

/* A credential of any text; the caller frees it. */
static char *sign(const char *text)
{
    struct munge_seal *seal = munge_seal_create(munged.socket, geteuid(), geteuid());
    struct fault fault = {0};
    char *credential;
    if (munge_seal_encode(seal, text, strlen(text), &fault, &credential) < 0)
        fail_msg("%s", fault.text);
    munge_seal_destroy(seal);
    return credential;
}

static char *sign_report(const char *node, int64_t sequence)
{
    char *text = link_report_text(node, sequence), *credential = sign(text);
    free(text);
    return credential;
}

/* What the hub says in the one signed answer of a connection. */
static struct node_answer opened(const char *line)
{
    struct munge_seal *seal = munge_seal_create(munged.socket, geteuid(), geteuid());
    struct node_answer answer = {0};
    struct fault fault = {0};
    char *text, *copy = strdup(line);
    size_t size;
    copy[strcspn(copy, "\n")] = '\0';
    if (munge_seal_decode(seal, copy, &fault, &text, &size) != 0)
        fail_msg("'%s': %s", copy, fault.text);
    assert_int_equal(node_answer_decode(text, size, &fault, &answer), 0);
    munge_seal_destroy(seal);
    free(text);
    free(copy);
    return answer;
}

#define NEEDS_MUNGE(state)                                                                         \
    if (!*(state))                                                                                 \
        skip();                                                                                    \
    struct fixture *f = *(state)

/* ---- tests ---- */

static void test_reports_and_pins(void **state)
{
    NEEDS_MUNGE(state);
    struct node_report report = {
        .node = "n1", .boot = "b", .sequence = 1, .time_us = clock_wall_us()};
    link_create_uplink(f);
    assert_int_equal(
        node_hub_pin(f->hub, "n1", &(struct node_pin){.job = 12, .is_mps = true}), -ENOTCONN);
    node_uplink_send(f->uplink, &report);
    RUN_UNTIL(f, f->reports == 1 && node_uplink_is_accepted(f->uplink));
    assert_int_equal(f->last_answer.sequence, 1);
    assert_int_equal(node_hub_counts(f->hub).nodes, 1);
    assert_int_equal(node_hub_pin(f->hub, "n1", &(struct node_pin){.job = 12, .is_mps = true}), 0);
    assert_int_equal(node_hub_pin(f->hub, "n1", &(struct node_pin){.job = 13}), 0);
    RUN_UNTIL(
        f, f->last_answer.n_pins > 0 && f->last_answer.pins[f->last_answer.n_pins - 1].job == 13);
    report.sequence = 2;
    node_uplink_send(f->uplink, &report);
    RUN_UNTIL(f, f->reports == 2);
    assert_int_equal(f->last_sequence, 2);
    node_uplink_close(f->uplink);
    RUN_UNTIL(f, f->gone == 1);
    assert_int_equal(node_hub_counts(f->hub).nodes, 0);
}

/* As of a machine with two addresses: nothing listens on the first. */
static void test_all_addresses_are_tried(void **state)
{
    NEEDS_MUNGE(state);
    struct node_report report = {
        .node = "n1", .boot = "b", .sequence = 1, .time_us = clock_wall_us()};
    char address[64];
    snprintf(address, sizeof address, "two-addresses%s", strrchr(f->address, ':'));
    link_create_uplink_to(f, address);
    node_uplink_send(f->uplink, &report);
    RUN_UNTIL(f, f->reports == 1 && node_uplink_is_accepted(f->uplink));
}

/* The controller was restarted: the agent comes back by itself. */
static void test_connects_again(void **state)
{
    NEEDS_MUNGE(state);
    struct node_report report = {
        .node = "n1", .boot = "b", .sequence = 1, .time_us = clock_wall_us()};
    link_create_uplink(f);
    node_uplink_send(f->uplink, &report);
    RUN_UNTIL(f, f->reports == 1 && node_uplink_is_accepted(f->uplink));
    link_end_hub(f);
    RUN_UNTIL(f, !node_uplink_is_accepted(f->uplink));
    uv_run(&f->loop, UV_RUN_NOWAIT);
    node_hub_destroy(f->hub);
    link_listen(f, f->address);
    report.sequence = 2;
    node_uplink_send(f->uplink, &report);
    RUN_UNTIL(f, f->reports == 2 && node_uplink_is_accepted(f->uplink));
}

static void expect_closed_silently(struct fixture *f, const char *line)
{
    uint64_t refused = node_hub_counts(f->hub).refused;
    int fd = link_connect(f);
    link_send_line(fd, line);
    assert_string_equal(link_read_to_end(f, fd), "");
    assert_int_equal(node_hub_counts(f->hub).refused, refused + 1);
    assert_int_equal(f->reports, 0);
}

/* munged is needed to prove which user reports, not for each report. */
static void test_munged_stops(void **state)
{
    NEEDS_MUNGE(state);
    struct node_report report = {
        .node = "n1", .boot = "b", .sequence = 1, .time_us = clock_wall_us()};
    link_create_uplink(f);
    node_uplink_send(f->uplink, &report);
    RUN_UNTIL(f, f->reports == 1 && node_uplink_is_accepted(f->uplink));
    munged_stop(&munged);
    report.sequence = 2;
    node_uplink_send(f->uplink, &report);
    RUN_UNTIL(f, f->last_sequence == 2);
    assert_int_equal(munged_start(&munged), 0);
    node_hub_pin(f->hub, "n1", &(struct node_pin){.job = 12});
    RUN_UNTIL(f, f->last_answer.n_pins == 1);
}

static void test_not_munge(void **state)
{
    NEEDS_MUNGE(state);
    expect_closed_silently(f, "");
    expect_closed_silently(f, "GET / HTTP/1.1");
    expect_closed_silently(f, "{\"v\":1}");
    expect_closed_silently(f, "MUNGE:AwQDAAA:");
    char *credential = sign_report("n1", 1);
    credential[strlen(credential) / 2] ^= 1;
    expect_closed_silently(f, credential);
    free(credential);
}

static void test_too_long(void **state)
{
    NEEDS_MUNGE(state);
    const size_t size = 2 * REPORT_SIZE_MAX;
    char *line = malloc(size);
    memset(line, 'x', size);
    int fd = link_connect(f);
    for (size_t sent = 0; sent < size;) {
        ssize_t n = send(fd, line + sent, size - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno != EAGAIN)
            break;
        sent += n > 0 ? (size_t)n : 0;
        uv_run(&f->loop, UV_RUN_NOWAIT);
    }
    assert_string_equal(link_read_to_end(f, fd), "");
    assert_int_equal(node_hub_counts(f->hub).refused, 1);
    free(line);
}

/* Another user of the cluster, who may use munge as well. */
static void test_wrong_user(void **state)
{
    NEEDS_MUNGE(state);
    if (geteuid() != 0)
        skip();
    int ends[2];
    char credential[4096];
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    if (pid == 0) {
        char *text = link_report_text("n1", 1), *made = NULL;
        if (setgid(65534) < 0 || setuid(65534) < 0)
            _exit(1);
        struct munge_seal *seal = munge_seal_create(munged.socket, 0, 0);
        struct fault fault;
        int r = munge_seal_encode(seal, text, strlen(text), &fault, &made);
        _exit(r == 0 && write(ends[1], made, strlen(made)) > 0 ? 0 : 1);
    }
    ssize_t n = read(ends[0], credential, sizeof credential - 1);
    waitpid(pid, NULL, 0);
    close(ends[0]);
    close(ends[1]);
    assert_true(n > 0);
    credential[n] = '\0';
    expect_closed_silently(f, credential);
}

static void test_replayed(void **state)
{
    NEEDS_MUNGE(state);
    char *credential = sign_report("n1", 1);
    int fd = link_connect(f);
    link_send_line(fd, credential);
    char first;
    RUN_UNTIL(f, recv(fd, &first, 1, MSG_PEEK | MSG_DONTWAIT) == 1);
    link_send_line(fd, credential);
    opened(link_read_to_end(f, fd)); /* the answer to the first */
    assert_int_equal(f->reports, 1);
    assert_int_equal(node_hub_counts(f->hub).refused, 1);
    free(credential);
}

/* A report that comes while the pool seals an answer for the same connection is not forgotten. */
static void test_report_during_an_answer(void **state)
{
    NEEDS_MUNGE(state);
    int fd = link_connect(f);
    for (int i = 1; i <= 50; i++) {
        char *credential = sign_report("n1", i);
        node_hub_pin(f->hub, "n1", &(struct node_pin){.job = (uint32_t)i, .is_mps = true});
        link_send_line(fd, credential);
        free(credential);
        RUN_UNTIL(f, f->reports == i || node_hub_counts(f->hub).refused > 0);
        if (node_hub_counts(f->hub).refused > 0) { /* more than five a second */
            assert_true(i > REPORT_BURST_MAX);
            break;
        }
    }
    close(fd);
}

static void expect_refused(struct fixture *f, char *credential, const char *why)
{
    int fd = link_connect(f);
    link_send_line(fd, credential);
    struct node_answer answer = opened(link_read_to_end(f, fd));
    if (!strstr(answer.refused, why))
        fail_msg("'%s' instead of '%s'", answer.refused, why);
    free(credential);
}

static void test_signed_and_refused(void **state)
{
    NEEDS_MUNGE(state);
    expect_refused(f, sign_report("n9", 1), "Slurm has no node n9");
    expect_refused(f, sign("{}"), "install the same colloc");
    expect_refused(f, sign("no report"), "not JSON");
    assert_int_equal(f->reports, 0);
    int fd = link_connect(f);
    char *credential = sign_report("n1", 5);
    link_send_line(fd, credential);
    free(credential);
    RUN_UNTIL(f, f->reports == 1);
    expect_refused(f, sign_report("n1", 5), "second agent");
    expect_refused(f, sign_report("n1", 4), "second agent");
    credential = sign_report("n2", 6);
    link_send_line(fd, credential); /* a connection is of one node */
    free(credential);
    link_read_to_end(f, fd);
    assert_int_equal(f->reports, 1);
    assert_int_equal(f->gone, 1);
}

/* A new connection of a node replaces the one before, whose end is then no news. */
static void test_second_connection(void **state)
{
    NEEDS_MUNGE(state);
    int first = link_connect(f);
    char *credential = sign_report("n1", 1);
    link_send_line(first, credential);
    free(credential);
    RUN_UNTIL(f, f->reports == 1);
    int second = link_connect(f);
    credential = sign_report("n1", 2);
    link_send_line(second, credential);
    free(credential);
    RUN_UNTIL(f, f->reports == 2);
    link_read_to_end(f, first);
    assert_int_equal(f->gone, 0);
    assert_int_equal(node_hub_counts(f->hub).nodes, 1);
    close(second);
    RUN_UNTIL(f, f->gone == 1);
}

static void test_unproven_are_few(void **state)
{
    NEEDS_MUNGE(state);
    int fds[HUB_UNPROVEN_MAX + 20];
    struct node_report report = {
        .node = "n1", .boot = "b", .sequence = 1, .time_us = clock_wall_us()};
    for (size_t i = 0; i < sizeof fds / sizeof *fds; i++) {
        fds[i] = link_connect(f);
        uv_run(&f->loop, UV_RUN_NOWAIT);
    }
    RUN_UNTIL(f, node_hub_counts(f->hub).connections <= HUB_UNPROVEN_MAX);
    link_create_uplink(f);
    node_uplink_send(f->uplink, &report);
    RUN_UNTIL(f, node_uplink_is_accepted(f->uplink));
    assert_true(node_hub_counts(f->hub).connections <= HUB_UNPROVEN_MAX + 1);
    for (size_t i = 0; i < sizeof fds / sizeof *fds; i++)
        close(fds[i]);
}

/* ---- reports signed by a key ---- */

/* A connection of n1 with a key; its first report is accepted. */
static int begin_session(struct fixture *f, struct report_session *session)
{
    static char line[8192];
    char *credential = sign_report("n1", clock_monotonic_us());
    int fd = link_connect(f), reports = f->reports;
    size_t used = 0;
    link_send_line(fd, credential);
    free(credential);
    while (used == 0 || line[used - 1] != '\n') {
        ssize_t n = recv(fd, line + used, sizeof line - 1 - used, MSG_DONTWAIT);
        assert_true(n > 0 || (n < 0 && errno == EAGAIN));
        used += n > 0 ? (size_t)n : 0;
        RUN_UNTIL(f, uv_run(&f->loop, UV_RUN_NOWAIT) >= 0);
    }
    line[used] = '\0';
    assert_int_equal(f->reports, reports + 1);
    assert_int_equal(report_session_take_key(session, opened(line).key), 0);
    return fd;
}

/* The next report of a session; the caller frees it. */
static char *seal_report(struct report_session *session, const char *node, int64_t late_us)
{
    struct node_report report = {
        .boot = "b", .sequence = clock_monotonic_us(), .time_us = clock_wall_us() - late_us};
    char *text, *line;
    size_t size;
    snprintf(report.node, sizeof report.node, "%s", node);
    assert_int_equal(node_report_encode(&report, &text, &size), 0);
    assert_int_equal(report_session_seal(session, text, size, &line), 0);
    free(text);
    return line;
}

static void expect_end(struct fixture *f, int fd, char *line)
{
    int reports = f->reports;
    uint64_t refused = node_hub_counts(f->hub).refused;
    link_send_line(fd, line);
    assert_string_equal(link_read_to_end(f, fd), "");
    assert_int_equal(f->reports, reports);
    assert_int_equal(node_hub_counts(f->hub).refused, refused + 1);
    free(line);
}

static void test_key_signs_reports(void **state)
{
    NEEDS_MUNGE(state);
    struct report_session session, earlier;
    int fd = begin_session(f, &session);
    char *line = seal_report(&session, "n1", 0);
    link_send_line(fd, line);
    RUN_UNTIL(f, f->reports == 2);
    expect_end(f, fd, line); /* repeated */
    earlier = session;
    fd = begin_session(f, &session);
    assert_memory_not_equal(session.key, earlier.key, sizeof session.key);
    expect_end(f, fd, seal_report(&earlier, "n1", 0)); /* the key of another connection */
    fd = begin_session(f, &session);
    free(seal_report(&session, "n1", 0)); /* lost */
    expect_end(f, fd, seal_report(&session, "n1", 0));
    fd = begin_session(f, &session);
    line = seal_report(&session, "n1", 0);
    line[strlen(line) - 3] ^= 1;
    expect_end(f, fd, line);
    expect_end(f, link_connect(f), seal_report(&session, "n1", 0)); /* nothing is proven yet */
    expect_end(f, link_connect(f), strdup("HMAC:"));
    fd = begin_session(f, &session);
    expect_end(f, fd, strdup("HMAC:00:1:{}"));
}

/* What the key has signed is judged as what munge has. */
static void test_key_is_of_a_node(void **state)
{
    NEEDS_MUNGE(state);
    struct report_session session;
    int fd = begin_session(f, &session);
    char *line = seal_report(&session, "n2", 0);
    link_send_line(fd, line);
    assert_non_null(strstr(opened(link_read_to_end(f, fd)).refused, "another node"));
    free(line);
    fd = begin_session(f, &session);
    line = seal_report(&session, "n1", 61 * SECOND_US); /* held back on its way */
    link_send_line(fd, line);
    assert_non_null(strstr(opened(link_read_to_end(f, fd)).refused, "over a minute off"));
    free(line);
    assert_int_equal(f->reports, 2);
}

/* ---- reports as changes ---- */

/* A report of one GPU. */
static void send_smact(struct fixture *f, int64_t sequence, double smact)
{
    struct node_gpu gpu = {.uuid = "GPU-1", .smact = reading_of(smact), .processes_known = true};
    const struct node_report report = {.node = "n1",
        .boot = "b",
        .sequence = sequence,
        .time_us = clock_wall_us(),
        .gpus = &gpu,
        .n_gpus = 1};
    assert_int_equal(node_uplink_send(f->uplink, &report), 0);
}

static void expect_smact(struct fixture *f, double smact)
{
    assert_int_equal(f->last_report.n_gpus, 1);
    assert_string_equal(f->last_report.gpus[0].uuid, "GPU-1");
    assert_true(f->last_report.gpus[0].smact.valid && f->last_report.gpus[0].processes_known);
    assert_true(f->last_report.gpus[0].smact.value == smact);
}

static void test_changes_are_whole_reports(void **state)
{
    NEEDS_MUNGE(state);
    link_create_uplink(f);
    send_smact(f, 1, 0.25);
    RUN_UNTIL(f, f->reports == 1 && node_uplink_is_accepted(f->uplink));
    assert_true(f->last_answer.takes_changes);
    for (int i = 2; i < 6; i++) {
        send_smact(f, i, i / 8.0);
        RUN_UNTIL(f, f->reports == i);
        expect_smact(f, i / 8.0);
        assert_int_equal(f->last_sequence, i);
    }
    assert_int_equal(node_hub_counts(f->hub).refused, 0);
}

/* A report that is dropped as one too many takes the base from the next ones: the agent is asked
 * for a whole one, until one is accepted, and what is accepted is right. */
static void test_changes_without_their_base(void **state)
{
    NEEDS_MUNGE(state);
    link_create_uplink(f);
    send_smact(f, 1, 1 / 1000.0);
    RUN_UNTIL(f, f->reports == 1 && node_uplink_is_accepted(f->uplink));
    int i = 2, answers = f->answers;
    for (; f->answers == answers; i++) {
        uint64_t taken = f->reports + node_hub_counts(f->hub).refused;
        send_smact(f, i, i / 1000.0);
        RUN_UNTIL(f, f->reports + node_hub_counts(f->hub).refused > taken);
        if (f->last_sequence == i)
            expect_smact(f, i / 1000.0);
        uv_run(&f->loop, UV_RUN_NOWAIT);
    }
    assert_true(f->last_answer.wants_whole);
    int reports = f->reports;
    for (; f->reports < reports + 2; i++) { /* wholes, of which some may come too often, too */
        uint64_t taken = f->reports + node_hub_counts(f->hub).refused;
        usleep(100000);
        send_smact(f, i, i / 1000.0);
        RUN_UNTIL(f, f->reports + node_hub_counts(f->hub).refused > taken);
        uv_run(&f->loop, UV_RUN_NOWAIT);
    }
    expect_smact(f, (i - 1) / 1000.0);
    assert_int_equal(f->gone, 0);
}

/* The controller was restarted: the first report that it gets is whole. */
static void test_changes_after_a_restart(void **state)
{
    NEEDS_MUNGE(state);
    link_create_uplink(f);
    send_smact(f, 1, 0.25);
    RUN_UNTIL(f, f->reports == 1 && node_uplink_is_accepted(f->uplink));
    send_smact(f, 2, 0.5);
    RUN_UNTIL(f, f->reports == 2);
    link_end_hub(f);
    RUN_UNTIL(f, !node_uplink_is_accepted(f->uplink));
    uv_run(&f->loop, UV_RUN_NOWAIT);
    node_hub_destroy(f->hub);
    link_listen(f, f->address);
    send_smact(f, 3, 0.75);
    RUN_UNTIL(f, f->reports == 3 && node_uplink_is_accepted(f->uplink));
    expect_smact(f, 0.75);
    assert_int_equal(node_hub_counts(f->hub).refused, 0);
}

/* ---- a controller that is only a socket ---- */

/* Accepts the uplink's next connection. */
static int accept_uplink(struct fixture *f, int listener)
{
    int fd = -1;
    RUN_UNTIL(f, uv_run(&f->loop, UV_RUN_NOWAIT) >= 0 &&
                     (fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0);
    return fd;
}

/* Creates the uplink to it. Returns the socket that listens. */
static int listen_for_uplink(struct fixture *f)
{
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof here;
    char address[64];
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&here, size), 0);
    assert_int_equal(listen(listener, 4), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&here, &size), 0);
    snprintf(address, sizeof address, "127.0.0.1:%d", ntohs(here.sin_port));
    link_create_uplink_to(f, address);
    return listener;
}

/* What the uplink has sent, valid until the next call. */
static const char *read_line(struct fixture *f, int fd)
{
    static char line[8192];
    size_t used = 0;
    ssize_t n;
    while (used == 0 || line[used - 1] != '\n') {
        RUN_UNTIL(f, uv_run(&f->loop, UV_RUN_NOWAIT) >= 0 &&
                         (n = recv(fd, line + used, sizeof line - used, 0)) > 0);
        used += (size_t)n;
    }
    line[used - 1] = '\0';
    return line;
}

/* Signs an answer. */
static void answer_uplink(struct fixture *f, int fd, const char *text)
{
    int answers = f->answers;
    char *credential = sign(text);
    link_send_line(fd, credential);
    free(credential);
    RUN_UNTIL(f, f->answers > answers);
}

static void expect_sealed_whole(struct fixture *f, int fd, int64_t sequence)
{
    struct munge_seal *seal = munge_seal_create(munged.socket, geteuid(), geteuid());
    struct node_report report;
    struct fault fault;
    size_t size;
    char *text;
    assert_int_equal(munge_seal_decode(seal, read_line(f, fd), &fault, &text, &size), 0);
    assert_int_equal(node_report_decode(text, size, &fault, &report), 0);
    assert_int_equal(report.sequence, sequence);
    assert_int_equal(report.n_gpus, 1);
    node_report_fini(&report);
    munge_seal_destroy(seal);
    free(text);
}

/* Returns the text of a line that the key signs. */
static const char *opened_text(struct fixture *f, int fd, struct report_session *session)
{
    struct fault fault;
    const char *text;
    assert_int_equal(report_session_open(session, read_line(f, fd), &fault, &text), 0);
    return text;
}

static const char zero_key[] = "0000000000000000000000000000000000000000000000000000000000000000";

/* Changes are for a controller that takes them, and on lines that a key signs. */
static void test_controller_of_an_older_version(void **state)
{
    NEEDS_MUNGE(state);
    struct report_session session = {0};
    char with_key[256];
    int listener = listen_for_uplink(f), fd = accept_uplink(f, listener);
    send_smact(f, 1, 0.25);
    expect_sealed_whole(f, fd, 1);
    answer_uplink(f, fd, "{\"v\":1,\"node\":\"n1\",\"sequence\":1,\"takes_changes\":true}");
    send_smact(f, 2, 0.5); /* there is no key */
    expect_sealed_whole(f, fd, 2);
    close(fd);
    fd = accept_uplink(f, listener);
    send_smact(f, 3, 0.5);
    expect_sealed_whole(f, fd, 3);
    snprintf(with_key, sizeof with_key, "{\"v\":1,\"node\":\"n1\",\"sequence\":3,\"key\":\"%s\"}",
        zero_key);
    answer_uplink(f, fd, with_key);
    report_session_take_key(&session, zero_key);
    send_smact(f, 4, 0.5); /* nor does it say that it takes changes */
    assert_non_null(strstr(opened_text(f, fd, &session), "\"uuid\""));
    close(fd);
    close(listener);
}

static void test_what_the_uplink_sends(void **state)
{
    NEEDS_MUNGE(state);
    struct report_session session = {0};
    char with_key[256];
    int listener = listen_for_uplink(f), fd = accept_uplink(f, listener), n_wholes = 0;
    send_smact(f, 1, 0.25);
    expect_sealed_whole(f, fd, 1);
    snprintf(with_key, sizeof with_key,
        "{\"v\":1,\"node\":\"n1\",\"sequence\":1,\"key\":\"%s\",\"takes_changes\":true}", zero_key);
    answer_uplink(f, fd, with_key);
    report_session_take_key(&session, zero_key);
    send_smact(f, 2, 0.5);
    assert_non_null(strstr(opened_text(f, fd, &session), "\"since\":1,\"sequence\":2"));
    answer_uplink(f, fd, "{\"v\":1,\"node\":\"n1\",\"sequence\":2,\"wants_whole\":true}");
    send_smact(f, 3, 0.5);
    assert_non_null(strstr(opened_text(f, fd, &session), "\"uuid\""));
    for (int i = 4; i < 4 + 120; i++) { /* two minutes */
        send_smact(f, i, 0.5);
        const char *text = opened_text(f, fd, &session);
        n_wholes += strstr(text, "\"uuid\"") != NULL;
        assert_true(!strstr(text, "\"since\"") == !!strstr(text, "\"uuid\""));
    }
    assert_int_equal(n_wholes, 2);
    close(fd);
    close(listener);
}

/* Keeps a thread of the pool in munge while the test wants it. */
static atomic_bool is_munge_held, is_munge_asked;
munge_err_t __real_munge_decode(
    const char *credential, munge_ctx_t context, void **text, int *size, uid_t *uid, gid_t *gid);
munge_err_t __wrap_munge_decode(
    const char *credential, munge_ctx_t context, void **text, int *size, uid_t *uid, gid_t *gid);

munge_err_t __wrap_munge_decode(
    const char *credential, munge_ctx_t context, void **text, int *size, uid_t *uid, gid_t *gid)
{
    atomic_store(&is_munge_asked, true);
    while (atomic_load(&is_munge_held))
        usleep(1000);
    return __real_munge_decode(credential, context, text, size, uid, gid);
}

/* One machine connects again and again: an agent elsewhere keeps its place before it reports, and
 * after it. */
static void test_flood_of_another_machine(void **state)
{
    NEEDS_MUNGE(state);
    int fds[FLOOD], agent = link_connect(f);
    char *credential = sign_report("n1", 1);
    RUN_UNTIL(f, node_hub_counts(f->hub).connections == 1);
    link_flood_from(f, "127.0.0.2", fds);
    link_send_line(agent, credential);
    RUN_UNTIL(f, f->reports == 1);
    link_end_flood(fds);
    link_flood_from(f, "127.0.0.2", fds);
    assert_int_equal(node_hub_counts(f->hub).nodes, 1);
    link_end_flood(fds);
    close(agent);
    free(credential);
}

/* So does an agent whose report waits for munged, beside the flood on the same machine. */
static void test_flood_of_the_same_machine(void **state)
{
    NEEDS_MUNGE(state);
    int fds[FLOOD], agent = link_connect(f);
    char *credential = sign_report("n1", 1);
    atomic_store(&is_munge_held, true);
    link_send_line(agent, credential);
    link_flood_from(f, "127.0.0.1", fds);
    atomic_store(&is_munge_held, false);
    RUN_UNTIL(f, f->reports == 1);
    link_end_flood(fds);
    close(agent);
    free(credential);
}

/* ---- the turn of an ended connection ---- */

/* The allocator gives the memory of the first connection of the uplink to its second one. */
static struct {
    bool is_on, is_free;
    void *block;
    size_t size;
} reuse;

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void __real_free(void *block);
void __wrap_free(void *block);

void *__wrap_calloc(size_t n, size_t size)
{
    if (reuse.is_on && reuse.is_free && n == 1 && size == reuse.size) {
        reuse.is_free = false;
        return memset(reuse.block, 0, size);
    }
    void *block = __real_calloc(n, size);
    if (reuse.is_on && !reuse.block && n == 1 && size > sizeof(uv_tcp_t) + sizeof(uv_connect_t)) {
        reuse.block = block;
        reuse.size = size;
    }
    return block;
}

void __wrap_free(void *block)
{
    if (reuse.is_on && block && block == reuse.block)
        reuse.is_free = true;
    else
        __real_free(block);
}

/* The timer of an uplink, which limits what it waits for. */
static struct {
    const struct node_uplink *uplink;
    uv_timer_t *timer;
    uv_timer_cb on_timer;
} limit_of_uplink;

int __real_uv_timer_start(uv_timer_t *timer, uv_timer_cb on_timer, uint64_t ms, uint64_t repeat);
int __wrap_uv_timer_start(uv_timer_t *timer, uv_timer_cb on_timer, uint64_t ms, uint64_t repeat);

int __wrap_uv_timer_start(uv_timer_t *timer, uv_timer_cb on_timer, uint64_t ms, uint64_t repeat)
{
    if (limit_of_uplink.uplink && timer->data == limit_of_uplink.uplink) {
        limit_of_uplink.timer = timer;
        limit_of_uplink.on_timer = on_timer;
    }
    return __real_uv_timer_start(timer, on_timer, ms, repeat);
}

/* While an answer is opened, the uplink does not read: its connection ends by the limit, which is
 * now over. */
static void end_limit_of_uplink(void)
{
    __real_uv_timer_start(limit_of_uplink.timer, limit_of_uplink.on_timer, 0, 0);
}

/* The pool thread does not wake the loop. */
static void run_until_munged_is_asked(struct fixture *f)
{
    uv_timer_start(&f->limit, link_on_limit, 60 * 1000, 0);
    while (!atomic_load(&is_munge_asked))
        uv_run(&f->loop, UV_RUN_NOWAIT);
    uv_timer_stop(&f->limit);
}

static void test_turn_of_an_ended_connection(void **state)
{
    NEEDS_MUNGE(state);
    char byte, *credential = sign("{\"v\":1,\"node\":\"n1\",\"sequence\":1}");
    struct node_report report = {
        .node = "n1", .boot = "b", .sequence = 1, .time_us = clock_wall_us()};
    int listener = listen_for_uplink(f);
    limit_of_uplink.uplink = f->uplink;
    reuse.is_on = true;
    int first = accept_uplink(f, listener);
    atomic_store(&is_munge_held, true);
    atomic_store(&is_munge_asked, false);
    link_send_line(first, credential); /* an answer, which is opened in a turn */
    run_until_munged_is_asked(f);
    close(first);
    end_limit_of_uplink();
    int second = accept_uplink(f, listener);
    assert_true(reuse.block && !reuse.is_free);
    atomic_store(&is_munge_held, false);
    node_uplink_send(f->uplink, &report);
    RUN_UNTIL(f, uv_run(&f->loop, UV_RUN_NOWAIT) >= 0 && recv(second, &byte, 1, 0) == 1);
    assert_int_equal(f->answers, 0);
    assert_false(node_uplink_is_accepted(f->uplink));
    reuse.is_on = false;
    limit_of_uplink.uplink = NULL;
    close(second);
    close(listener);
    free(credential);
}

/* What a seal opens does not change the user that can read what it seals. */
static void test_reader_stays(void **state)
{
    if (!has_munge)
        skip();
    struct munge_seal *seal = munge_seal_create(munged.socket, 65534, geteuid());
    char *ours = sign("ours"), *theirs, *text;
    struct fault fault;
    size_t size;
    assert_int_equal(munge_seal_decode(seal, ours, &fault, &text, &size), 0);
    free(text);
    assert_int_equal(munge_seal_encode(seal, "theirs", 6, &fault, &theirs), 0);
    assert_int_equal(munge_seal_decode(seal, theirs, &fault, &text, &size), SEAL_INVALID);
    munge_seal_destroy(seal);
    free(theirs);
    free(ours);
}

static void test_bad_options(void **state)
{
    struct fault fault = {0};
    uv_loop_t loop;
    uv_loop_init(&loop);
    struct node_hub_options hub = {.loop = &loop};
    struct node_uplink_options uplink = {.loop = &loop, .node = "n1"};
    struct node_hub *created;
    struct node_uplink *connected;
    static const char *wrong[] = {"", "login1", "login1:", ":7490", "login1:x", "a:123456789"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        hub.address = uplink.controller = wrong[i];
        assert_int_equal(node_hub_create(&hub, &fault, &created), -EINVAL);
        assert_int_equal(node_uplink_create(&uplink, &fault, &connected), -EINVAL);
    }
    uplink.controller = "login1:7490";
    uplink.node = "two words";
    assert_int_equal(node_uplink_create(&uplink, &fault, &connected), -EINVAL);
    uv_loop_close(&loop);
}

static int start_munge(void **state)
{
    int r = munged_start(&munged);
    has_munge = r == 0;
    return r < 0 ? -1 : 0;
}

static int end_munge(void **state)
{
    munged_remove(&munged);
    return 0;
}

int main(void)
{
#define LINK_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
#define TLS_TEST(name)                                                                             \
    {                                                                                              \
#name " with TLS", name, set_up_tls, tear_down, NULL                                       \
    }
    const struct CMUnitTest tests[] = {
        LINK_TEST(test_reports_and_pins),
        TLS_TEST(test_reports_and_pins),
        LINK_TEST(test_all_addresses_are_tried),
        TLS_TEST(test_all_addresses_are_tried),
        LINK_TEST(test_connects_again),
        TLS_TEST(test_connects_again),
        LINK_TEST(test_munged_stops),
        LINK_TEST(test_not_munge),
        LINK_TEST(test_too_long),
        LINK_TEST(test_wrong_user),
        LINK_TEST(test_replayed),
        LINK_TEST(test_report_during_an_answer),
        LINK_TEST(test_signed_and_refused),
        LINK_TEST(test_second_connection),
        LINK_TEST(test_unproven_are_few),
        TLS_TEST(test_unproven_are_few),
        LINK_TEST(test_key_signs_reports),
        LINK_TEST(test_key_is_of_a_node),
        LINK_TEST(test_changes_are_whole_reports),
        TLS_TEST(test_changes_are_whole_reports),
        LINK_TEST(test_changes_without_their_base),
        TLS_TEST(test_changes_without_their_base),
        LINK_TEST(test_changes_after_a_restart),
        TLS_TEST(test_changes_after_a_restart),
        LINK_TEST(test_controller_of_an_older_version),
        LINK_TEST(test_what_the_uplink_sends),
        LINK_TEST(test_flood_of_another_machine),
        LINK_TEST(test_flood_of_the_same_machine),
        LINK_TEST(test_turn_of_an_ended_connection),
        cmocka_unit_test(test_reader_stays),
        cmocka_unit_test(test_bad_options),
    };
    return cmocka_run_group_tests(tests, start_munge, end_munge);
}
