/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One MPS control daemon per user. It is started as that user when the first task needs it, and
 * stopped when it has had no task for the time of the setting mps-linger. So clients of one user
 * share a GPU's SMs, and a fault of one user's client does not stop the tasks of another user.
 *
 * A control daemon goes through these states. A helper process that has become the user starts and
 * stops it, so that the loop never waits for it (user_helper.h):
 *
 *     none --first task--> being started --> in use --last task ends--> unused
 *                               |               ^                         |  mps-linger later
 *                               | fails         +---------new task--------+
 *                               v                                         v
 *                        not tried again                           being stopped --> none
 *                        for a minute
 */
#include "daemon/mps/mps_manager.h"
#include "daemon/mps/mps_by_hand.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/units.h"
#include "daemon/user_helper.h"
#include "gpu/mps.h"

#define RETRY_US      (60 * SECOND_US) /* chosen: a start that failed would fail again sooner */
#define START_MS      ((int)(MPS_START_LIMIT_US / MS_US) + 1000)
#define STOP_MS       4000      /* chosen: `quit` answers at once, or hangs */
#define CLIENTS_MAX   64        /* of a message; chosen */
#define STOP_AGAIN_US SECOND_US /* chosen */

/* A user's control daemon. */
struct mps_user {
    struct mps_user *next;
    struct mps *mps;
    uid_t uid;
    gid_t gid;
    char home[560], pipe_dir[600], log_dir[600];
    struct user_helper helper; /* its daemon is being started or stopped */
    struct api_request *asker; /* the request that waits for that, or NULL */
    int64_t unused_since_us;   /* monotonic; 0: in use, or there is none */
    int64_t failed_until_us;   /* it failed to start: not tried again until then, */
    char why[512];             /* for this reason */
};

struct mps {
    uv_loop_t *loop;
    const struct config *config;
    struct names *names;
    struct mps_hooks hooks;
    struct mps_user *users;
    uv_timer_t *timer; /* when the first unused daemon is stopped */
    bool is_closed;
};

/* ---- life ---- */

static void on_timer_closed(uv_handle_t *timer)
{
    free(timer);
}

struct mps *mps_create(const struct mps_options *options)
{
    struct mps *mps = calloc(1, sizeof *mps);
    uv_timer_t *timer = calloc(1, sizeof *timer);
    if (!mps || !timer) {
        free(mps);
        free(timer);
        return NULL;
    }
    *mps = (struct mps){
        .loop = options->loop,
        .config = options->config,
        .names = options->names,
        .hooks = options->hooks,
        .timer = timer,
    };
    uv_timer_init(mps->loop, timer);
    timer->data = mps;
    return mps;
}

void mps_destroy(struct mps *mps)
{
    while (mps && mps->users) {
        struct mps_user *user = mps->users;
        mps->users = user->next;
        free(user);
    }
    free(mps);
}

/* ---- users ---- */

static struct mps_user *find_user(const struct mps *mps, uid_t uid)
{
    struct mps_user *user = mps->users;
    while (user && user->uid != uid)
        user = user->next;
    return user;
}

static void write_home(const struct mps *mps, uid_t uid, char *path, size_t size)
{
    snprintf(path, size, "%s/mps/%u", mps->config->state_dir, (unsigned)uid);
}

void mps_pipe_dir(const struct mps *mps, uid_t uid, char *path, size_t size)
{
    char home[sizeof((struct mps_user *)0)->home];
    write_home(mps, uid, home, sizeof home);
    snprintf(path, size, "%s/pipe", home);
}

/* Returns NULL when memory is out. */
static struct mps_user *get_user(struct mps *mps, uid_t uid, gid_t gid)
{
    struct mps_user *user = find_user(mps, uid);
    if (user)
        return user;
    user = calloc(1, sizeof *user);
    if (!user)
        return NULL;
    *user = (struct mps_user){.next = mps->users, .mps = mps, .uid = uid, .gid = gid};
    write_home(mps, uid, user->home, sizeof user->home);
    mps_pipe_dir(mps, uid, user->pipe_dir, sizeof user->pipe_dir);
    snprintf(user->log_dir, sizeof user->log_dir, "%s/log", user->home);
    mps->users = user;
    return user;
}

/* The user may put links below the user's folder: they must not lead root elsewhere. Returns 0
 * when there is none. */
static pid_t find_control_daemon(const struct mps_user *user)
{
    char path[600], pipe_dir[32];
    snprintf(path, sizeof path, "%s/mps", user->mps->config->state_dir);
    snprintf(pipe_dir, sizeof pipe_dir, "%u/pipe", (unsigned)user->uid);
    int folder = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0)
        return 0;
    pid_t pid = mps_find_below(folder, pipe_dir, geteuid() == 0 ? user->uid : geteuid());
    close(folder);
    return pid;
}

static int count_tasks(const struct mps_user *user)
{
    return user->mps->hooks.count_clients(user->mps->hooks.context, user->uid);
}

/* ---- in the helper process, as the user ---- */

static int make_home(const struct mps_user *user, struct fault *fault)
{
    int r = file_make_folders(user->home, 0711);
    if (r == 0 && geteuid() == 0 &&
        (chown(user->home, user->uid, user->gid) < 0 || chmod(user->home, 0700) < 0))
        r = -errno;
    return r < 0 ? fault_set(fault, -r, "%s: %s", user->home, strerror(-r)) : 0;
}

static int start_control_daemon(const struct mps_user *user, struct fault *fault)
{
    const char *uuids[256];
    size_t n = user->mps->hooks.list_gpus(user->mps->hooks.context, uuids, ARRAY_SIZE(uuids));
    int r = mps_start(user->pipe_dir, user->log_dir, uuids, n, fault);
    return r == MPS_ALREADY_ALIVE ? 0 : r;
}

/* Refuses while it has clients: tasks, or a program that the user started by hand. */
static int stop_control_daemon(const struct mps_user *user, struct fault *fault)
{
    struct mps_client clients[CLIENTS_MAX];
    int n = mps_list_clients(user->pipe_dir, clients, CLIENTS_MAX, fault);
    if (n < 0)
        return n;
    if (n > 0)
        return fault_set(
            fault, EBUSY, "%d process%s still use%s it", n, n > 1 ? "es" : "", n > 1 ? "" : "s");
    int r = mps_stop(user->pipe_dir, fault);
    return r == MPS_STILL_ENDING
               ? fault_set(fault, EBUSY, "it has received the command to quit and is still ending")
               : r;
}

static void answer_asker(struct mps_user *user, int answer, const struct fault *fault)
{
    struct api_request *asker = user->asker;
    user->asker = NULL;
    if (!asker)
        return;
    if (answer == 0)
        api_reply(asker, 200,
            json_pack(
                "{s:i, s:b}", "uid", (int)user->uid, "alive", find_control_daemon(user) != 0));
    else
        api_reply_error(asker, answer == -EBUSY ? 409 : 503, "%s", fault->text);
    user->mps->hooks.answered(user->mps->hooks.context);
}

/* ---- starting ---- */

static void on_started(struct user_helper *helper, int answer, const struct fault *fault)
{
    struct mps_user *user = helper->context;
    user->failed_until_us = answer == 0 ? 0 : clock_monotonic_us() + RETRY_US;
    snprintf(user->why, sizeof user->why, "%s", fault->text);
    if (answer == 0)
        log_info("user %u has an MPS control daemon, its pipe directory is %s", (unsigned)user->uid,
            user->pipe_dir);
    bool by_hand = user->asker;
    answer_asker(user, answer, fault);
    user->mps->hooks.ready(user->mps->hooks.context, user->uid);
    if (!by_hand)
        mps_task_ended(user->mps, user->uid); /* its tasks may have been cancelled meanwhile */
}

static int begin_start(struct mps_user *user, struct fault *fault)
{
    int r = make_home(user, fault);
    if (r < 0)
        return r;
    const struct user_helper_order order = {
        .uid = user->uid, .gid = user->gid, .limit_ms = START_MS, .what = "start MPS"};
    int child = user_helper_begin(&user->helper, user->mps->loop, &order, fault);
    if (child == USER_HELPER_CHILD) {
        struct user_helper_report report = {0};
        report.answer = user_helper_become(&order);
        if (report.answer == 0)
            report.answer = start_control_daemon(user, &report.fault);
        user_helper_end(&user->helper, &report);
    }
    user->helper.context = user;
    user->helper.on_done = on_started;
    return child;
}

int mps_prepare(
    struct mps *mps, uid_t uid, gid_t gid, const char **ret_pipe_dir, struct fault *fault)
{
    struct mps_user *user = get_user(mps, uid, gid);
    if (!user)
        return fault_set(fault, ENOMEM, "out of memory");
    user->gid = gid;
    user->unused_since_us = 0;
    *ret_pipe_dir = user->pipe_dir;
    if (user_helper_is_under_way(&user->helper))
        return MPS_WAIT;
    if (find_control_daemon(user))
        return 0;
    if (clock_monotonic_us() < user->failed_until_us)
        return fault_set(fault, EAGAIN, "%s", user->why);
    int r = begin_start(user, fault);
    return r < 0 ? r : MPS_WAIT;
}

/* ---- stopping ---- */

static void on_timer(uv_timer_t *timer);

/* Sets the timer to the end of the first unused daemon's time. */
static void set_timer(struct mps *mps)
{
    int64_t next_us = TIME_NEVER;
    for (const struct mps_user *user = mps->users; user; user = user->next)
        if (user->unused_since_us && user->unused_since_us + mps->config->mps_linger_us < next_us)
            next_us = user->unused_since_us + mps->config->mps_linger_us;
    if (next_us == TIME_NEVER || mps->is_closed)
        return;
    int64_t wait_us = next_us - clock_monotonic_us();
    uv_timer_start(mps->timer, on_timer, wait_us > 0 ? (uint64_t)(wait_us / MS_US) + 1 : 1, 0);
}

/* Its clients may have ended when the timer runs out again. */
static void stop_later(struct mps_user *user)
{
    if (count_tasks(user) == 0)
        user->unused_since_us = clock_monotonic_us() + STOP_AGAIN_US;
    set_timer(user->mps);
}

static void on_stopped(struct user_helper *helper, int answer, const struct fault *fault)
{
    struct mps_user *user = helper->context;
    if (answer == 0)
        log_info("the MPS control daemon of user %u was stopped: no process uses it",
            (unsigned)user->uid);
    else
        log_debug("the MPS control daemon of user %u stays: %s", (unsigned)user->uid, fault->text);
    user->unused_since_us = 0;
    answer_asker(user, answer, fault);
    user->mps->hooks.ready(user->mps->hooks.context, user->uid);
    if (answer < 0)
        stop_later(user);
}

static int begin_stop(struct mps_user *user, struct fault *fault)
{
    const struct user_helper_order order = {
        .uid = user->uid, .gid = user->gid, .limit_ms = STOP_MS, .what = "stop MPS"};
    int child = user_helper_begin(&user->helper, user->mps->loop, &order, fault);
    if (child == USER_HELPER_CHILD) {
        struct user_helper_report report = {0};
        report.answer = user_helper_become(&order);
        if (report.answer == 0)
            report.answer = stop_control_daemon(user, &report.fault);
        user_helper_end(&user->helper, &report);
    }
    user->helper.context = user;
    user->helper.on_done = on_stopped;
    return child;
}

static void on_timer(uv_timer_t *timer)
{
    struct mps *mps = timer->data;
    struct fault fault = {0};
    int64_t now_us = clock_monotonic_us();
    for (struct mps_user *user = mps->users; user; user = user->next) {
        bool over = user->unused_since_us &&
                    now_us - user->unused_since_us >= mps->config->mps_linger_us;
        if (!over)
            continue;
        user->unused_since_us = 0;
        if (!user_helper_is_under_way(&user->helper) && find_control_daemon(user) &&
            begin_stop(user, &fault) < 0)
            log_warning("the MPS control daemon of user %u: %s", (unsigned)user->uid, fault.text);
    }
    set_timer(mps);
}

void mps_linger_changed(struct mps *mps)
{
    set_timer(mps);
}

void mps_task_ended(struct mps *mps, uid_t uid)
{
    struct mps_user *user = find_user(mps, uid);
    if (!user || count_tasks(user) > 0)
        return;
    user->unused_since_us = clock_monotonic_us();
    set_timer(mps);
}

/* ---- `colloc mps` ---- */

int mps_start_by_hand(
    struct mps *mps, uid_t uid, gid_t gid, struct api_request *asker, struct fault *fault)
{
    struct mps_user *user = get_user(mps, uid, gid);
    if (!user)
        return fault_set(fault, ENOMEM, "out of memory");
    if (user_helper_is_under_way(&user->helper))
        return fault_set(fault, EBUSY, "it is being started or stopped at this moment");
    user->asker = asker;
    user->unused_since_us = 0;
    if (find_control_daemon(user)) {
        answer_asker(user, 0, fault);
        return 0;
    }
    int r = begin_start(user, fault);
    if (r < 0)
        user->asker = NULL;
    return r;
}

int mps_stop_by_hand(struct mps *mps, uid_t uid, struct api_request *asker, struct fault *fault)
{
    struct mps_user *user = find_user(mps, uid);
    if (!user || !find_control_daemon(user))
        return fault_set(fault, ESRCH, "user %u has no MPS control daemon", (unsigned)uid);
    if (user_helper_is_under_way(&user->helper))
        return fault_set(fault, EBUSY, "it is being started or stopped at this moment");
    int tasks = count_tasks(user);
    if (tasks > 0)
        return fault_set(fault, EBUSY, "%d task%s of user %u use%s it", tasks, tasks > 1 ? "s" : "",
            (unsigned)uid, tasks > 1 ? "" : "s");
    user->asker = asker;
    int r = begin_stop(user, fault);
    if (r < 0)
        user->asker = NULL;
    return r;
}

/* ---- for lists ---- */

static json_t *user_json(const struct mps_user *user)
{
    pid_t pid = find_control_daemon(user);
    bool busy = user_helper_is_under_way(&user->helper);
    bool has_failed = !pid && clock_monotonic_us() < user->failed_until_us;
    const char *name = names_of_uid(user->mps->names, user->uid)->name;
    return json_pack("{s:I, s:s, s:s, s:s, s:o, s:i, s:s, s:s}", "uid", (json_int_t)user->uid,
        "user", name, "state",
        busy         ? "busy"
        : pid        ? "running"
        : has_failed ? "failed"
                     : "stopped",
        "state_text", has_failed ? user->why : "", "pid", pid ? json_integer(pid) : json_null(),
        "tasks", count_tasks(user), "pipe_directory", user->pipe_dir, "log_directory",
        user->log_dir);
}

json_t *mps_list(const struct mps *mps)
{
    json_t *users = json_array();
    for (const struct mps_user *user = mps->users; user; user = user->next)
        json_array_append_new(users, user_json(user));
    return users;
}

bool mps_find_group(const struct mps *mps, uid_t uid, gid_t *ret_gid)
{
    const struct mps_user *user = find_user(mps, uid);
    if (user)
        *ret_gid = user->gid;
    return user;
}

/* ---- beginning and end ---- */

void mps_adopt(struct mps *mps)
{
    char path[600], folder[600];
    int64_t uid;
    struct stat status;
    snprintf(path, sizeof path, "%s/mps", mps->config->state_dir);
    DIR *homes = opendir(path);
    for (const struct dirent *entry; homes && (entry = readdir(homes));) {
        snprintf(folder, sizeof folder, "%.500s/%.80s", path, entry->d_name);
        if (parse_int64(entry->d_name, 0, UINT32_MAX, &uid) < 0 || lstat(folder, &status) < 0)
            continue;
        struct mps_user *user = get_user(mps, (uid_t)uid, status.st_gid);
        if (user && find_control_daemon(user))
            mps_task_ended(mps, (uid_t)uid);
    }
    if (homes)
        closedir(homes);
}

void mps_close(struct mps *mps)
{
    struct fault fault = {0};
    if (!mps || mps->is_closed)
        return;
    mps->is_closed = true;
    uv_close((uv_handle_t *)mps->timer, on_timer_closed);
    for (struct mps_user *user = mps->users; user; user = user->next) {
        user->asker = NULL;
        if (!user_helper_is_under_way(&user->helper) && count_tasks(user) == 0 &&
            find_control_daemon(user))
            begin_stop(user, &fault);
        user_helper_leave(&user->helper);
    }
}
