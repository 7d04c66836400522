/* SPDX-License-Identifier: Apache-2.0 */
/* MPS by hand: who has a control daemon, and starting and stopping one. */
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "daemon/http/request_fields.h"
#include "daemon/http/routes.h"
#include "daemon/mps/mps_manager.h"

static json_t *record_user(const struct mps_user *user)
{
    pid_t pid = mps_user_daemon(user);
    bool busy = user_helper_is_under_way(&user->helper);
    bool sick = !pid && clock_monotonic_us() < user->sick_until_us;
    const char *name = names_of_uid(user->daemon->names, user->uid)->name;
    return json_pack("{s:I, s:s, s:s, s:s, s:o, s:i, s:s, s:s}", "uid", (json_int_t)user->uid,
        "user", name, "state",
        busy   ? "busy"
        : pid  ? "running"
        : sick ? "failed"
               : "stopped",
        "state_text", sick ? user->why : "", "pid", pid ? json_integer(pid) : json_null(), "tasks",
        mps_user_tasks(user), "pipe_directory", user->pipe_dir, "log_directory", user->log_dir);
}

void route_mps(void *context, struct api_request *request)
{
    const struct daemon *daemon = context;
    json_t *users = json_array();
    for (const struct mps_user *user = daemon->mps_users; user; user = user->next)
        json_array_append_new(users, record_user(user));
    api_reply(request, 200, json_pack("{s:o}", "daemons", users));
}

/* A request to start or stop a user's MPS, until the user's group is known. */
struct mps_order {
    struct daemon *daemon;
    struct api_request *request;
    bool start;
};

static void reply_fault(struct api_request *request, int r, const struct fault *fault)
{
    int status = r == -EPERM ? 403 : r == -EINVAL ? 400 : r == -EBUSY || r == -ESRCH ? 409 : 503;
    api_reply_error(request, status, "%s", fault->text);
}

static void carry_out(const struct mps_order *order, uid_t uid, gid_t gid)
{
    struct fault fault = {0};
    int r = order->start ? mps_start_by_hand(order->daemon, uid, gid, order->request, &fault)
                         : mps_stop_by_hand(order->daemon, uid, order->request, &fault);
    if (r < 0)
        reply_fault(order->request, r, &fault);
}

/* A user without a name has the group that the last task by MPS had. */
static void on_owner_known(void *context, const struct name *name)
{
    struct mps_order *order = context;
    const struct mps_user *user = order->daemon->mps_users;
    while (user && user->uid != name->uid)
        user = user->next;
    if (name->state == NAME_KNOWN || user)
        carry_out(order, name->uid, name->state == NAME_KNOWN ? name->gid : user->gid);
    else
        api_reply_error(order->request, 400, "uid %u: no such user is known here, nor his group",
            (unsigned)name->uid);
    daemon_serve_soon(order->daemon);
    free(order);
}

/* The asker's own; root may name another's. */
static void change_mps(struct daemon *daemon, struct api_request *request, bool start)
{
    struct api_peer peer = api_request_peer(request);
    const struct mps_order order = {.daemon = daemon, .request = request, .start = start};
    const json_t *body = api_request_body(request);
    int64_t uid = peer.uid;
    bool given = false;
    struct fault fault = {0};
    int r = body ? field_integer(body, "uid", 0, UINT32_MAX, &fault, &given, &uid) : 0;
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
        names_ask_uid(daemon->names, (uid_t)uid, on_owner_known, kept);
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
