/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A login goes like this:
 *
 *     colloc web      POST /v1/web over the Unix socket: the kernel identifies the user
 *     collocd         http://127.0.0.1:7480/login?token=5f...      (good once, for five minutes)
 *     browser         GET /login?token=5f...: the page itself, which sends the token back:
 *     page            POST /login?token=5f...
 *     collocd         {"session": "9c..."}, for twelve hours
 *     page            GET /v1/tasks, /v1/events ... with the header Colloc-Session: 9c...
 *
 * There is no cookie: a browser sends a cookie to every port of a host, so it would show the secret
 * to the servers of other users of this machine. The page keeps the secret in the browser's storage
 * for its origin, which includes the port (web/src/session.js).
 */
#include "service/web_server.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/log.h"
#include "service/sessions.h"
#include "service/tcp_server.h"
#include "service/web_assets.h"

#define USUAL_ADDRESS            "127.0.0.1:7480" /* chosen: not in use by a common service */
#define ANY_PORT                 "127.0.0.1:0"
#define CONNECTIONS_PER_USER_MAX 256 /* as of the Unix socket */
#define IDLE_TIMEOUT_S           75  /* as of the Unix socket */

static const char session_header[] = "Colloc-Session";

struct web {
    struct web_options options;
    struct sessions *sessions;
    struct tcp_server *server;
    struct api_route *routes;
};

static const struct api_header headers[] = {
    {"Content-Security-Policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
    {"X-Content-Type-Options", "nosniff"},
    {"X-Frame-Options", "DENY"},
    {"Referrer-Policy", "no-referrer"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
    {"Cross-Origin-Opener-Policy", "same-origin"},
    {NULL, NULL},
};

/* ---- the user of a request ---- */

static bool is_own(const char *path)
{
    return strcmp(path, "/login") == 0 || web_asset_find(path);
}

static bool admit_request(void *data, struct api_request *request, struct api_peer *ret_peer)
{
    struct web *web = data;
    if (!tcp_address_is_host(
            tcp_server_address(web->server), api_request_header(request, "Host"))) {
        api_reply_error(request, 403,
            "this host name is not the page's: open it as localhost or by its address");
        return false;
    }
    const char *session = api_request_header(request, session_header);
    if (session &&
        sessions_find(web->sessions, session, clock_monotonic_us(), &ret_peer->uid, &ret_peer->gid))
        return true;
    if (is_own(api_request_path(request)))
        return true;
    api_reply_error(
        request, 401, "log in first: `colloc web --print-url` prints the address to open");
    return false;
}

/* ---- routes ---- */

static void route_asset(void *context, struct api_request *request)
{
    static const struct api_header no_store[] = {{"Cache-Control", "no-cache"}, {NULL, NULL}};
    const struct web_asset *asset = web_asset_find(api_request_path(request));
    api_reply_bytes(request, asset->type, asset->data, asset->size, no_store);
}

/* The page reads the token from its address: whoever only opens the address does not use it up. */
static void route_login_page(void *context, struct api_request *request)
{
    static const struct api_header no_store[] = {{"Cache-Control", "no-store"}, {NULL, NULL}};
    const struct web_asset *page = web_asset_find("/");
    api_reply_bytes(request, page->type, page->data, page->size, no_store);
}

static void route_login(void *context, struct api_request *request)
{
    struct web *web = api_request_server_data(request);
    const char *token = api_request_query(request, "token");
    char session[SESSION_SECRET_SIZE];
    if (!token || sessions_redeem(web->sessions, token, clock_monotonic_us(), session) < 0) {
        api_reply_error(request, 403,
            "this login is used or has expired: `colloc web --print-url` prints a new one");
        return;
    }
    api_reply(
        request, 200, json_pack("{s:s, s:i}", "session", session, "life_s", (int)SESSION_LIFE_S));
}

static void route_logout(void *context, struct api_request *request)
{
    struct web *web = api_request_server_data(request);
    sessions_end(web->sessions, api_request_header(request, session_header), clock_monotonic_us());
    api_reply(request, 200, json_object());
}

static bool is_get(const struct api_route *route)
{
    return strcmp(route->method, "GET") == 0;
}

/* Those of GET, and the page's own. */
static struct api_route *make_routes(const struct api_route *all)
{
    static const struct api_route own[] = {
        {"GET", "/", route_asset},
        {"GET", "/page.js", route_asset},
        {"GET", "/page.css", route_asset},
        {"GET", "/login", route_login_page},
        {"POST", "/login", route_login},
        {"POST", "/logout", route_logout},
    };
    size_t n = ARRAY_SIZE(own);
    for (const struct api_route *route = all; route->method; route++)
        n += is_get(route);
    struct api_route *routes = calloc(n + 1, sizeof *routes);
    if (!routes)
        return NULL;
    memcpy(routes, own, sizeof own);
    n = ARRAY_SIZE(own);
    for (const struct api_route *route = all; route->method; route++)
        if (is_get(route))
            routes[n++] = *route;
    return routes;
}

/* ---- listening ---- */

void web_run(struct web *web)
{
    if (web)
        tcp_server_run(web->server);
}

static struct api_server_options options_of(struct web *web)
{
    return (struct api_server_options){
        .headers = headers,
        .admit = admit_request,
        .server_data = web,
        .routes = web->routes,
        .context = web->options.context,
        .version = COLLOC_VERSION,
        .body_max_bytes = 0,
        .bytes_max = web->options.bytes_max,
        .idle_timeout_s = IDLE_TIMEOUT_S,
        .connections_per_user_max = CONNECTIONS_PER_USER_MAX,
        .proves_users = true,
    };
}

static bool is_fixed(const char *address)
{
    return strcmp(address, "none") != 0 && strcmp(address, "on-demand") != 0;
}

static void warn_of_readers(const struct tcp_address *address)
{
    char shown[TCP_ADDRESS_TEXT_SIZE];
    if (!tcp_address_is_loopback(address))
        log_warning("the web page at %s is not encrypted, and other machines reach it: a tunnel or "
                    "a proxy with TLS is safer",
            tcp_address_format(address, shown));
}

void web_check(const char *setting)
{
    struct tcp_address address;
    if (is_fixed(setting) && tcp_address_parse(setting, &address) == 0)
        warn_of_readers(&address);
}

static void on_listening(void *context)
{
    const struct web *web = context;
    char shown[TCP_ADDRESS_TEXT_SIZE];
    const struct tcp_address *address = tcp_server_address(web->server);
    log_info("the web page is at http://%s/", tcp_address_format(address, shown));
    warn_of_readers(address);
}

static int listen_at(struct web *web, const char *text, struct fault *fault)
{
    const struct api_server_options options = options_of(web);
    int r = tcp_server_listen(web->server, text, &options, fault);
    if (r < 0)
        return fault_prefix(fault, r, "web");
    on_listening(web);
    return 0;
}

static int listen_on_demand(struct web *web, struct fault *fault)
{
    if (tcp_server_is_listening(web->server))
        return 0;
    if (strcmp(web->options.address, "none") == 0)
        return fault_set(fault, EPERM, "this daemon serves no web page (setting web: none)");
    if (is_fixed(web->options.address)) /* its port was taken when the daemon started */
        return listen_at(web, web->options.address, fault);
    int r = listen_at(web, USUAL_ADDRESS, fault);
    return r == -EADDRINUSE ? listen_at(web, ANY_PORT, fault) : r;
}

/* ---- life ---- */

struct web *web_create(const struct web_options *options)
{
    struct web *web = calloc(1, sizeof *web);
    if (!web)
        return NULL;
    web->options = *options;
    web->sessions = sessions_create();
    web->routes = make_routes(options->routes);
    web->server = web->sessions && web->routes ? tcp_server_create(options->loop) : NULL;
    if (web->server)
        return web;
    web_destroy(web);
    return NULL;
}

int web_open(struct web *web, struct fault *fault)
{
    const char *address = web->options.address;
    if (!is_fixed(address))
        return 0;
    const struct api_server_options options = options_of(web);
    return tcp_server_listen_patiently(web->server, "web", address, &options, on_listening, fault);
}

void web_close(struct web *web)
{
    if (web)
        tcp_server_close(web->server);
}

void web_destroy(struct web *web)
{
    if (!web)
        return;
    tcp_server_destroy(web->server);
    sessions_destroy(web->sessions);
    free(web->routes);
    free(web);
}

int web_make_login(
    struct web *web, const struct api_peer *peer, struct fault *fault, char **ret_url)
{
    char token[SESSION_SECRET_SIZE], address[TCP_ADDRESS_TEXT_SIZE];
    int r = listen_on_demand(web, fault);
    if (r < 0)
        return r;
    r = sessions_make_token(web->sessions, peer->uid, peer->gid, clock_monotonic_us(), token);
    if (r < 0)
        return fault_set(fault, -r,
            r == -EAGAIN ? "too many logins are open: try again later"
                         : "no random numbers are to be had");
    tcp_address_format(tcp_server_address(web->server), address);
    if (asprintf(ret_url, "http://%s/login?token=%s", address, token) < 0)
        return fault_set(fault, ENOMEM, "out of memory");
    return 0;
}
