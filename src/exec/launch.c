/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The child takes the steps of become_task in order. It writes a report once its output is open,
 * and when a step fails. The parent reads the pipe without waiting; the end of the pipe means that
 * exec has closed it.
 */
#include "exec/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "exec/cgroup.h"
#include "exec/device_filter.h"
#include "exec/identity.h"
#include "exec/metric_reader.h"
#include "exec/near_cpus.h"
#include "exec/output_writer.h"
#include "exec/torch_responder.h"
#include "exec/tracker.h"

#define INTERPRETER "/bin/bash"

/* The inputs of the child. */
struct launch_order {
    const char *folder;
    const struct attempt_spec *spec;
    const char *script; /* path; NULL: there is none */
    pid_t shim;
    int report;
    int writer; /* socket of the output's writer; -1: there is none */
};

/* The child's report: when the output files are open, and when a step fails. */
struct report {
    int answer;
    struct fault fault;
    struct output_file file[OUTPUT_STREAMS];
};
_Static_assert(sizeof(struct report) <= PIPE_BUF, "a report is written whole or not at all");

static void send_report(const struct launch_order *order, const struct report *report)
{
    file_write_fd(order->report, report, sizeof *report);
}

static int connect_streams(const struct output *output)
{
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (null < 0 || dup2(null, STDIN_FILENO) < 0 ||
        dup2(output->fd[OUTPUT_STDOUT], STDOUT_FILENO) < 0 ||
        dup2(output->fd[OUTPUT_STDERR], STDERR_FILENO) < 0)
        return -errno;
    return 0;
}

static void reset_signals(void)
{
    sigset_t none;
    for (int i = 1; i < NSIG; i++)
        signal(i, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

/* The daemon's raised limit would break programs that use select() or that loop over all possible
 * descriptors. */
static int limit_files(int64_t open_files)
{
    struct rlimit limit;
    if (open_files == 0)
        return 0;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return -errno;
    if ((rlim_t)open_files < limit.rlim_max)
        limit.rlim_cur = (rlim_t)open_files;
    return setrlimit(RLIMIT_NOFILE, &limit) < 0 ? -errno : 0;
}

/* Can the kernel execute the file? Anything else is run by bash. */
static bool runs_by_itself(const char *script)
{
    char start[4] = {0};
    int fd = open(script, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    bool itself = read(fd, start, sizeof start) >= 2 &&
                  (memcmp(start, "#!", 2) == 0 || memcmp(start, "\177ELF", 4) == 0);
    close(fd);
    return itself;
}

static int count_texts(const char *const *list)
{
    int n = 0;
    while (list && list[n])
        n++;
    return n;
}

static const char *find_path(const char *const *env)
{
    for (; env && *env; env++)
        if (strncmp(*env, "PATH=", 5) == 0)
            return *env + 5;
    return "/usr/local/bin:/usr/bin:/bin";
}

/* The script with its arguments. Returns an array for free, or NULL without memory. */
static const char **list_arguments(const struct launch_order *order)
{
    const struct attempt_spec *spec = order->spec;
    const char **argv = calloc((size_t)count_texts(spec->argv) + 3, sizeof *argv);
    int n = 0;
    if (!argv)
        return NULL;
    if (order->script && !runs_by_itself(order->script))
        argv[n++] = INTERPRETER;
    if (order->script)
        argv[n++] = order->script;
    for (int i = 0; i < count_texts(spec->argv); i++)
        argv[n++] = spec->argv[i];
    return argv;
}

/* Puts the profiler before the command. */
static char **add_profiler(const struct attempt_spec *spec, const char *const *argv)
{
    char output[PATH_MAX];
    if (spec_output_path(
            spec, spec->array_id ? "colloc-%A_%a" : "colloc-%j", output, sizeof output) < 0)
        return NULL;
    return profiler_command(spec->profiler, output, (char *const *)(uintptr_t)argv);
}

/* The task's environment with the variables for PyTorch's profiler, which come first: the first of
 * two with a name counts. Returns an array for free, or NULL without memory. */
static const char **add_torch(const struct launch_order *order, char *sockets, size_t size)
{
    static const char use_daemon[] = "KINETO_USE_DAEMON=1", name[] = "KINETO_IPC_SOCKET_DIR=";
    const char *const *env = order->spec->env;
    int n = count_texts(env);
    const char **list = calloc((size_t)n + 3, sizeof *list);
    int added = 0;
    if (list && torch_responder_start(order->folder, order->spec) == 0) {
        snprintf(sockets, size, "%s%s", name, order->spec->torch_sockets);
        list[added++] = use_daemon;
        list[added++] = sockets;
    }
    if (list && n > 0)
        memcpy(list + added, env, (size_t)n * sizeof *list);
    return list;
}

/* What runs beside the program: where it is; an empty text: it is not wanted, or not there. */
struct companions {
    char tracker[PATH_MAX], reader[PATH_MAX];
};

static void find_companions(const struct attempt_spec *spec, struct companions *ret)
{
    if (!spec->track || tracker_find(ret->tracker, sizeof ret->tracker) < 0)
        *ret->tracker = '\0';
    bool is_read = spec->metric_from || spec->step_pattern;
    if (!is_read || metric_reader_find(ret->reader, sizeof ret->reader) < 0)
        *ret->reader = '\0';
}

static int execute_program(const struct launch_order *order, const struct companions *companions)
{
    const struct attempt_spec *spec = order->spec;
    char sockets[TORCH_SOCKET_FOLDER + 32];
    bool has_torch = spec->torch && spec->torch_sockets;
    const char **torch_env = has_torch ? add_torch(order, sockets, sizeof sockets) : NULL;
    const char *const *variables = torch_env ? torch_env : spec->env;
    char *const *env = (char *const *)(uintptr_t)variables;
    const char **argv = list_arguments(order);
    char **command = argv ? add_profiler(spec, argv) : NULL;
    if (!command || (has_torch && !torch_env) || setenv("PATH", find_path(spec->env), 1) < 0) {
        free(argv);
        free(torch_env);
        return -ENOMEM;
    }
    if (*companions->tracker)
        tracker_start(companions->tracker, spec);
    if (*companions->reader && spec->metric_from)
        metric_reader_start(companions->reader, spec);
    if (*companions->reader && spec->step_pattern)
        step_reader_start(companions->reader, spec);
    if (order->script && !spec->profiler)
        execve(command[0], command, env);
    else
        execvpe(command[0], command, env);
    int r = -errno;
    free(torch_env);
    return r;
}

static int open_output(const struct launch_order *order, struct output *output, struct fault *fault)
{
    const struct attempt_spec *spec = order->spec;
    struct identity identity;
    int r = identity_init(&identity, spec->uid, spec->gid);
    if (r < 0)
        return fault_set(fault, -r, "cannot look up user %u: %s", spec->uid, strerror(-r));
    r = output_open(order->folder, spec, &identity, fault, output);
    if (r < 0)
        return r;
    r = connect_streams(output);
    if (r < 0)
        return fault_set(fault, -r, "cannot connect the task's standard streams: %s", strerror(-r));
    r = identity_become(&identity);
    return r < 0 ? fault_set(fault, -r, "cannot become user %u: %s", spec->uid, strerror(-r)) : 0;
}

/* The default file in the user's folder has a limit; files that the user named are the user's. */
static void limit_output(const struct launch_order *order, const struct output *output)
{
    const struct attempt_spec *spec = order->spec;
    if (!spec->output_max_bytes || !output->is_default)
        return;
    int r = order->writer < 0 ? -EAGAIN
                              : output_writer_connect(order->writer, output_is_shared(spec));
    if (r < 0)
        fprintf(stderr, "colloc: the output file has no limit: %s\n", strerror(-r));
}

/* A task that would not be kept from others' GPUs does not start. */
static int filter_gpus(const struct attempt_spec *spec)
{
    struct gpu_minors minors;
    if (!spec->gpu_minors)
        return 0;
    int r = spec->cgroup ? gpu_minors_parse(spec->gpu_minors, &minors) : -EINVAL;
    return r < 0 ? r : device_filter_set(spec->cgroup, &minors);
}

/* Takes all steps, in order. Returns only if one failed: its -errno. */
static int become_task(const struct launch_order *order, struct fault *fault)
{
    const struct attempt_spec *spec = order->spec;
    const char *what = spec->profiler  ? profiler_program(spec->profiler)
                       : order->script ? "the script"
                                       : spec->argv[0];
    struct companions companions;
    struct output output;
    find_companions(spec, &companions);
    int r = spec->cgroup ? cgroup_enter(spec->cgroup, &spec->limits) : 0;
    if (r < 0)
        return fault_set(fault, -r, "cannot enter cgroup %s: %s", spec->cgroup, strerror(-r));
    r = filter_gpus(spec);
    if (r < 0)
        return fault_set(fault, -r, "cannot keep it from other GPUs: %s", strerror(-r));
    if (spec->near_cpus)
        near_cpus_bind(spec->near_cpus, spec->limits.cpus); /* it runs on any as well */
    r = open_output(order, &output, fault);
    if (r < 0)
        return r;
    struct report report = {.file = {output.file[OUTPUT_STDOUT], output.file[OUTPUT_STDERR]}};
    send_report(order, &report);
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != order->shim)
        return fault_set(fault, ESRCH, "the shim was killed while it started the task");
    r = limit_files(spec->open_files);
    if (r < 0)
        return fault_set(fault, -r, "cannot limit the number of open files: %s", strerror(-r));
    umask(spec->umask);
    if (chdir(spec->cwd) < 0)
        return fault_set(
            fault, errno, "cannot change to folder %s: %s", spec->cwd, strerror(errno));
    reset_signals();
    limit_output(order, &output);
    r = execute_program(order, &companions);
    if (order->script && !spec->profiler && r == -ENOENT)
        what = "the script: the interpreter its first line names";
    return fault_set(fault, -r, "cannot execute %s: %s", what, strerror(-r));
}

static _Noreturn void run_child(const struct launch_order *order)
{
    struct report report = {0};
    setsid();
    report.answer = become_task(order, &report.fault);
    send_report(order, &report);
    _exit(127);
}

/* Before the child, which then inherits the socket. Returns this; -1: there is no writer. */
static int start_writer(struct launch *launch, const struct attempt_spec *spec)
{
    char path[PATH_MAX];
    int socket = -1;
    if (!spec->output_max_bytes || !spec->stdout_is_default ||
        spec_output_path(spec, spec->stdout_path, path, sizeof path) < 0)
        return -1;
    const struct output_writer_task task = {
        path, spec->output_max_bytes, spec->uid, spec->gid, spec->umask};
    return output_writer_start(&task, &launch->writer, &socket) < 0 ? -1 : socket;
}

int launch_begin(struct launch *launch, const char *folder, const struct attempt_spec *spec,
    bool has_script, struct fault *fault)
{
    char script[PATH_MAX];
    int ends[2];
    snprintf(script, sizeof script, "%s/script", folder);
    *launch = (struct launch){.report = -1};
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
        return fault_set(fault, errno, "cannot start a process: %s", strerror(errno));
    const struct launch_order order = {
        folder, spec, has_script ? script : NULL, getpid(), ends[1], start_writer(launch, spec)};
    launch->pid = fork();
    if (launch->pid == 0)
        run_child(&order);
    int errnum = errno;
    close(ends[1]);
    if (order.writer >= 0)
        close(order.writer);
    if (launch->pid > 0) {
        launch->report = ends[0];
        return 0;
    }
    close(ends[0]);
    return fault_set(fault, errnum, "cannot start a process: %s", strerror(errnum));
}

/* The end of the pipe means that exec, or the end of the child, has closed it. */
bool launch_is_under_way(struct launch *launch)
{
    struct report report;
    ssize_t n = -1;
    while (launch->report >= 0 && (n = read(launch->report, &report, sizeof report)) > 0) {
        if (n != (ssize_t)sizeof report)
            continue;
        launch->answer = report.answer;
        launch->fault = report.fault;
        if (report.answer == 0)
            memcpy(launch->file, report.file, sizeof launch->file);
    }
    if (launch->report >= 0 && n == 0) {
        close(launch->report);
        launch->report = -1;
    }
    return launch->report >= 0;
}
