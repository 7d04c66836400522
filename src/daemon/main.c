/* SPDX-License-Identifier: Apache-2.0 */
/* collocd: options, signals, the loop's life. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/units.h"
#include "daemon/daemon.h"
#include "daemon/time_base.h"
#include "exec/keyring.h"
#include "policy/policies.h"

#define BODY_MAX        (16u << 20)
#define IDLE_TIMEOUT_S  75 /* beyond the longest wait of docs/protocol.md */
#define GATHER_MAX_US   2000
#define HEAR_MAX        16
#define CONNECTIONS_MAX 256 /* of one user: a shell loop of submit --wait takes one each */

/* ---- the API in the loop ---- */

static void on_server_time(uv_timer_t *timer);

/* A request takes the server several runs: what is there is heard out before submissions are read,
 * which may take long.
 */
static void hear_all(struct daemon *daemon)
{
    struct pollfd server = {.fd = api_server_fd(daemon->server), .events = POLLIN};
    api_server_run(daemon->server);
    for (int i = 0;
         i < HEAR_MAX && (api_server_timeout_ms(daemon->server) == 0 || poll(&server, 1, 0) > 0);
         i++)
        api_server_run(daemon->server);
}

/*
 * Clients that submit one task after the other all come back a moment after they were answered.
 * Waiting that moment for those who were there last time, no longer than a commit took, makes one
 * commit out of several.
 */
static void gather_submissions(struct daemon *daemon)
{
    struct pollfd server = {.fd = api_server_fd(daemon->server), .events = POLLIN};
    int64_t until_us = clock_monotonic_us() + daemon->gather_us, left_us;
    while (daemon->n_submissions < daemon->submitters &&
           (left_us = until_us - clock_monotonic_us()) > 0) {
        const struct timespec timeout = {.tv_nsec = left_us * 1000};
        if (ppoll(&server, 1, &timeout, NULL) <= 0)
            return;
        api_server_run(daemon->server);
    }
}

/* One group of submissions a turn: samples and ends of tasks have their turn too. */
static void write_submissions(struct daemon *daemon)
{
    gather_submissions(daemon);
    int came = daemon->n_submissions;
    int64_t before_us = clock_monotonic_us();
    submissions_flush(daemon);
    int64_t took_us = clock_monotonic_us() - before_us;
    daemon->gather_us = took_us < GATHER_MAX_US ? took_us : GATHER_MAX_US;
    int left = daemon->n_submissions;
    api_server_run(daemon->server);
    daemon->submitters = came + daemon->n_submissions - 2 * left;
}

static void turn_server(struct daemon *daemon)
{
    hear_all(daemon);
    if (daemon->submissions_first)
        write_submissions(daemon);
    int64_t timeout_ms = daemon->submissions_first ? 0 : api_server_timeout_ms(daemon->server);
    if (timeout_ms > 0)
        uv_timer_start(&daemon->server_timer, on_server_time, (uint64_t)timeout_ms, 0);
    else
        uv_timer_stop(&daemon->server_timer);
    if (timeout_ms == 0)
        daemon_serve_soon(daemon);
}

static void on_server_time(uv_timer_t *timer)
{
    turn_server(timer->data);
}

static void on_server_soon(uv_idle_t *soon)
{
    uv_idle_stop(soon);
    turn_server(soon->data);
}

/* Not by a timer of 0 ms: one that starts itself again keeps everything else from running. */
void daemon_serve_soon(struct daemon *daemon)
{
    if (!daemon->stopping)
        uv_idle_start(&daemon->server_soon, on_server_soon);
}

static void on_server_ready(uv_poll_t *poll, int status, int events)
{
    turn_server(poll->data);
}

/* A user of whom a name service says nothing counts as one who is not there. */
static bool counts_as_stranger(const struct name *name)
{
    return name->uid != 0 && (name->state == NAME_NONE || name->state == NAME_NO_ANSWER);
}

static bool is_unlisted(void *context, uid_t uid)
{
    struct daemon *daemon = context;
    return counts_as_stranger(names_of_uid(daemon->names, uid));
}

static void on_name(void *context, const struct name *name)
{
    struct daemon *daemon = context;
    jobs_set_stranger(daemon, name->uid, name->state == NAME_NONE);
    if (daemon->server)
        api_server_set_unlisted(daemon->server, name->uid, counts_as_stranger(name));
}

/* Who may rename what is in the folder could put a socket of his own there, and be told what is
 * meant for us. */
static int make_socket_folder(const char *folder, struct fault *fault)
{
    struct stat status;
    int r = file_make_folders(folder, geteuid() == 0 ? 0755 : 0700);
    if (r == 0 && stat(folder, &status) < 0)
        r = -errno;
    if (r < 0)
        return fault_set(fault, -r, "%s: %s", folder, strerror(-r));
    bool ours = status.st_uid == 0 || status.st_uid == geteuid();
    if (!ours || ((status.st_mode & S_IWOTH) && !(status.st_mode & S_ISVTX)))
        return fault_set(fault, EPERM,
            "%s: is not only ours to write to: name another folder for the socket", folder);
    return 0;
}

static int open_server(struct daemon *daemon, struct fault *fault)
{
    bool root = geteuid() == 0;
    struct api_server_options options = {
        .socket_path = daemon->config.socket_path,
        .socket_mode = root ? 0666 : 0600,
        .routes = daemon_routes,
        .context = daemon,
        .version = COLLOC_VERSION,
        .body_max_bytes = BODY_MAX,
        .bytes_max = (size_t)daemon->config.request_bytes_max,
        .idle_timeout_s = IDLE_TIMEOUT_S,
        .connections_per_user_max = CONNECTIONS_MAX,
        .is_unlisted = is_unlisted,
    };
    int r = 0;
    char folder[sizeof daemon->config.socket_path];
    snprintf(folder, sizeof folder, "%s", daemon->config.socket_path);
    char *slash = strrchr(folder, '/');
    if (slash && slash != folder) {
        *slash = '\0';
        r = make_socket_folder(folder, fault);
    }
    if (r == 0)
        r = api_server_create(&options, fault, &daemon->server);
    if (r < 0)
        return r;
    uv_poll_init(&daemon->loop, &daemon->server_poll, api_server_fd(daemon->server));
    daemon->server_poll.data = daemon;
    return uv_poll_start(&daemon->server_poll, UV_READABLE, on_server_ready);
}

/* ---- the driver's hooks ---- */

static void on_start(void *context, uint64_t task)
{
    runner_start(context, task);
}

static void on_kill(void *context, uint64_t task)
{
    runner_kill(context, task);
}

static void on_stepped(void *context, const struct event *event, int answer)
{
    inputs_note_step(context, event, answer);
}

static void on_decided(void *context, const struct event *event)
{
    attempts_note(context, event);
}

static json_t *on_record_end(void *context, const struct task *task)
{
    return record_task(context, task);
}

static void on_recorded(void *context, const struct event *event, const json_t *detail)
{
    audit_event(context, event, detail);
}

/* The task is history now: requests that wait for it are answered, and its folders are cleaned. */
static void on_ended(void *context, uint64_t id, const json_t *record)
{
    struct daemon *daemon = context;
    waiters_tell(daemon, id, record);
    run_history_take(&daemon->run_history, record);
    runner_clean(daemon, core_task(daemon->core, id));
    job_retire(daemon, job_find(daemon, id));
    inputs_note_forgotten(daemon, id);
}

static void on_retry(void *context)
{
    runner_try_again(context);
}

static struct driver *create_driver(struct daemon *daemon, int64_t last_us)
{
    const struct driver_options options = {
        .loop = &daemon->loop,
        .core = daemon->core,
        .store = daemon->store,
        .state_dir = daemon->config.state_dir,
        .clock_offset_us = time_base_open(daemon->config.state_dir, last_us).offset_us,
        .last_us = last_us,
        .hooks =
            {
                .context = daemon,
                .start = on_start,
                .kill = on_kill,
                .stepped = on_stepped,
                .decided = on_decided,
                .record_end = on_record_end,
                .recorded = on_recorded,
                .ended = on_ended,
                .retry = on_retry,
            },
    };
    return driver_create(&options);
}

/* ---- the log: what happened before ---- */

static int on_replayed(
    void *context, const struct event *event, int64_t wall_us, const json_t *detail)
{
    struct daemon *daemon = context;
    if (core_apply(daemon->core, event) < 0)
        return -ENOMEM;
    inputs_note_applied(daemon, event);
    if (event->kind == EVENT_SUBMIT && !job_add(daemon, event->task, event->submit.uid, detail))
        return -ENOMEM;
    struct job *job = job_find(daemon, event->task);
    if (job && event->kind == EVENT_STARTED)
        job->started_attempt = core_task(daemon->core, event->task)->attempts;
    if (job && event->kind == EVENT_EXITED)
        job_note_exit(job, event->exited.failure, detail);
    attempts_note(daemon, event);
    return 0;
}

/* The log also tells of tasks that ended beside those that live: they were needed to understand,
 * not to keep. */
static void forget_done(struct daemon *daemon)
{
    uint64_t id = 0;
    for (const struct task *task; (task = core_next_task(daemon->core, id));) {
        id = task->id;
        if (!task_state_is_done(task->state))
            continue;
        job_remove(daemon, job_find(daemon, id));
        core_forget(daemon->core, id);
        inputs_note_forgotten(daemon, id);
    }
}

/* Ids go on behind those whose folders are there: after a log was lost, their logs stay whose they
 * are. */
static uint64_t last_folder(const struct daemon *daemon)
{
    char path[600];
    int64_t id;
    uint64_t last = 0;
    snprintf(path, sizeof path, "%s/tasks", daemon->config.state_dir);
    DIR *tasks = opendir(path);
    for (const struct dirent *entry; tasks && (entry = readdir(tasks));)
        if (parse_int64(entry->d_name, 1, INT64_MAX - 1, &id) == 0 && (uint64_t)id > last)
            last = (uint64_t)id;
    if (tasks)
        closedir(tasks);
    return last;
}

/* An empty log is a new one: an earlier one was moved away on purpose. */
static void report_loss(struct daemon *daemon, uint64_t last_task, uint64_t last_seen)
{
    char words[160];
    if (last_task > 0 && last_seen > last_task && !*store_get_loss(daemon->store)) {
        snprintf(words, sizeof words,
            "the event log ends at task %llu, but folders of tasks up to %llu are there",
            (unsigned long long)last_task, (unsigned long long)last_seen);
        store_note_loss(daemon->store, words, NULL);
    }
    if (*store_get_loss(daemon->store))
        log_error(
            "%s/colloc.db: %s. Restore it from a backup, or stop collocd and accept the loss: "
            "`colloc check --accept-loss` (`colloc check` says what is wrong)",
            daemon->config.state_dir, store_get_loss(daemon->store));
}

static int open_log(struct daemon *daemon, struct fault *fault)
{
    uint64_t last_task;
    int64_t last_us;
    int r = store_open(daemon->config.state_dir, fault, &daemon->store);
    if (r == 0)
        r = store_get_last(daemon->store, fault, &last_task, &last_us);
    if (r < 0)
        return r;
    uint64_t last_seen = last_folder(daemon);
    report_loss(daemon, last_task, last_seen);
    daemon->next_id = (last_task > last_seen ? last_task : last_seen) + 1;
    daemon->driver = create_driver(daemon, last_us);
    if (!daemon->driver)
        return fault_set(fault, ENOMEM, "out of memory");
    r = store_replay(daemon->store, policy_find, on_replayed, daemon, fault);
    if (r == -ENOMEM && !*fault->text)
        return fault_set(fault, ENOMEM, "out of memory");
    if (r < 0)
        return r;
    forget_done(daemon);
    usage_load(daemon);
    return run_history_load(&daemon->run_history, daemon->store, fault);
}

/* ---- life ---- */

static void close_handle(uv_handle_t *handle, void *context)
{
    if (!uv_is_closing(handle))
        uv_close(handle, NULL);
}

/* Everything that keeps the loop alive; what is under way in the pool ends by itself. Tasks go on.
 */
static void stop(struct daemon *daemon)
{
    notify_stopping(&daemon->notify);
    usage_save(daemon);
    names_close(daemon->names);
    user_files_close(daemon->user_files);
    submissions_flush(daemon);
    submissions_refuse(daemon);
    daemon->stopping = true;
    driver_close(daemon->driver);
    listings_refuse(daemon);
    waiters_tell(daemon, 0, NULL);
    mps_close(daemon->mps);
    uv_poll_stop(&daemon->server_poll);
    api_server_destroy(daemon->server);
    daemon->server = NULL;
    for (const struct task *task = core_next_task(daemon->core, 0); task;
         task = core_next_task(daemon->core, task->id)) {
        struct job *job = job_find(daemon, task->id);
        if (job)
            runner_unwatch(job);
    }
    uv_handle_t *ours[] = {(uv_handle_t *)&daemon->server_poll,
        (uv_handle_t *)&daemon->server_timer, (uv_handle_t *)&daemon->server_soon,
        (uv_handle_t *)&daemon->list_turn, (uv_handle_t *)&daemon->sample_timer,
        (uv_handle_t *)&daemon->history_timer, (uv_handle_t *)&daemon->disk_timer,
        (uv_handle_t *)&daemon->term_signal, (uv_handle_t *)&daemon->int_signal,
        (uv_handle_t *)&daemon->hangup_signal};
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        close_handle(ours[i], NULL);
    signal(SIGHUP, SIG_IGN); /* a reload now comes too late */
}

static void on_signal(uv_signal_t *signal, int number)
{
    struct daemon *daemon = signal->data;
    log_info("signal %d: going down; running tasks go on and are found again", number);
    stop(daemon);
}

/* Whether the process has a controlling terminal. */
static bool has_terminal(void)
{
    int fd = open("/dev/tty", O_RDONLY | O_NOCTTY | O_CLOEXEC);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

/*
 * SIGHUP has two senders. An administrator (or systemd, or logrotate) wants the configuration to be
 * read again. A terminal that was closed takes the daemon that was started in it along, as every
 * program there, unless nohup said otherwise: it ends as by SIGTERM, and tasks go on.
 */
static void on_hangup(uv_signal_t *signal, int number)
{
    struct daemon *daemon = signal->data;
    if (daemon->ends_with_terminal && !has_terminal()) {
        log_info("the terminal was closed: going down; running tasks go on and are found again");
        stop(daemon);
        return;
    }
    notify_reloading(&daemon->notify);
    configuration_reload(daemon);
    notify_ready(&daemon->notify);
}

/* From now on SIGHUP waits for the loop, also one that comes during the start. */
static void watch_hangups(struct daemon *daemon)
{
    struct sigaction action;
    bool is_ignored = sigaction(SIGHUP, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
    daemon->ends_with_terminal = !is_ignored && has_terminal();
    uv_signal_init(&daemon->loop, &daemon->hangup_signal);
    daemon->hangup_signal.data = daemon;
    uv_signal_start(&daemon->hangup_signal, on_hangup, SIGHUP);
    uv_unref((uv_handle_t *)&daemon->hangup_signal); /* a start that failed does not wait for one */
}

static void init_loop(struct daemon *daemon)
{
    uv_timer_t *timers[] = {
        &daemon->server_timer, &daemon->sample_timer, &daemon->history_timer, &daemon->disk_timer};
    uv_loop_init(&daemon->loop);
    for (size_t i = 0; i < sizeof timers / sizeof *timers; i++) {
        uv_timer_init(&daemon->loop, timers[i]);
        timers[i]->data = daemon;
    }
    uv_idle_init(&daemon->loop, &daemon->server_soon);
    uv_idle_init(&daemon->loop, &daemon->list_turn);
    daemon->server_soon.data = daemon->list_turn.data = daemon;
    uv_signal_init(&daemon->loop, &daemon->term_signal);
    uv_signal_init(&daemon->loop, &daemon->int_signal);
    daemon->term_signal.data = daemon->int_signal.data = daemon;
    watch_hangups(daemon);
}

static void on_mps_ready(void *context, uid_t uid)
{
    runner_mps_ready(context, uid);
}

static void on_mps_answered(void *context)
{
    daemon_serve_soon(context);
}

static struct mps *create_mps(struct daemon *daemon)
{
    const struct mps_options options = {
        .loop = &daemon->loop,
        .core = daemon->core,
        .config = &daemon->config,
        .names = daemon->names,
        .hooks = {daemon, on_mps_ready, on_mps_answered},
    };
    return mps_create(&options);
}

static int start(struct daemon *daemon, struct fault *fault)
{
    config_complete(&daemon->config);
    if (access(daemon->config.shim, X_OK) < 0)
        return fault_set(fault, errno,
            "%s: %s: no task could start; the setting shim says where colloc-shim is",
            daemon->config.shim, strerror(errno));
    daemon->core = core_create(&daemon->config.core);
    daemon->names = names_create(&daemon->loop, on_name, daemon);
    daemon->user_files = user_files_create(&daemon->loop);
    daemon->mps = create_mps(daemon);
    if (!daemon->core || !daemon->names || !daemon->user_files || !daemon->mps)
        return fault_set(fault, ENOMEM, "out of memory");
    int made = file_make_folders(daemon->config.state_dir, 0711);
    if (made < 0)
        return fault_set(fault, -made, "%s: %s", daemon->config.state_dir, strerror(-made));
    int r = inputs_open(daemon, fault);
    if (r == 0)
        r = open_log(daemon, fault);
    if (r == 0)
        r = open_server(daemon, fault);
    if (r == 0)
        r = sampler_open(daemon, fault);
    if (r < 0)
        return r;
    cgroups_open(daemon);
    runner_adopt_all(daemon);
    mps_adopt(daemon->mps);
    sampler_start(daemon);
    uv_signal_start(&daemon->term_signal, on_signal, SIGTERM);
    uv_signal_start(&daemon->int_signal, on_signal, SIGINT);
    history_start(daemon);
    disk_start(daemon);
    notify_ready(&daemon->notify);
    log_info("listening on %s, state in %s, %zu GPUs, policy %s, sharing %s",
        daemon->config.socket_path, daemon->config.state_dir,
        daemon->gpus ? daemon->gpus->count : 0, daemon->config.core.policy->name,
        sharing_name(daemon->config.sharing));
    return 0;
}

static void fini(struct daemon *daemon)
{
    if (daemon->server)
        stop(daemon);
    driver_close(daemon->driver);
    mps_close(daemon->mps);
    uv_run(&daemon->loop, UV_RUN_DEFAULT);
    driver_destroy(daemon->driver);
    for (const struct task *task = daemon->core ? core_next_task(daemon->core, 0) : NULL; task;
         task = core_next_task(daemon->core, task->id))
        job_remove(daemon, job_find(daemon, task->id));
    jobs_fini(daemon);
    mps_destroy(daemon->mps);
    sampler_close(daemon);
    inputs_close(daemon);
    core_destroy(daemon->core);
    store_close(daemon->store);
    run_history_fini(&daemon->run_history);
    uv_run(&daemon->loop, UV_RUN_DEFAULT);
    uv_loop_close(&daemon->loop);
    names_destroy(daemon->names);
    user_files_destroy(daemon->user_files);
}

static int usage(FILE *out, int status)
{
    fprintf(out,
        "usage: collocd [--check] [--config=FILE] [--SETTING=VALUE ...]\n\n"
        "The daemon of colloc: queues training tasks and collocates them on this server's GPUs.\n\n"
        "  --config=FILE\n"
        "        YAML file of the settings below, in lines 'setting: value'\n"
        "        (default for root: /etc/colloc/collocd.yaml, if it exists)\n"
        "  --check\n"
        "        check the configuration and exit: status 0 if it is valid, 1 if it is not\n");
    config_print(out, CONFIG_AS_HELP);
    return status;
}

/* libjansson reads on behind what it could not keep: a failed allocation must not get there. */
static void *allocate_or_die(size_t size)
{
    void *memory = malloc(size);
    if (!memory && size > 0)
        driver_die_of_memory();
    return memory;
}

/* The pool does nothing but look at GPUs, one look at a time; files opened are ours alone to
 * choose. */
static void prepare_process(struct daemon *daemon)
{
    setenv("UV_THREADPOOL_SIZE", "1", 0);
    umask(022);
    json_set_alloc_funcs(allocate_or_die, free);
    signal(SIGPIPE, SIG_IGN);
    if (geteuid() == 0 && setgroups(0, NULL) < 0)
        log_warning("supplementary groups cannot be given up: %s", strerror(errno));
    int keyrings = keyring_probe();
    if (keyrings < 0)
        log_warning("no kernel keyrings here (keyctl: %s): tasks get no session keyring",
            strerror(-keyrings));
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        daemon->open_files = files.rlim_cur < INT64_MAX ? (int64_t)files.rlim_cur : INT64_MAX;
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
}

/* For the build, which makes the man page and the example file of it. */
static bool print_form(const char *argument)
{
    bool roff = strcmp(argument, "--print-settings=roff") == 0,
         yaml = strcmp(argument, "--print-settings=yaml") == 0;
    if (roff || yaml)
        config_print(stdout, roff ? CONFIG_AS_ROFF : CONFIG_AS_YAML);
    return roff || yaml;
}

/* A check that found a mistake is an answer, with its own exit status. */
static int say_mistake(int argc, char **argv, const struct fault *fault)
{
    fprintf(stderr, "collocd: %s\n", fault->text);
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--check") == 0)
            return 1;
    return 2;
}

int main(int argc, char **argv)
{
    static struct daemon daemon;
    struct fault fault = {0};
    config_defaults(&daemon.config);
    if (argc == 2 && print_form(argv[1]))
        return 0;
    switch (config_read_arguments(&daemon.config, argc, argv, &fault)) {
    case 0:
        break;
    case CONFIG_HELP:
        return usage(stdout, 0);
    case CONFIG_VERSION:
        printf("collocd %s\n", COLLOC_VERSION);
        return 0;
    case CONFIG_CHECK:
        puts("configuration is fine");
        return 0;
    default:
        return say_mistake(argc, argv, &fault);
    }
    daemon.argc = argc;
    daemon.argv = argv;
    notify_open(&daemon.notify);
    log_set_level((enum log_level)daemon.config.log_level);
    prepare_process(&daemon);
    init_loop(&daemon);
    int r = start(&daemon, &fault);
    if (r < 0)
        log_error("%s", fault.text);
    else
        uv_run(&daemon.loop, UV_RUN_DEFAULT);
    fini(&daemon);
    return r < 0 ? 1 : 0;
}
