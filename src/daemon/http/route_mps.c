/* SPDX-License-Identifier: Apache-2.0 */
/* GET /v1/mps, POST /v1/mps/start and /stop: control daemons by hand, for `colloc mps`. */
#include <errno.h>
#include <stdlib.h>

#include "daemon/http/http_answers.h"
#include "daemon/http/request_fields.h"
#include "daemon/http/routes.h"
#include "daemon/mps/mps_by_hand.h"

void route_mps(void *context, struct api_request *request)
{
    const struct http *http = context;
    api_reply(request, 200, json_pack("{s:o}", "daemons", mps_list(http->parts.mps)));
}

/* A request to start or stop a user's MPS, until the user's group is known. */
struct mps_order {
    struct http *http;
    struct api_request *request;
    bool start;
    char instance[96]; /* UUID of the MIG instance whose control daemon is stopped; "": none */
};

static int status_of(int r)
{
    switch (r) {
    case -EINVAL:
        return 400;
    case -EPERM:
        return 403;
    case -EBUSY:
    case -ESRCH:
        return 409;
    default:
        return 503;
    }
}

static void reply_fault(struct api_request *request, int r, const struct fault *fault)
{
    api_reply_error(request, status_of(r), "%s", fault->text);
}

static void carry_out(const struct mps_order *order, uid_t uid, gid_t gid)
{
    struct fault fault = {0};
    int r = order->start
                ? mps_start_by_hand(order->http->parts.mps, uid, gid, order->request, &fault)
                : mps_stop_by_hand(
                      order->http->parts.mps, uid, order->instance, order->request, &fault);
    if (r < 0)
        reply_fault(order->request, r, &fault);
}

/* A user that is not in the user database has the group of its last task that used MPS. */
static void on_owner_known(void *context, const struct name *name)
{
    struct mps_order *order = context;
    gid_t gid = name->gid;
    if (name->state == NAME_KNOWN || mps_find_group(order->http->parts.mps, name->uid, &gid))
        carry_out(order, name->uid, gid);
    else
        api_reply_error(order->request, 400, "uid %u: no such user is known here, nor its group",
            (unsigned)name->uid);
    http_serve_soon(order->http);
    free(order);
}

static int read_instance(const json_t *body, struct mps_order *order, struct fault *fault)
{
    const char *instance = "";
    int r = field_text(body, "gpu_uuid", sizeof order->instance - 1, fault, &instance);
    if (r == 0 && *instance && order->start)
        return fault_set(fault, EINVAL,
            "gpu_uuid: the control daemon of a MIG instance is started for its first task only");
    snprintf(order->instance, sizeof order->instance, "%s", instance);
    return r;
}

/* A user may change only its own control daemon, root every user's. */
static void change_mps(struct http *http, struct api_request *request, bool start)
{
    struct api_peer peer = api_request_peer(request);
    struct mps_order order = {.http = http, .request = request, .start = start};
    const json_t *body = api_request_body(request);
    int64_t uid = peer.uid;
    bool given = false;
    struct fault fault = {0};
    int r = body ? field_integer(body, "uid", 0, UINT32_MAX, &fault, &given, &uid) : 0;
    if (r == 0 && body)
        r = read_instance(body, &order, &fault);
    if (r == 0 && (uid_t)uid != peer.uid && peer.uid != 0)
        r = fault_set(&fault, EPERM, "user %lld's MPS is not yours", (long long)uid);
    struct mps_order *kept = r == 0 && (uid_t)uid != peer.uid ? malloc(sizeof *kept) : NULL;
    if (r < 0) {
        reply_fault(request, r, &fault);
    } else if ((uid_t)uid == peer.uid) {
        carry_out(&order, peer.uid, peer.gid);
    } else if (!kept) {
        api_reply(request, 500, NULL);
    } else {
        *kept = order;
        names_ask_uid(http->parts.names, (uid_t)uid, on_owner_known, kept);
    }
}

void route_mps_start(void *context, struct api_request *request)
{
    change_mps(context, request, true);
}

void route_mps_stop(void *context, struct api_request *request)
{
    change_mps(context, request, false);
}
