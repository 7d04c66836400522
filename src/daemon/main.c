/* SPDX-License-Identifier: Apache-2.0 */
/*
 * collocd: options, signals, and the order in which the parts start and end.
 *
 *     start   tables --> event log replayed --> parts created --> server listens --> GPUs known
 *             --> attempts found again --> GPUs polled, signals obeyed
 *     end     submissions refused --> driver decides nothing more --> parts close their handles
 *             --> the loop runs until it is empty --> all is released
 *
 * Tasks continue when the daemon ends.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "base/units.h"
#include "daemon/calibration.h"
#include "daemon/daemon.h"
#include "daemon/dependencies.h"
#include "daemon/gpus/gpus.h"
#include "daemon/gpus/gpus_query.h"
#include "daemon/node_main.h"
#include "daemon/operators.h"
#include "daemon/scrape/scrape_server.h"
#include "daemon/state_dir.h"
#include "exec/keyring.h"
#include "exec/oom_score.h"
#include "service/web_server.h"

/* ---- the end ---- */

static void close_signal(uv_signal_t *signal)
{
    if (!uv_is_closing((uv_handle_t *)signal))
        uv_close((uv_handle_t *)signal, NULL);
}

/* Closes all handles that keep the loop alive; a poll of the GPUs in the pool ends by itself. A
 * second call does nothing. */
static void stop_daemon(struct daemon *daemon)
{
    signal(SIGHUP, SIG_IGN); /* a reload now comes too late */
    notify_stopping(&daemon->notify);
    names_close(daemon->names);
    kernel_asker_close(daemon->kernels);
    http_finish_submissions(daemon->http);
    driver_close(daemon->driver);
    mps_close(daemon->mps);
    metric_recorder_close(daemon->metrics);
    preload_manager_close(daemon->preload);
    http_close(daemon->http);
    suspension_close(daemon->suspension);
    web_close(daemon->web);
    services_close(daemon->services);
    scrape_close(daemon->scrape);
    messages_close(daemon->messages);
    attempts_close(daemon->attempts);
    gpus_close(daemon->gpus);
    disk_close(daemon->disk);
    kept_output_close(daemon->kept_output);
    retention_close(daemon->retention);
    mig_replan_close(daemon->mig_replan);
    close_signal(&daemon->term_signal);
    close_signal(&daemon->int_signal);
    close_signal(&daemon->hangup_signal);
}

static void destroy_daemon(struct daemon *daemon)
{
    uv_run(&daemon->loop, UV_RUN_DEFAULT);
    driver_destroy(daemon->driver);
    http_destroy(daemon->http);
    suspension_destroy(daemon->suspension);
    web_destroy(daemon->web);
    services_destroy(daemon->services);
    scrape_destroy(daemon->scrape);
    outside_destroy(daemon->outside);
    messages_destroy(daemon->messages);
    attempts_destroy(daemon->attempts);
    mps_destroy(daemon->mps);
    metric_recorder_destroy(daemon->metrics);
    preload_manager_destroy(daemon->preload);
    kernel_asker_destroy(daemon->kernels);
    gpus_destroy(daemon->gpus);
    disk_destroy(daemon->disk);
    kept_output_destroy(daemon->kept_output);
    retention_destroy(daemon->retention);
    mig_replan_destroy(daemon->mig_replan);
    inputs_close(daemon->inputs);
    jobs_destroy(daemon->jobs);
    core_destroy(daemon->core);
    store_close(daemon->store);
    run_history_fini(&daemon->run_history);
    uv_run(&daemon->loop, UV_RUN_DEFAULT);
    uv_loop_close(&daemon->loop);
    names_destroy(daemon->names);
}

/* ---- signals ---- */

static void on_signal(uv_signal_t *signal, int number)
{
    struct daemon *daemon = signal->data;
    log_info("signal %d: going down; running tasks go on and are found again", number);
    gpus_save_usage(daemon->gpus);
    stop_daemon(daemon);
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
 * read again. A closed terminal ends the programs that were started in it, unless nohup made them
 * ignore that: the daemon then ends as by SIGTERM, and tasks continue.
 */
static void on_hangup(uv_signal_t *signal, int number)
{
    struct daemon *daemon = signal->data;
    if (daemon->ends_with_terminal && !has_terminal()) {
        log_info("the terminal was closed: going down; running tasks go on and are found again");
        gpus_save_usage(daemon->gpus);
        stop_daemon(daemon);
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

/* ---- the start ---- */

static void do_nothing(uv_work_t *work)
{
    (void)work;
}

/* libuv starts the thread of its pool for the first work, and aborts the program if it cannot. So
 * the pool starts here: not when the address space or the cgroup's processes are used up. */
static void init_loop(struct daemon *daemon)
{
    uv_loop_init(&daemon->loop);
    uv_queue_work(&daemon->loop, &daemon->first_work, do_nothing, NULL);
    uv_signal_init(&daemon->loop, &daemon->term_signal);
    uv_signal_init(&daemon->loop, &daemon->int_signal);
    daemon->term_signal.data = daemon->int_signal.data = daemon;
    watch_hangups(daemon);
}

static int check_shim(const struct config *config, struct fault *fault)
{
    if (access(config->shim, X_OK) == 0)
        return 0;
    return fault_set(fault, errno,
        "%s: %s: no task could start; the setting shim says where colloc-shim is", config->shim,
        strerror(errno));
}

/* A symbolic link keeps an attempt that was given up from starting (exec/claim.h). */
static int try_link(const struct config *config, struct fault *fault)
{
    char path[STATE_PATH_SIZE];
    snprintf(path, sizeof path, "%s/link-trial", config->state_dir);
    unlink(path);
    if (symlink("nothing", path) < 0 && (errno == EPERM || errno == EOPNOTSUPP || errno == ENOSYS))
        return fault_set(fault, errno,
            "%s: no symbolic link can be made there (%s): choose a state-dir on another file system",
            config->state_dir, strerror(errno));
    unlink(path);
    return 0;
}

static int make_state_dir(const struct config *config, struct fault *fault)
{
    int r = file_make_folders(config->state_dir, 0711);
    if (r < 0)
        return fault_set(fault, -r, "%s: %s", config->state_dir, strerror(-r));
    return try_link(config, fault);
}

static int start_daemon(struct daemon *daemon, struct fault *fault)
{
    struct config *config = &daemon->config;
    oom_score_protect();
    config_complete(config);
    int r = check_shim(config, fault);
    if (r == 0)
        r = wiring_create_tables(daemon, fault);
    if (r == 0)
        r = make_state_dir(config, fault);
    if (r == 0)
        r = inputs_open(config, fault, &daemon->inputs);
    if (r == 0)
        r = event_log_open(daemon, fault);
    if (r == 0)
        r = wiring_create_parts(daemon, fault);
    if (r == 0)
        r = http_open(daemon->http, fault);
    if (r == 0)
        r = gpus_open(daemon->gpus, fault);
    if (r == 0)
        r = web_open(daemon->web, fault);
    if (r == 0)
        r = scrape_open(daemon->scrape, fault);
    if (r < 0)
        return r;
    preload_manager_open(daemon->preload);
    attempts_adopt(daemon->attempts);
    dependencies_catch_up(daemon->core, daemon->store, daemon->driver, 1, UINT64_MAX);
    mps_adopt(daemon->mps);
    gpus_start(daemon->gpus);
    uv_signal_start(&daemon->term_signal, on_signal, SIGTERM);
    uv_signal_start(&daemon->int_signal, on_signal, SIGINT);
    disk_start(daemon->disk);
    messages_start(daemon->messages);
    notify_ready(&daemon->notify);
    log_info("listening on %s, state in %s, %zu GPUs, policy %s, sharing %s", config->socket_path,
        config->state_dir, gpus_count(daemon->gpus), config->core.policy->name,
        sharing_name(config->sharing));
    operators_check_later(config, daemon->names);
    return 0;
}

/* ---- the process ---- */

static int print_usage(FILE *out, int status)
{
    fprintf(out,
        "usage: collocd [--node] [--check] [--config=FILE] [--SETTING=VALUE ...]\n\n"
        "The daemon of colloc: queues training tasks and collocates them on this server's GPUs.\n\n"
        "  --config=FILE\n"
        "        YAML file of the settings below, in lines 'setting: value'\n"
        "        (default for root: /etc/colloc/collocd.yaml, if it exists)\n"
        "  --node\n"
        "        first argument: run as the agent of a Slurm node, without a queue\n"
        "        (docs/slurm-node.md)\n"
        "  --check\n"
        "        check the configuration and exit: status 0 if it is valid, 1 if it is not\n");
    config_print(out, CONFIG_AS_HELP);
    return status;
}

/* libjansson continues after some failed allocations, and would lose a part of the object. */
static void *allocate_or_die(size_t size)
{
    void *memory = malloc(size);
    if (!memory && size > 0)
        driver_die_of_memory();
    return memory;
}

/* The loop's thread pool has one task at a time, such as the poll of a Slurm node's agent: one
 * thread is enough. */
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

/* For the build, which makes the man page and the example file from it. */
static bool print_form(const char *argument)
{
    bool roff = strcmp(argument, "--print-settings=roff") == 0,
         yaml = strcmp(argument, "--print-settings=yaml") == 0;
    if (roff || yaml)
        config_print(stdout, roff ? CONFIG_AS_ROFF : CONFIG_AS_YAML);
    return roff || yaml;
}

static void print_mistake(const char *text)
{
    fprintf(stderr, "collocd: %s\n", text);
}

/* A check that found a mistake is an answer, with its own exit status. */
static int report_mistake(int argc, char **argv, const struct fault *fault)
{
    print_mistake(fault->text);
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--check") == 0)
            return 1;
    return 2;
}

static bool is_node_agent(int argc, char **argv)
{
    return argc > 1 && strcmp(argv[1], "--node") == 0;
}

/* Returns the exit status. */
static int run_node_agent(struct config *config)
{
#if HAVE_SLURM
    return node_run(config);
#else
    fprintf(stderr, "collocd: --node: built without libmunge, GnuTLS or Slurm's headers\n");
    return 2;
#endif
}

/* What `--check` finds beyond the settings themselves: what the start would refuse or warn of. */
static int check_service(const struct config *config, struct fault *fault)
{
    operators_check(config);
    gpus_check(config);
    web_check(config->web);
    outside_check(config);
    int r = check_shim(config, fault);
    return r < 0 ? r : scrape_check(config, fault);
}

/* What `--node --check` finds beyond the settings themselves. */
static int check_node_agent(const struct config *config, struct fault *fault)
{
#if HAVE_SLURM
    uint8_t key[SHA256_SIZE];
    int r = node_key_read(config->node_auth, config->node_key_file, fault, key);
    explicit_bzero(key, sizeof key);
    return r;
#else
    return 0;
#endif
}

/* A list of all tasks has megabytes of text. Without this threshold glibc keeps such blocks for the
 * next time, once one was freed. Mapped blocks are returned to the system. */
static void give_large_blocks_back(void)
{
#ifdef M_MMAP_THRESHOLD
    mallopt(M_MMAP_THRESHOLD, 256 * KIB); /* chosen: twice glibc's first value */
#endif
}

int main(int argc, char **argv)
{
    static struct daemon daemon;
    struct fault fault = {0};
    give_large_blocks_back();
    bool is_node = is_node_agent(argc, argv);
    argc -= is_node;
    argv += is_node;
    config_defaults(&daemon.config);
    if (argc == 2 && print_form(argv[1]))
        return 0;
    int r = config_read_arguments(&daemon.config, argc, argv, print_mistake, &fault);
    if (r == 0 || r == CONFIG_CHECK) {
        int read = share_file_read(daemon.config.shares, &fault, &daemon.config.share_table);
        if (read >= 0)
            read = calibration_read(
                daemon.config.calibration, &fault, &daemon.config.core, &daemon.config.decoding);
        r = read < 0 ? read : r;
    }
    switch (r) {
    case 0:
        break;
    case CONFIG_HELP:
        return print_usage(stdout, 0);
    case CONFIG_VERSION:
        printf("collocd %s\n", COLLOC_VERSION);
        return 0;
    case CONFIG_CHECK:
        if ((is_node ? check_node_agent : check_service)(&daemon.config, &fault) < 0)
            return report_mistake(argc, argv, &fault);
        puts("configuration is fine");
        return 0;
    default:
        return report_mistake(argc, argv, &fault);
    }
    daemon.argc = argc;
    daemon.argv = argv;
    log_set_level((enum log_level)daemon.config.log_level);
    prepare_process(&daemon);
    if (is_node)
        return run_node_agent(&daemon.config);
    notify_open(&daemon.notify);
    init_loop(&daemon);
    r = start_daemon(&daemon, &fault);
    if (r < 0)
        log_error("%s", fault.text);
    else
        uv_run(&daemon.loop, UV_RUN_DEFAULT);
    stop_daemon(&daemon);
    destroy_daemon(&daemon);
    return r < 0 ? 1 : 0;
}
