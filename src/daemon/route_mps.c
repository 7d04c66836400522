/* MPS by hand: who has a control daemon, and starting and stopping one. */
#include <errno.h>
#include <pwd.h>

#include "base/clock.h"
#include "daemon/fields.h"
#include "daemon/mps_care.h"
#include "daemon/routes.h"

static json_t *record_user(const struct mps_user *user)
{
    pid_t pid = mps_user_daemon(user);
    bool busy = errand_is_under_way(&user->errand);
    bool sick = !pid && clock_monotonic_us() < user->sick_until_us;
    const struct passwd *known = getpwuid(user->uid);
    char number[16];
    snprintf(number, sizeof number, "%u", (unsigned)user->uid);
    return json_pack("{s:I, s:s, s:s, s:s, s:o, s:i, s:s, s:s}", "uid", (json_int_t)user->uid,
        "user", known ? known->pw_name : number, "state",
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

/* A user without a name has the group that his last task by MPS had. */
static int find_group(const struct daemon *daemon, uid_t uid, struct fault *fault, gid_t *ret_gid)
{
    const struct passwd *known = getpwuid(uid);
    const struct mps_user *user = daemon->mps_users;
    while (user && user->uid != uid)
        user = user->next;
    if (!known && !user)
        return fault_set(
            fault, EINVAL, "uid %u: no such user is known here, nor his group", (unsigned)uid);
    *ret_gid = known ? known->pw_gid : user->gid;
    return 0;
}

/* The asker's own; root may name another's. */
static int read_owner(const struct daemon *daemon, const struct api_request *request,
    uid_t *ret_uid, gid_t *ret_gid, struct fault *fault)
{
    struct api_peer peer = api_request_peer(request);
    const json_t *body = api_request_body(request);
    int64_t uid = peer.uid;
    bool given = false;
    int r = body ? field_integer(body, "uid", 0, UINT32_MAX, fault, &given, &uid) : 0;
    if (r < 0)
        return r;
    if ((uid_t)uid != peer.uid && peer.uid != 0)
        return fault_set(fault, EPERM, "user %lld's MPS is not yours", (long long)uid);
    *ret_uid = (uid_t)uid;
    *ret_gid = peer.gid;
    return (uid_t)uid == peer.uid ? 0 : find_group(daemon, (uid_t)uid, fault, ret_gid);
}

static void reply_fault(struct api_request *request, int r, const struct fault *fault)
{
    int status = r == -EPERM ? 403 : r == -EINVAL ? 400 : r == -EBUSY || r == -ESRCH ? 409 : 503;
    api_reply_error(request, status, "%s", fault->text);
}

void route_mps_start(void *context, struct api_request *request)
{
    struct fault fault = {0};
    uid_t uid;
    gid_t gid;
    int r = read_owner(context, request, &uid, &gid, &fault);
    if (r == 0)
        r = mps_start_by_hand(context, uid, gid, request, &fault);
    if (r < 0)
        reply_fault(request, r, &fault);
}

void route_mps_stop(void *context, struct api_request *request)
{
    struct fault fault = {0};
    uid_t uid;
    gid_t gid;
    int r = read_owner(context, request, &uid, &gid, &fault);
    if (r == 0)
        r = mps_stop_by_hand(context, uid, request, &fault);
    if (r < 0)
        reply_fault(request, r, &fault);
}
