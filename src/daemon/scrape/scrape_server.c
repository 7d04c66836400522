/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An example of a scrape:
 *
 *     Prometheus   GET /metrics, Accept: application/openmetrics-text, Authorization: Bearer 6a...
 *     collocd the present text, or that of less than half a second ago
 *
 * The token is the first line of a file that only the daemon's user can read; Prometheus reads its
 * copy by `authorization: {credentials_file: ...}`. Without a token the Host header must name this
 * machine: a page in a browser here that lets its own name resolve to this address (DNS rebinding)
 * sends that name.
 */
#include "daemon/scrape/scrape_server.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/secret_file.h"
#include "daemon/exposition.h"
#include "daemon/http/http_answers.h"
#include "service/tcp_server.h"

#define IDLE_TIMEOUT_S 30 /* chosen: twice Prometheus' usual scrape interval */
enum { TOKEN_SIZE = 256, TOKEN_LENGTH_MIN = 16 }; /* chosen */

/* A text that scrapers have got lately. */
struct made_text {
    char *text; /* NULL: none yet */
    int64_t made_us;
};

struct scrape {
    struct scrape_options options;
    struct tcp_server *server;
    char token[TOKEN_SIZE];   /* NULs behind it; "": none is required */
    struct made_text made[2]; /* in the text format, and as OpenMetrics */
};

/* ---- who may read ---- */

static bool has_token(const struct scrape *scrape, const char *authorization)
{
    static const char scheme[] = "Bearer ";
    char shown[TOKEN_SIZE] = "";
    if (!authorization || strncasecmp(authorization, scheme, sizeof scheme - 1) != 0 ||
        strlen(authorization + sizeof scheme - 1) >= TOKEN_SIZE)
        return false;
    strcpy(shown, authorization + sizeof scheme - 1);
    unsigned char difference = 0; /* comparing takes the same time whatever was shown */
    for (size_t i = 0; i < TOKEN_SIZE; i++)
        difference |= (unsigned char)(shown[i] ^ scrape->token[i]);
    return difference == 0;
}

static bool admit_reader(void *data, struct api_request *request, struct api_peer *ret_peer)
{
    const struct scrape *scrape = data;
    const struct tcp_address *address = tcp_server_address(scrape->server);
    if (*scrape->token && !has_token(scrape, api_request_header(request, "Authorization"))) {
        api_reply_error(request, 401,
            "these metrics are for readers with the token of the setting metrics-token-file");
        return false;
    }
    if (!*scrape->token && !tcp_address_is_host(address, api_request_header(request, "Host"))) {
        api_reply_error(
            request, 403, "this host name is not this server's: ask for localhost or its address");
        return false;
    }
    return true;
}

static int read_token(struct scrape *scrape, const char *path, struct fault *fault)
{
    int length = secret_file_read(
        "metrics-token-file", path, SECRET_OF_ANYBODY, fault, scrape->token, sizeof scrape->token);
    if (length == -EINVAL || (length >= 0 && length < TOKEN_LENGTH_MIN) ||
        (length >= 0 && strchr(scrape->token, ' '))) {
        *scrape->token = '\0';
        return fault_set(fault, EINVAL,
            "metrics-token-file: %s: its first line must be a token of %d to %d printable ASCII "
            "characters without a space",
            path, TOKEN_LENGTH_MIN, TOKEN_SIZE - 1);
    }
    return length < 0 ? length : 0;
}

/* ---- the text ---- */

static const char *find_text(struct scrape *scrape, bool is_openmetrics)
{
    struct made_text *made = &scrape->made[is_openmetrics];
    int64_t now_us = clock_monotonic_us();
    if (made->text && now_us - made->made_us < SCRAPE_REUSED_MS * MS_US)
        return made->text;
    char *text = http_make_metrics(scrape->options.http, is_openmetrics);
    if (!text)
        return NULL;
    free(made->text);
    *made = (struct made_text){text, now_us};
    return text;
}

static void route_metrics(void *context, struct api_request *request)
{
    const char *accept = api_request_header(request, "Accept");
    bool is_openmetrics = exposition_wants_openmetrics(accept);
    const char *text = find_text(context, is_openmetrics);
    if (text)
        api_reply_bytes(request, exposition_type(is_openmetrics), text, strlen(text), NULL);
    else
        api_reply(request, 500, NULL);
}

/* ---- life ---- */

struct scrape *scrape_create(const struct scrape_options *options)
{
    struct scrape *scrape = calloc(1, sizeof *scrape);
    if (!scrape)
        return NULL;
    scrape->options = *options;
    scrape->server = tcp_server_create(options->loop);
    if (scrape->server)
        return scrape;
    free(scrape);
    return NULL;
}

static void on_listening(void *context)
{
    const struct scrape *scrape = context;
    char shown[TCP_ADDRESS_TEXT_SIZE];
    log_info("metrics for Prometheus are at http://%s/metrics",
        tcp_address_format(tcp_server_address(scrape->server), shown));
}

static int start_server(struct scrape *scrape, struct fault *fault)
{
    static const struct api_route routes[] = {{"GET", "/metrics", route_metrics}, {0}};
    static const struct api_header headers[] = {
        {"X-Content-Type-Options", "nosniff"}, {"Cache-Control", "no-store"}, {NULL, NULL}};
    const struct api_server_options options = {
        .headers = headers,
        .admit = admit_reader,
        .server_data = scrape,
        .routes = routes,
        .context = scrape,
        .version = COLLOC_VERSION,
        .body_max_bytes = 0,
        .bytes_max = (size_t)scrape->options.config->request_bytes_max,
        .idle_timeout_s = IDLE_TIMEOUT_S,
        .proves_users = true,
    };
    return tcp_server_listen_patiently(scrape->server, "metrics-listen",
        scrape->options.config->metrics_listen, &options, on_listening, fault);
}

int scrape_check(const struct config *config, struct fault *fault)
{
    struct tcp_address address;
    if (strcmp(config->metrics_listen, "none") != 0 && !*config->metrics_token_file &&
        tcp_address_parse(config->metrics_listen, &address) == 0 &&
        !tcp_address_is_loopback(&address))
        return fault_set(fault, EINVAL,
            "metrics-listen: other machines reach %s, and the metrics name users and tasks: set "
            "metrics-token-file, too",
            config->metrics_listen);
    return 0;
}

int scrape_open(struct scrape *scrape, struct fault *fault)
{
    const struct config *config = scrape->options.config;
    if (strcmp(config->metrics_listen, "none") == 0)
        return 0;
    int r = scrape_check(config, fault);
    if (r == 0 && *config->metrics_token_file)
        r = read_token(scrape, config->metrics_token_file, fault);
    return r < 0 ? r : start_server(scrape, fault);
}

void scrape_close(struct scrape *scrape)
{
    if (scrape)
        tcp_server_close(scrape->server);
}

void scrape_destroy(struct scrape *scrape)
{
    if (!scrape)
        return;
    tcp_server_destroy(scrape->server);
    for (size_t i = 0; i < 2; i++)
        free(scrape->made[i].text);
    explicit_bzero(scrape->token, sizeof scrape->token);
    free(scrape);
}
