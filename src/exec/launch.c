#include "exec/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"

#define INTERPRETER "/bin/bash"

struct launch {
    const struct attempt_spec *spec;
    const char *script;
    const struct identity *identity;
    const struct output *output;
    pid_t shim;
};

static int connect_streams(const struct output *output)
{
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(output->out, STDOUT_FILENO) < 0 ||
        dup2(output->err, STDERR_FILENO) < 0)
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

/* Raised limits are the daemon's: programs that use select(), or walk all numbers up to the limit,
 * do not bear them. */
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

/* What the kernel can run by itself; anything else is taken for shell text. */
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

static int execute(const struct launch *launch)
{
    const struct attempt_spec *spec = launch->spec;
    char *const *env = (char *const *)(uintptr_t)spec->env;
    if (!launch->script) {
        if (setenv("PATH", find_path(spec->env), 1) < 0)
            return -errno;
        execvpe(spec->argv[0], (char *const *)(uintptr_t)spec->argv, env);
        return -errno;
    }
    const char **argv = calloc((size_t)count_texts(spec->argv) + 3, sizeof *argv);
    if (!argv)
        return -ENOMEM;
    int n = 0;
    if (!runs_by_itself(launch->script))
        argv[n++] = INTERPRETER;
    argv[n++] = launch->script;
    for (int i = 0; i < count_texts(spec->argv); i++)
        argv[n++] = spec->argv[i];
    execve(argv[0], (char *const *)(uintptr_t)argv, env);
    return -errno;
}

/* Every step of the way, in order. Comes back only when one failed. */
static int become_task(const struct launch *launch, struct fault *fault)
{
    const struct attempt_spec *spec = launch->spec;
    const char *what = launch->script ? "the script" : spec->argv[0];
    int r = connect_streams(launch->output);
    if (r < 0)
        return fault_set(fault, -r, "cannot connect the task's standard streams: %s", strerror(-r));
    r = identity_become(launch->identity);
    if (r < 0)
        return fault_set(fault, -r, "cannot become user %u: %s", spec->uid, strerror(-r));
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != launch->shim)
        return fault_set(fault, ESRCH, "the shim was killed while it started the task");
    r = limit_files(spec->open_files);
    if (r < 0)
        return fault_set(fault, -r, "cannot limit the number of open files: %s", strerror(-r));
    umask(spec->umask);
    if (chdir(spec->cwd) < 0)
        return fault_set(
            fault, errno, "cannot change to folder %s: %s", spec->cwd, strerror(errno));
    reset_signals();
    r = execute(launch);
    if (launch->script && r == -ENOENT)
        what = "the script: the interpreter its first line names";
    return fault_set(fault, -r, "cannot execute %s: %s", what, strerror(-r));
}

static void run_child(const struct launch *launch, int report)
{
    struct fault fault;
    setsid();
    int r = become_task(launch, &fault);
    file_write_fd(report, &r, sizeof r);
    file_write_fd(report, &fault, sizeof fault);
    _exit(127);
}

/* Nothing to read means that exec closed the pipe: the program runs. */
static int read_report(int report, struct fault *fault)
{
    int r;
    if (read(report, &r, sizeof r) != sizeof r)
        return 0;
    struct fault told;
    if (read(report, &told, sizeof told) != sizeof told)
        told.text[0] = '\0';
    return fault_set(fault, -r, "%s", told.text);
}

int launch(const struct attempt_spec *spec, const char *script, const struct identity *identity,
    const struct output *output, struct fault *fault, pid_t *ret_pid)
{
    const struct launch todo = {spec, script, identity, output, getpid()};
    int report[2];
    pid_t pid = -1;
    if (pipe2(report, O_CLOEXEC) == 0) {
        pid = fork();
        if (pid == 0)
            run_child(&todo, report[1]);
        close(report[1]);
    }
    if (pid < 0)
        return fault_set(fault, errno, "cannot start a process: %s", strerror(errno));
    int r = read_report(report[0], fault);
    close(report[0]);
    if (r < 0)
        waitpid(pid, NULL, 0);
    *ret_pid = pid;
    return r;
}
