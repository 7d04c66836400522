/* SPDX-License-Identifier: Apache-2.0 */
/* The part scrape with pretend metrics: this process plays Prometheus. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>

#include "base/file.h"
#include "base/units.h"
#include "daemon/http/http_answers.h"
#include "daemon/scrape/scrape_server.h"
#include "pretend_browser.h"

static const char token[] = "6a09e667f3bcc908";

static struct {
    uv_loop_t loop;
    struct config config;
    struct scrape *scrape;
    char folder[32];
    int port;
    int made;     /* texts */
    bool is_full; /* no memory for a text */
} seen;

char *http_make_metrics(const struct http *http, bool is_openmetrics)
{
    seen.made++;
    return seen.is_full ? NULL : strdup(is_openmetrics ? "colloc_up 1\n# EOF\n" : "colloc_up 1\n");
}

/* A port that nothing listens on. */
static int find_port(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (const struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &size), 0);
    close(fd);
    return ntohs(address.sin_port);
}

static int set_up(void **state)
{
    memset(&seen, 0, sizeof seen);
    strcpy(seen.folder, "/tmp/scrape-XXXXXX");
    if (!mkdtemp(seen.folder))
        return -1;
    uv_loop_init(&seen.loop);
    seen.port = find_port();
    snprintf(
        seen.config.metrics_listen, sizeof seen.config.metrics_listen, "127.0.0.1:%d", seen.port);
    seen.config.request_bytes_max = 1 * MIB;
    const struct scrape_options options = {.loop = &seen.loop, .config = &seen.config};
    seen.scrape = scrape_create(&options);
    return seen.scrape ? 0 : -1;
}

static int tear_down(void **state)
{
    scrape_close(seen.scrape);
    uv_run(&seen.loop, UV_RUN_DEFAULT);
    scrape_destroy(seen.scrape);
    unlink(seen.config.metrics_token_file);
    return uv_loop_close(&seen.loop) | rmdir(seen.folder);
}

/* Returns as scrape_open. `mode`: of the file of the token. */
static int open_with_token(const char *text, mode_t mode)
{
    struct fault fault;
    snprintf(seen.config.metrics_token_file, sizeof seen.config.metrics_token_file, "%s/token",
        seen.folder);
    assert_int_equal(
        file_write_atomic(seen.config.metrics_token_file, text, strlen(text), mode), 0);
    assert_int_equal(chmod(seen.config.metrics_token_file, mode), 0);
    return scrape_open(seen.scrape, &fault);
}

static int scrape(const char *path, const char *host, const char *more, char *answer)
{
    char request[512];
    snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: %s\r\n%s", path, host, more);
    return browse(&seen.loop, seen.port, request, answer);
}

/* ---- tests ---- */

static void without_a_token_this_machine_may_read(void **state)
{
    char answer[ANSWER_SIZE];
    struct fault fault;
    assert_int_equal(scrape_open(seen.scrape, &fault), 0);
    assert_int_equal(scrape("/metrics", "localhost", "", answer), 200);
    assert_non_null(strstr(answer, "colloc_up 1\n"));
    assert_int_equal(scrape("/metrics", "evil.example", "", answer), 403);
    assert_int_equal(scrape("/v1/tasks", "localhost", "", answer), 404);
}

static void a_token_is_required_where_one_is_set(void **state)
{
    char answer[ANSWER_SIZE], right[64];
    assert_int_equal(open_with_token(token, 0600), 0);
    snprintf(right, sizeof right, "Authorization: Bearer %s\r\n", token);
    assert_int_equal(scrape("/metrics", "node1:9090", right, answer), 200);
    assert_int_equal(scrape("/metrics", "localhost", "", answer), 401);
    right[strlen(right) - 3] ^= 1;
    assert_int_equal(scrape("/metrics", "node1:9090", right, answer), 401);
}

static void a_bad_file_of_a_token_is_refused(void **state)
{
    assert_int_equal(open_with_token(token, 0644), -EPERM);
    assert_int_equal(open_with_token("short\n", 0600), -EINVAL);
    assert_int_equal(open_with_token("with a space in it\n", 0600), -EINVAL);
}

static void other_machines_need_a_token(void **state)
{
    struct fault fault;
    snprintf(
        seen.config.metrics_listen, sizeof seen.config.metrics_listen, "0.0.0.0:%d", seen.port);
    assert_int_equal(scrape_open(seen.scrape, &fault), -EINVAL);
    assert_int_equal(open_with_token(token, 0600), 0);
}

/* Ten scrapes in a row take far less than SCRAPE_REUSED_MS on any machine but a stopped one. */
static void a_text_is_made_once_for_many_scrapes(void **state)
{
    char answer[ANSWER_SIZE];
    struct fault fault;
    const char *openmetrics = "Accept: application/openmetrics-text\r\n";
    assert_int_equal(scrape_open(seen.scrape, &fault), 0);
    for (int i = 0; i < 10; i++)
        assert_int_equal(scrape("/metrics", "localhost", openmetrics, answer), 200);
    assert_non_null(strstr(answer, "# EOF\n"));
    assert_true(seen.made < 10);
}

static void without_memory_the_answer_is_500(void **state)
{
    char answer[ANSWER_SIZE];
    struct fault fault;
    seen.is_full = true;
    assert_int_equal(scrape_open(seen.scrape, &fault), 0);
    assert_int_equal(scrape("/metrics", "localhost", "", answer), 500);
}

static void by_default_nothing_listens(void **state)
{
    struct fault fault;
    strcpy(seen.config.metrics_listen, "none");
    assert_int_equal(scrape_open(seen.scrape, &fault), 0);
    const struct sockaddr_in address = {.sin_family = AF_INET,
        .sin_port = htons((uint16_t)seen.port),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&address, sizeof address), -1);
    assert_int_equal(errno, ECONNREFUSED);
    close(fd);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(without_a_token_this_machine_may_read),
        TEST(a_token_is_required_where_one_is_set),
        TEST(a_bad_file_of_a_token_is_refused),
        TEST(other_machines_need_a_token),
        TEST(a_text_is_made_once_for_many_scrapes),
        TEST(without_memory_the_answer_is_500),
        TEST(by_default_nothing_listens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
