/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pretend GPUs for `colloc serve --emulate=4xA100-40GB`.
 *
 * They are a file that `colloc-emulator create` makes in a new temporary folder, and everything
 * that finds its path in COLLOC_EMULATOR uses them: collocd through the emulator's NVML library,
 * trainings that pretend, the pretend MPS. collocd is a child here, because the folder has to be
 * removed when it ends. Its tasks have to end, too: elsewhere tasks outlive the daemon, but not the
 * GPUs. This process adopts them when collocd ends (PR_SET_CHILD_SUBREAPER), and kills the rest.
 */
#include "cli/emulate.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "base/beside.h"
#include "base/file.h"
#include "base/process.h"
#include "cli/command.h"
#include "cli/print.h"

static const char *find_tool(const char *name, char *path, size_t size)
{
    static const char *const places[] = {"../" COLLOC_LIBEXEC_DIR "/colloc/emulator",
        "../../emulator"}; /* installed; in the build */
    return beside_find(places, ARRAY_SIZE(places), name, path, size) == 0 ? path : NULL;
}

const char *emulate_library(char *path, unsigned long size)
{
    return find_tool("libnvidia-ml.so.1", path, size);
}

/* ---- the folder ---- */

static int make_folder(char *path, size_t size)
{
    const char *base = getenv("TMPDIR");
    if (!base || base[0] != '/')
        base = "/tmp";
    if (snprintf(path, size, "%s/colloc-emulator-XXXXXX", base) >= (int)size)
        return -ENAMETOOLONG;
    /* Tasks of other users find the file, too, where root serves them. */
    return mkdtemp(path) && chmod(path, 0755) == 0 ? 0 : -errno;
}

/* ---- children ---- */

static int wait_for(pid_t pid)
{
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* The emulator itself prints the mistake in a list of GPUs. */
static int create_gpus(const char *gpus, const char *file)
{
    char tool[PATH_MAX], option[512];
    if (!find_tool("colloc-emulator", tool, sizeof tool))
        return EXIT_REFUSED;
    snprintf(option, sizeof option, "--gpus=%s", gpus);
    char *const words[] = {
        (char[]){"colloc-emulator"}, (char[]){"create"}, option, (char *)(uintptr_t)file, NULL};
    pid_t pid = fork();
    if (pid == 0) {
        execv(tool, words);
        _exit(127);
    }
    return pid < 0 ? EXIT_REFUSED : wait_for(pid);
}

/* Puts a folder first in a list of folders, such as PATH. */
static void prepend_folder(const char *variable, const char *folder, const char *otherwise)
{
    char list[3 * PATH_MAX];
    const char *own = getenv(variable);
    own = own && *own ? own : otherwise;
    snprintf(list, sizeof list, "%s%s%s", folder, *own ? ":" : "", own);
    setenv(variable, list, 1);
}

/* collocd and its helpers find the emulator in place of the driver: its programs, and its libraries
 * (libcuda suspends processes). */
static void prepare_environment(const char *file)
{
    char tool[PATH_MAX];
    find_tool("colloc-emulator", tool, sizeof tool);
    *strrchr(tool, '/') = '\0';
    prepend_folder("PATH", tool, "/usr/bin:/bin");
    prepend_folder("LD_LIBRARY_PATH", tool, "");
    setenv("COLLOC_EMULATOR", file, 1);
}

/* collocd gets a new process group, so that a Ctrl-C at the terminal reaches it only once: passed
 * on by this process. */
static pid_t start_collocd(
    const char *file, const sigset_t *old, void (*become_collocd)(void *), void *context)
{
    pid_t parent = getpid(), pid = fork();
    if (pid != 0)
        return pid;
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent)
        _exit(1);
    sigprocmask(SIG_SETMASK, old, NULL);
    prepare_environment(file);
    become_collocd(context);
    _exit(EXIT_REFUSED);
}

/* Passes signals on until collocd has ended. Returns its exit status. */
static int wait_for_collocd(pid_t collocd, const sigset_t *signals)
{
    for (int number, status;;) {
        if (sigwait(signals, &number) != 0)
            continue;
        if (number != SIGCHLD) {
            kill(collocd, number);
            continue;
        }
        for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;)
            if (pid == collocd)
                return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
}

static int kill_child(pid_t pid, void *context)
{
    struct process_stat stat;
    if (process_read_stat(pid, &stat) == 0 && stat.parent == getpid())
        kill(pid, SIGKILL);
    return 0;
}

/* Kills all descendants. The children of a process that ends become children of this process. */
static void end_children(void)
{
    do
        process_walk(kill_child, NULL);
    while (waitpid(-1, NULL, 0) > 0 || errno == EINTR);
}

/* This process stays as the parent of all: as subreaper it gets the orphans of collocd, too, and
 * ends them with it. The signals that it attends to are blocked and read one by one. */
static int supervise_collocd(const char *file, void (*become_collocd)(void *), void *context)
{
    sigset_t signals, old;
    const int attended[] = {SIGTERM, SIGINT, SIGQUIT, SIGHUP, SIGCHLD};
    sigemptyset(&signals);
    for (size_t i = 0; i < ARRAY_SIZE(attended); i++)
        sigaddset(&signals, attended[i]);
    sigprocmask(SIG_BLOCK, &signals, &old);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    pid_t collocd = start_collocd(file, &old, become_collocd, context);
    int status = collocd < 0 ? EXIT_REFUSED : wait_for_collocd(collocd, &signals);
    end_children();
    sigprocmask(SIG_SETMASK, &old, NULL);
    return status;
}

/* Each run has its own folder, so two runs do not share GPUs. */
int emulate_run(const char *gpus, void (*become_collocd)(void *context), void *context)
{
    char folder[PATH_MAX - 8], file[PATH_MAX], tool[PATH_MAX];
    if (!find_tool("colloc-pretend-train", tool, sizeof tool)) {
        print_error("--emulate: cannot find the emulator: it is neither installed with this "
                    "colloc nor in its build folder");
        return EXIT_REFUSED;
    }
    int r = make_folder(folder, sizeof folder);
    if (r < 0) {
        print_error("cannot create a folder for the emulated GPUs: %s", strerror(-r));
        return EXIT_REFUSED;
    }
    snprintf(file, sizeof file, "%s/gpus", folder);
    fflush(NULL);
    int status = create_gpus(gpus, file) == 0 ? EXIT_OK : EXIT_USAGE;
    if (status == EXIT_OK) {
        fprintf(stderr,
            "colloc: emulated GPUs: %s. A pretend training: %s --memory-mib=8000 "
            "--seconds=60\n",
            gpus, tool);
        status = supervise_collocd(file, become_collocd, context);
    }
    file_remove_folder(folder);
    return status;
}
