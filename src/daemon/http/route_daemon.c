/* SPDX-License-Identifier: Apache-2.0 */
/* The short routes about the daemon and its machine: GPUs, metrics, sums, a login to the page. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "daemon/gpus/gpus.h"
#include "daemon/gpus/gpus_query.h"
#include "daemon/http/prometheus.h"
#include "daemon/http/public_json.h"
#include "daemon/http/request_fields.h"
#include "daemon/http/routes.h"

void route_gpus(void *context, struct api_request *request)
{
    api_reply(request, 200, public_gpus(context));
}

/* By index or UUID; -1: there is none. */
static int find_gpu(const struct http *http, const char *name)
{
    struct gpu_report gpu;
    for (size_t i = 0; gpus_report(http->parts.gpus, i, &gpu); i++)
        if (strcmp(gpu.info->index, name) == 0 || strcmp(gpu.info->uuid, name) == 0)
            return gpu.view < 0 ? -1 : (int)i;
    return -1;
}

/* After an Xid error a GPU takes no task until an administrator clears it; the log has which user
 * did. */
void route_clear(void *context, struct api_request *request)
{
    struct http *http = context;
    uid_t uid = api_request_peer(request).uid;
    const char *name = "";
    struct fault fault = {0};
    const json_t *body = api_request_body(request);
    if (uid != 0 && uid != geteuid()) {
        api_reply_error(request, 403, "only root clears GPUs");
        return;
    }
    if (body && field_text(body, "gpu", 96, &fault, &name) < 0) {
        api_reply_error(request, 400, "%s", fault.text);
        return;
    }
    int gpu = find_gpu(http, name);
    if (gpu < 0) {
        api_reply_error(request, 404, "there is no GPU '%.80s'", name);
        return;
    }
    struct gpu_report report;
    gpus_report(http->parts.gpus, (size_t)gpu, &report);
    const char *trouble = report.sample->trouble.text;
    log_warning("GPU %s: cleared by user %u (%s)", report.info->index, (unsigned)uid,
        *trouble ? trouble : "nothing was wrong with it");
    api_reply(request, 200, json_pack("{s:s}", "cleared", report.info->index));
    gpus_clear_errors(http->parts.gpus, (size_t)gpu);
}

void route_metrics(void *context, struct api_request *request)
{
    bool is_openmetrics = exposition_wants_openmetrics(api_request_header(request, "Accept"));
    const char *text = prometheus_shared_text(context, is_openmetrics);
    if (text)
        api_reply_bytes(request, exposition_type(is_openmetrics), text, strlen(text), NULL);
    else
        api_reply(request, 500, NULL);
}

void route_info(void *context, struct api_request *request)
{
    api_reply(request, 200, public_info(context));
}

/* The user database has answered for the user of the request. A user has as many uids that are not
 * in it as /etc/subuid grants, and with each of them could take sessions and connections. */
static void on_visitor(void *context, const struct name *name)
{
    struct api_request *request = context;
    const struct http *http = api_request_context(request);
    struct api_peer peer = api_request_peer(request);
    struct fault fault = {0};
    char *url;
    if (peer.uid != 0 && peer.uid != geteuid() && name->state != NAME_KNOWN) {
        api_reply_error(request, 403, "user %u is not in the user database", (unsigned)peer.uid);
        return;
    }
    int r = http->parts.hooks.make_login(http->parts.hooks.context, &peer, &fault, &url);
    if (r < 0) {
        api_reply_error(request, r == -EPERM ? 409 : 503, "%s", fault.text);
        return;
    }
    api_reply(request, 200, json_pack("{s:s}", "url", url));
    free(url);
}

/* The kernel has identified the user, which gets the address of a login to the web page. */
void route_web(void *context, struct api_request *request)
{
    struct http *http = context;
    names_ask_uid(http->parts.names, api_request_peer(request).uid, on_visitor, request);
}
