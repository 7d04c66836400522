/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server of the web page with a pretend route and pretend files of the page: this process plays
 * the browser, over the real server on a free port.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>

#include "base/units.h"
#include "pretend_browser.h"
#include "service/web_assets.h"
#include "service/web_server.h"

enum { ADA = 1000 };

static struct {
    uv_loop_t loop;
    char address[64];
    struct web *web;
    char session[256];  /* the secret; "": none */
    const char *header; /* that carries the secret; NULL: the right one */
    const char *host;   /* of the next request; NULL: the right one */
    int answered;       /* requests that reached the route */
    uid_t uid;          /* of the last of them */
} seen;

/* ---- what the part is given ---- */

const struct web_asset *web_asset_find(const char *path)
{
    static const struct web_asset page = {"/", "text/html", "<html>", 6};
    return strcmp(path, "/") == 0 ? &page : NULL;
}

static void route_tasks(void *context, struct api_request *request)
{
    assert_ptr_equal(context, &seen);
    seen.answered++;
    seen.uid = api_request_peer(request).uid;
    api_reply(request, 200, json_pack("{s:[]}", "tasks"));
}

static const struct api_route routes[] = {
    {"GET", "/v1/tasks", route_tasks},
    {"POST", "/v1/tasks", route_tasks},
    {NULL, NULL, NULL},
};

static int set_up(void **state)
{
    memset(&seen, 0, sizeof seen);
    uv_loop_init(&seen.loop);
    strcpy(seen.address, "127.0.0.1:0");
    const struct web_options options = {.loop = &seen.loop,
        .address = seen.address,
        .bytes_max = 1 * MIB,
        .routes = routes,
        .context = &seen};
    seen.web = web_create(&options);
    return seen.web ? 0 : -1;
}

static int tear_down(void **state)
{
    web_close(seen.web);
    uv_run(&seen.loop, UV_RUN_DEFAULT);
    web_destroy(seen.web);
    return uv_loop_close(&seen.loop);
}

/* ---- the browser ---- */

static void open_web(void)
{
    struct fault fault;
    assert_int_equal(web_open(seen.web, &fault), 0);
}

/* Returns the address of a login for ada, for the caller to free. */
static char *make_login(void)
{
    const struct api_peer ada = {.uid = ADA, .gid = ADA};
    struct fault fault;
    char *url = NULL;
    assert_int_equal(web_make_login(seen.web, &ada, &fault, &url), 0);
    return url;
}

/* The port, which is in the address of each login. */
static int find_port(void)
{
    int port = 0;
    char *url = make_login();
    assert_int_equal(sscanf(url, "http://127.0.0.1:%d/", &port), 1);
    free(url);
    return port;
}

/* Sends a request with the session. Returns the status. */
static int request(const char *method, const char *path, char ret_answer[ANSWER_SIZE])
{
    char text[1024];
    int port = find_port();
    snprintf(text, sizeof text, "%s %s HTTP/1.1\r\nHost: %s:%d\r\n%s: %s\r\nContent-Length: 0\r\n",
        method, path, seen.host ? seen.host : "127.0.0.1", port,
        seen.header ? seen.header : "Colloc-Session", seen.session);
    return browse(&seen.loop, port, text, ret_answer);
}

static int get(const char *path)
{
    char answer[ANSWER_SIZE];
    return request("GET", path, answer);
}

/* Logs in as the page does, and keeps the session. Returns the status. */
static int follow(const char *url)
{
    char answer[ANSWER_SIZE];
    int status = request("POST", strstr(url, "/login"), answer);
    const char *session = strstr(answer, "\"session\":\"");
    assert_null(strstr(answer, "Set-Cookie"));
    if (session)
        sscanf(session, "\"session\":\"%255[^\"]", seen.session);
    return status;
}

static void log_in(void)
{
    char *url = make_login();
    assert_int_equal(follow(url), 200);
    assert_int_equal(strlen(seen.session), 64);
    free(url);
}

/* ---- tests ---- */

static void without_a_session_only_the_page_is_answered(void **state)
{
    char answer[ANSWER_SIZE];
    open_web();
    assert_int_equal(request("GET", "/", answer), 200);
    assert_non_null(strstr(answer, "default-src 'none'"));
    assert_non_null(strstr(answer, "<html>"));
    assert_int_equal(get("/v1/tasks"), 401);
    assert_int_equal(seen.answered, 0);
}

static void a_request_counts_as_that_of_the_user(void **state)
{
    open_web();
    log_in();
    assert_int_equal(get("/v1/tasks"), 200);
    assert_int_equal(seen.answered, 1);
    assert_int_equal(seen.uid, ADA);
    seen.session[strlen(seen.session) - 1] ^= 1; /* another session */
    assert_int_equal(get("/v1/tasks"), 401);
    assert_int_equal(seen.answered, 1);
}

static void a_login_is_good_once(void **state)
{
    open_web();
    char answer[ANSWER_SIZE];
    char *url = make_login();
    assert_int_equal(get(strstr(url, "/login")), 200); /* a preview of the address: only the page */
    assert_int_equal(follow(url), 200);
    assert_int_equal(follow(url), 403);
    free(url);
    assert_int_equal(request("POST", "/login?token=guess", answer), 403);
    assert_int_equal(request("POST", "/login", answer), 403);
}

/* Browsers send cookies to all ports of a host, and to all users' servers there. */
static void a_cookie_is_no_session(void **state)
{
    char cookie[300];
    open_web();
    log_in();
    snprintf(cookie, sizeof cookie, "session=%s", seen.session);
    strcpy(seen.session, cookie);
    seen.header = "Cookie";
    assert_int_equal(get("/v1/tasks"), 401);
    assert_int_equal(seen.answered, 0);
}

static void a_logout_ends_the_session(void **state)
{
    char answer[ANSWER_SIZE];
    open_web();
    assert_int_equal(request("POST", "/logout", answer), 401);
    log_in();
    assert_int_equal(request("POST", "/logout", answer), 200);
    assert_int_equal(get("/v1/tasks"), 401);
    assert_int_equal(seen.answered, 0);
}

static void nothing_can_be_changed(void **state)
{
    char answer[ANSWER_SIZE];
    open_web();
    log_in();
    assert_int_equal(request("POST", "/v1/tasks", answer), 405);
    assert_int_equal(seen.answered, 0);
}

static void another_host_name_is_refused(void **state)
{
    open_web();
    log_in();
    seen.host = "evil.example";
    assert_int_equal(get("/v1/tasks"), 403);
    assert_int_equal(get("/"), 403);
    seen.host = "localhost";
    assert_int_equal(get("/v1/tasks"), 200);
    assert_int_equal(seen.answered, 1);
}

static void on_demand_it_listens_with_the_first_login(void **state)
{
    const struct api_peer ada = {.uid = ADA, .gid = ADA};
    struct fault fault;
    char *url;
    strcpy(seen.address, "none");
    open_web();
    assert_int_equal(web_make_login(seen.web, &ada, &fault, &url), -EPERM);
    strcpy(seen.address, "on-demand");
    log_in();
    assert_int_equal(get("/v1/tasks"), 200);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(without_a_session_only_the_page_is_answered),
        TEST(a_request_counts_as_that_of_the_user),
        TEST(a_login_is_good_once),
        TEST(a_cookie_is_no_session),
        TEST(a_logout_ends_the_session),
        TEST(nothing_can_be_changed),
        TEST(another_host_name_is_refused),
        TEST(on_demand_it_listens_with_the_first_login),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
