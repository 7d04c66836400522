/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each user has one MPS control daemon for all whole GPUs, and one for each MIG instance that the
 * user's tasks share: the control daemon of an instance serves no other GPU (NVIDIA's MIG User
 * Guide). It is started as that user when the first task needs it, and stopped when it has had no
 * task for the time of the setting mps-linger. So clients of one user share a GPU's SMs, and a
 * fault of one user's client does not stop the tasks of another user.
 *
 * Each has its folder, with the pipe directory and the logs:
 *
 *     STATE/mps/1000                     user 1000 on whole GPUs
 *     STATE/mps/1000-9f86d081884c7d65    user 1000 on the MIG instance of this number
 *
 * The number is a hash of the instance's UUID, which would be too long for the names of sockets.
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
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "gpu/mps.h"
#include "service/user_helper.h"

#define RETRY_US      (60 * SECOND_US) /* chosen: a start that failed would fail again sooner */
#define START_MS      ((int)(MPS_START_LIMIT_US / MS_US) + 1000)
#define STOP_MS       8000 /* chosen: two queries, and `quit`, which answers at once or hangs */
#define CLIENTS_MAX   64   /* of a message; chosen */
#define STOP_AGAIN_US SECOND_US /* chosen */

enum {
    FOLDER_SIZE = sizeof "4294967295-9f86d081884c7d65",
    TITLE_SIZE = 64, /* of format_title; a label has 15 bytes */
};

/* A control daemon, which may have ended. */
struct mps_control {
    struct mps_control *next;
    struct mps *mps;
    uid_t uid;
    gid_t gid;
    uint64_t instance; /* as mps_instance_number */
    char folder[FOLDER_SIZE], home[560], pipe_dir[600], log_dir[600];
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
    struct mps_source source;
    struct mps_hooks hooks;
    struct mps_control *controls;
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
        .source = options->source,
        .hooks = options->hooks,
        .timer = timer,
    };
    uv_timer_init(mps->loop, timer);
    timer->data = mps;
    return mps;
}

void mps_destroy(struct mps *mps)
{
    while (mps && mps->controls) {
        struct mps_control *control = mps->controls;
        mps->controls = control->next;
        free(control);
    }
    free(mps);
}

/* ---- control daemons ---- */

static void write_folder(uid_t uid, uint64_t instance, char *folder)
{
    if (instance)
        snprintf(folder, FOLDER_SIZE, "%u-%016" PRIx64, (unsigned)uid, instance);
    else
        snprintf(folder, FOLDER_SIZE, "%u", (unsigned)uid);
}

/* Returns false for a name that write_folder does not write. */
static bool parse_folder(const char *folder, uid_t *ret_uid, uint64_t *ret_instance)
{
    char again[FOLDER_SIZE];
    unsigned uid;
    *ret_instance = 0;
    if (sscanf(folder, "%10u-%16" SCNx64, &uid, ret_instance) < 1)
        return false;
    *ret_uid = (uid_t)uid;
    write_folder(*ret_uid, *ret_instance, again);
    return strcmp(again, folder) == 0;
}

void mps_pipe_dir(const struct mps *mps, uid_t uid, const char *instance, char *path, size_t size)
{
    char folder[FOLDER_SIZE];
    write_folder(uid, mps_instance_number(instance), folder);
    snprintf(path, size, "%s/mps/%s/pipe", mps->config->state_dir, folder);
}

static struct mps_control *find_control(const struct mps *mps, uid_t uid, uint64_t instance)
{
    struct mps_control *control = mps->controls;
    while (control && (control->uid != uid || control->instance != instance))
        control = control->next;
    return control;
}

/* Returns NULL when memory is out. */
static struct mps_control *get_control(struct mps *mps, uid_t uid, gid_t gid, uint64_t instance)
{
    struct mps_control *control = find_control(mps, uid, instance);
    if (control)
        return control;
    control = calloc(1, sizeof *control);
    if (!control)
        return NULL;
    *control = (struct mps_control){
        .next = mps->controls, .mps = mps, .uid = uid, .gid = gid, .instance = instance};
    write_folder(uid, instance, control->folder);
    snprintf(
        control->home, sizeof control->home, "%s/mps/%s", mps->config->state_dir, control->folder);
    snprintf(control->pipe_dir, sizeof control->pipe_dir, "%s/pipe", control->home);
    snprintf(control->log_dir, sizeof control->log_dir, "%s/log", control->home);
    mps->controls = control;
    return control;
}

/* Returns false for the control daemon of whole GPUs, and where the instance is not known. */
static bool find_instance(const struct mps_control *control, struct mps_instance *ret_instance)
{
    const struct mps_source *source = &control->mps->source;
    return control->instance &&
           source->find_instance(source->context, control->instance, ret_instance);
}

/* For messages: "user 1000", or "user 1000 on MIG instance 0:1". */
static const char *format_title(const struct mps_control *control, char *text, size_t size)
{
    struct mps_instance instance = {.label = "?"};
    find_instance(control, &instance);
    snprintf(text, size, "user %u%s%s", (unsigned)control->uid,
        control->instance ? " on MIG instance " : "", control->instance ? instance.label : "");
    return text;
}

/* The user may put links below the user's folder: they must not lead root elsewhere. Returns 0
 * when there is none. */
static pid_t find_control_daemon(const struct mps_control *control)
{
    char path[600], pipe_dir[FOLDER_SIZE + sizeof "/pipe"];
    snprintf(path, sizeof path, "%s/mps", control->mps->config->state_dir);
    snprintf(pipe_dir, sizeof pipe_dir, "%s/pipe", control->folder);
    int folder = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0)
        return 0;
    pid_t pid = mps_find_below(folder, pipe_dir, geteuid() == 0 ? control->uid : geteuid());
    close(folder);
    return pid;
}

static int count_tasks(const struct mps_control *control)
{
    const struct mps_source *source = &control->mps->source;
    return source->count_clients(source->context, control->uid, control->instance);
}

/* ---- in the helper process, as the user ---- */

static int make_home(const struct mps_control *control, struct fault *fault)
{
    int r = file_make_folders(control->home, 0711);
    if (r == 0 && geteuid() == 0 &&
        (chown(control->home, control->uid, control->gid) < 0 || chmod(control->home, 0700) < 0))
        r = -errno;
    return r < 0 ? fault_set(fault, -r, "%s: %s", control->home, strerror(-r)) : 0;
}

/* Lists the GPUs that it serves: an instance alone, or all whole GPUs. */
static size_t list_gpus(const struct mps_control *control, const char **uuids, size_t max)
{
    const struct mps_source *source = &control->mps->source;
    struct mps_instance instance;
    if (!control->instance)
        return source->list_gpus(source->context, uuids, max);
    if (!find_instance(control, &instance))
        return 0;
    uuids[0] = instance.uuid;
    return 1;
}

static int start_control_daemon(void *context, struct fault *fault)
{
    const struct mps_control *control = context;
    const char *uuids[256];
    size_t n = list_gpus(control, uuids, ARRAY_SIZE(uuids));
    int r = mps_start(control->pipe_dir, control->log_dir, uuids, n, fault);
    return r == MPS_ALREADY_ALIVE ? 0 : r;
}

/* Refuses while it has clients: tasks, or a program that the user started by hand. */
static int stop_control_daemon(void *context, struct fault *fault)
{
    const struct mps_control *control = context;
    struct mps_client clients[CLIENTS_MAX];
    int n = mps_list_clients(control->pipe_dir, clients, CLIENTS_MAX, fault);
    if (n < 0)
        return n;
    if (n > 0)
        return fault_set(
            fault, EBUSY, "%d process%s still use%s it", n, n > 1 ? "es" : "", n > 1 ? "" : "s");
    int r = mps_stop(control->pipe_dir, fault);
    return r == MPS_STILL_ENDING
               ? fault_set(fault, EBUSY, "it has received the command to quit and is still ending")
               : r;
}

static void answer_asker(struct mps_control *control, int answer, const struct fault *fault)
{
    struct api_request *asker = control->asker;
    control->asker = NULL;
    if (!asker)
        return;
    if (answer == 0)
        api_reply(asker, 200,
            json_pack("{s:i, s:b}", "uid", (int)control->uid, "alive",
                find_control_daemon(control) != 0));
    else
        api_reply_error(asker, answer == -EBUSY ? 409 : 503, "%s", fault->text);
    control->mps->hooks.answered(control->mps->hooks.context);
}

/* ---- starting ---- */

static void note_unused(struct mps_control *control);

static void on_started(struct user_helper *helper, int answer, const struct fault *fault)
{
    struct mps_control *control = helper->context;
    char title[TITLE_SIZE];
    control->failed_until_us = answer == 0 ? 0 : clock_monotonic_us() + RETRY_US;
    snprintf(control->why, sizeof control->why, "%s", fault->text);
    if (answer == 0)
        log_info("%s has an MPS control daemon, its pipe directory is %s",
            format_title(control, title, sizeof title), control->pipe_dir);
    bool by_hand = control->asker;
    answer_asker(control, answer, fault);
    control->mps->hooks.ready(control->mps->hooks.context, control->uid);
    if (!by_hand)
        note_unused(control); /* its tasks may have been cancelled meanwhile */
}

static int begin_start(struct mps_control *control, struct fault *fault)
{
    int r = make_home(control, fault);
    if (r < 0)
        return r;
    const struct user_helper_order order = {.uid = control->uid,
        .gid = control->gid,
        .limit_ms = START_MS,
        .what = "start MPS",
        .is_as_user = true};
    control->helper.context = control;
    control->helper.on_done = on_started;
    return user_helper_run(
        &control->helper, control->mps->loop, &order, start_control_daemon, fault);
}

int mps_prepare(struct mps *mps, uid_t uid, gid_t gid, const char *instance,
    const char **ret_pipe_dir, struct fault *fault)
{
    struct mps_control *control = get_control(mps, uid, gid, mps_instance_number(instance));
    if (!control)
        return fault_set(fault, ENOMEM, "out of memory");
    control->gid = gid;
    control->unused_since_us = 0;
    *ret_pipe_dir = control->pipe_dir;
    if (user_helper_is_under_way(&control->helper))
        return MPS_WAIT;
    if (find_control_daemon(control))
        return 0;
    if (clock_monotonic_us() < control->failed_until_us)
        return fault_set(fault, EAGAIN, "%s", control->why);
    int r = begin_start(control, fault);
    return r < 0 ? r : MPS_WAIT;
}

/* ---- stopping ---- */

static void on_timer(uv_timer_t *timer);

/* When it is to be stopped: mps-linger after its last task, but at once if its instance is gone,
 * since an instance with the same UUID would need a new one. */
static int64_t stop_time_us(const struct mps_control *control)
{
    struct mps_instance instance = {0};
    if (!control->unused_since_us)
        return TIME_NEVER;
    find_instance(control, &instance);
    return control->unused_since_us + (instance.is_gone ? 0 : control->mps->config->mps_linger_us);
}

/* Sets the timer to the time when the first unused daemon is stopped. */
static void set_timer(struct mps *mps)
{
    int64_t next_us = TIME_NEVER;
    for (const struct mps_control *control = mps->controls; control; control = control->next) {
        int64_t stop_us = stop_time_us(control);
        next_us = stop_us < next_us ? stop_us : next_us;
    }
    if (next_us == TIME_NEVER || mps->is_closed)
        return;
    int64_t wait_us = next_us - clock_monotonic_us();
    uv_timer_start(mps->timer, on_timer, wait_us > 0 ? (uint64_t)(wait_us / MS_US) + 1 : 1, 0);
}

/* Its clients may have ended when the timer runs out again. */
static void stop_later(struct mps_control *control)
{
    if (count_tasks(control) == 0)
        control->unused_since_us = clock_monotonic_us() + STOP_AGAIN_US;
    set_timer(control->mps);
}

static void on_stopped(struct user_helper *helper, int answer, const struct fault *fault)
{
    struct mps_control *control = helper->context;
    char title[TITLE_SIZE];
    format_title(control, title, sizeof title);
    if (answer == 0)
        log_info("the MPS control daemon of %s was stopped: no process uses it", title);
    else
        log_debug("the MPS control daemon of %s stays: %s", title, fault->text);
    control->unused_since_us = 0;
    answer_asker(control, answer, fault);
    control->mps->hooks.ready(control->mps->hooks.context, control->uid);
    if (answer < 0)
        stop_later(control);
}

static int begin_stop(struct mps_control *control, struct fault *fault)
{
    const struct user_helper_order order = {.uid = control->uid,
        .gid = control->gid,
        .limit_ms = STOP_MS,
        .what = "stop MPS",
        .is_as_user = true};
    control->helper.context = control;
    control->helper.on_done = on_stopped;
    return user_helper_run(
        &control->helper, control->mps->loop, &order, stop_control_daemon, fault);
}

static void on_timer(uv_timer_t *timer)
{
    struct mps *mps = timer->data;
    struct fault fault = {0};
    char title[TITLE_SIZE];
    int64_t now_us = clock_monotonic_us();
    for (struct mps_control *control = mps->controls; control; control = control->next) {
        if (now_us < stop_time_us(control))
            continue;
        control->unused_since_us = 0;
        if (user_helper_is_under_way(&control->helper) || !find_control_daemon(control) ||
            begin_stop(control, &fault) >= 0)
            continue;
        log_warning("the MPS control daemon of %s: %s", format_title(control, title, sizeof title),
            fault.text);
        stop_later(control);
    }
    set_timer(mps);
}

void mps_review(struct mps *mps)
{
    set_timer(mps);
}

static void note_unused(struct mps_control *control)
{
    if (count_tasks(control) > 0)
        return;
    control->unused_since_us = clock_monotonic_us();
    set_timer(control->mps);
}

void mps_task_ended(struct mps *mps, uid_t uid, const char *instance)
{
    struct mps_control *control = find_control(mps, uid, mps_instance_number(instance));
    if (control)
        note_unused(control);
}

/* ---- `colloc mps`, which starts and stops those of whole GPUs; `colloc mig` stops others ---- */

int mps_start_by_hand(
    struct mps *mps, uid_t uid, gid_t gid, struct api_request *asker, struct fault *fault)
{
    struct mps_control *control = get_control(mps, uid, gid, 0);
    if (!control)
        return fault_set(fault, ENOMEM, "out of memory");
    if (user_helper_is_under_way(&control->helper))
        return fault_set(fault, EBUSY, "it is being started or stopped at this moment");
    control->asker = asker;
    control->unused_since_us = 0;
    if (find_control_daemon(control)) {
        answer_asker(control, 0, fault);
        return 0;
    }
    int r = begin_start(control, fault);
    if (r < 0)
        control->asker = NULL;
    return r;
}

int mps_stop_by_hand(struct mps *mps, uid_t uid, const char *instance, struct api_request *asker,
    struct fault *fault)
{
    struct mps_control *control = find_control(mps, uid, mps_instance_number(instance));
    if (!control || !find_control_daemon(control))
        return fault_set(fault, ESRCH, "user %u has no MPS control daemon%s%s", (unsigned)uid,
            *instance ? " on " : "", instance);
    if (user_helper_is_under_way(&control->helper))
        return fault_set(fault, EBUSY, "it is being started or stopped at this moment");
    int tasks = count_tasks(control);
    if (tasks > 0)
        return fault_set(fault, EBUSY, "%d task%s of user %u use%s it", tasks, tasks > 1 ? "s" : "",
            (unsigned)uid, tasks > 1 ? "" : "s");
    control->asker = asker;
    int r = begin_stop(control, fault);
    if (r < 0)
        control->asker = NULL;
    return r;
}

/* ---- for lists ---- */

static const char *state_text(const struct mps_control *control, bool is_running, bool has_failed)
{
    if (user_helper_is_under_way(&control->helper))
        return "busy";
    if (is_running)
        return "running";
    return has_failed ? "failed" : "stopped";
}

static json_t *control_json(const struct mps_control *control)
{
    pid_t pid = find_control_daemon(control);
    bool has_failed = !pid && clock_monotonic_us() < control->failed_until_us;
    const char *name = names_of_uid(control->mps->names, control->uid)->name;
    struct mps_instance instance = {.label = control->instance ? "?" : NULL};
    find_instance(control, &instance);
    return json_pack("{s:I, s:s, s:s?, s:s?, s:s, s:s, s:o, s:i, s:s, s:s}", "uid",
        (json_int_t)control->uid, "user", name, "gpu", instance.label, "gpu_uuid", instance.uuid,
        "state", state_text(control, pid, has_failed), "state_text", has_failed ? control->why : "",
        "pid", pid ? json_integer(pid) : json_null(), "tasks", count_tasks(control),
        "pipe_directory", control->pipe_dir, "log_directory", control->log_dir);
}

json_t *mps_list(const struct mps *mps)
{
    json_t *list = json_array();
    for (const struct mps_control *control = mps->controls; control; control = control->next)
        json_array_append_new(list, control_json(control));
    return list;
}

bool mps_find_group(const struct mps *mps, uid_t uid, gid_t *ret_gid)
{
    const struct mps_control *control = mps->controls;
    while (control && control->uid != uid)
        control = control->next;
    if (control)
        *ret_gid = control->gid;
    return control;
}

/* ---- beginning and end ---- */

void mps_adopt(struct mps *mps)
{
    char path[600], folder[600];
    uid_t uid;
    uint64_t instance;
    struct stat status;
    snprintf(path, sizeof path, "%s/mps", mps->config->state_dir);
    DIR *homes = opendir(path);
    for (const struct dirent *entry; homes && (entry = readdir(homes));) {
        snprintf(folder, sizeof folder, "%.500s/%.80s", path, entry->d_name);
        if (!parse_folder(entry->d_name, &uid, &instance) || lstat(folder, &status) < 0)
            continue;
        struct mps_control *control = get_control(mps, uid, status.st_gid, instance);
        if (control && find_control_daemon(control))
            note_unused(control);
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
    for (struct mps_control *control = mps->controls; control; control = control->next) {
        control->asker = NULL;
        if (!user_helper_is_under_way(&control->helper) && count_tasks(control) == 0 &&
            find_control_daemon(control))
            begin_stop(control, &fault);
        user_helper_leave(&control->helper);
    }
}
