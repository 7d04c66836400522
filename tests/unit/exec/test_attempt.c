/* SPDX-License-Identifier: Apache-2.0 */
/* Attempts under real shims, as root (tasks then run as user 65534) or as anyone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/units.h"
#include "exec/attempt.h"
#include "exec/claim.h"
#include "exec/tree.h"

#define OTHER_USER 65534

static char base[64];    /* ours, passable */
static char work[80];    /* the user's */
static int folder_count; /* each test starts in a fresh one */

struct running {
    char folder[128];
    struct attempt_watch watch;
    struct attempt_exit result;
};

static uid_t user(void)
{
    return geteuid() == 0 ? OTHER_USER : geteuid();
}

static gid_t group(void)
{
    return geteuid() == 0 ? OTHER_USER : getegid();
}

static struct attempt_spec spec_of(const char *script)
{
    static const char *const env[] = {"PATH=/usr/bin:/bin", "LC_ALL=C", NULL};
    return (struct attempt_spec){
        .task_id = 7,
        .uid = user(),
        .gid = group(),
        .cwd = work,
        .umask = 022,
        .script = script ? span_of(script) : (struct span){0},
        .env = env,
        .grace_us = 20 * SECOND_US,
    };
}

static const char *read_text(const char *folder, const char *name)
{
    static char text[64 * KIB];
    char path[PATH_MAX], *data;
    size_t size;
    struct fault fault;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (file_read(path, sizeof text - 1, &fault, &data, &size) < 0)
        return "(no file)";
    memcpy(text, data, size + 1);
    free(data);
    return text;
}

static bool exists(const char *folder, const char *name)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return access(path, F_OK) == 0;
}

static void wait_gone(const struct attempt_watch *watch)
{
    struct pollfd event = {.fd = watch->pidfd, .events = POLLIN};
    assert_int_equal(poll(&event, 1, 60000), 1);
}

static void create(struct running *running, const struct attempt_spec *spec)
{
    struct fault fault = {0};
    snprintf(running->folder, sizeof running->folder, "%s/tasks/7/%d", base, folder_count++);
    if (attempt_create(running->folder, spec, &fault) < 0)
        fail_msg("%s", fault.text);
}

static void spawn(struct running *running)
{
    struct fault fault = {0};
    if (attempt_spawn(getenv("COLLOC_SHIM"), running->folder, &fault, &running->watch) < 0)
        fail_msg("%s", fault.text);
}

static int finish(struct running *running)
{
    struct attempt_watch watch;
    struct fault fault = {0};
    wait_gone(&running->watch);
    attempt_unwatch(&running->watch);
    int state = attempt_probe(running->folder, &fault, &watch, &running->result);
    if (state < 0)
        fail_msg("%s", fault.text);
    return state;
}

static struct running run_spec(const struct attempt_spec *spec)
{
    struct running running;
    create(&running, spec);
    spawn(&running);
    assert_int_equal(finish(&running), ATTEMPT_ENDED);
    return running;
}

static struct running run(const char *script)
{
    struct attempt_spec spec = spec_of(script);
    return run_spec(&spec);
}

/* A FIFO in the user's folder: the task opens it for writing, and whoever reads it knows that the
 * task got there. */
static const char *make_fifo(void)
{
    static char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/ready.%d", work, folder_count);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(chown(path, user(), group()), 0);
    return path;
}

/* What was written to it, up to its end: all writers have closed it, or died. */
static const char *read_fifo(const char *path)
{
    static char text[4096];
    size_t size = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    for (ssize_t n;
         size < sizeof text - 1 && (n = read(fd, text + size, sizeof text - 1 - size)) > 0;)
        size += (size_t)n;
    text[size] = '\0';
    close(fd);
    return text;
}

static bool is_alive(pid_t pid)
{
    return kill(pid, 0) == 0 || errno == EPERM;
}

static void test_success(void **state)
{
    struct running done = run(
        "#COLLOC --gpus=1\necho hello; echo oh >&2; echo CUDA out of memory. Tried to allocate >&2\n");
    assert_int_equal(done.result.exit_code, 0);
    assert_int_equal(done.result.signal, 0);
    assert_string_equal(failure_name(done.result.failure.class), "none");
    assert_string_equal(read_text(done.folder, "stdout"), "hello\n");
    assert_non_null(strstr(read_text(done.folder, "stderr"), "oh\n"));
    assert_true(
        done.result.end_wall_us >= done.result.start_wall_us && done.result.start_wall_us > 0);
    assert_true(done.result.max_rss_bytes > 0);
}

static void test_exit_code_and_evidence(void **state)
{
    struct running done = run("#!/bin/sh\necho step 1\necho 'cannot find dataset' >&2\nexit 3\n");
    assert_int_equal(done.result.exit_code, 3);
    assert_string_equal(failure_name(done.result.failure.class), "program");
    assert_string_equal(done.result.failure.evidence, "cannot find dataset");
}

static void test_signal(void **state)
{
    struct running done = run("kill -SEGV $$\n");
    assert_int_equal(done.result.exit_code, -1);
    assert_int_equal(done.result.signal, SIGSEGV);
    assert_string_equal(failure_name(done.result.failure.class), "signal");
}

static void test_gpu_oom(void **state)
{
    struct running done = run(
        "echo 'Traceback (most recent call last):\n  File \"t.py\", line 3\n"
        "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB' >&2; exit 1\n");
    assert_string_equal(failure_name(done.result.failure.class), "gpu-oom");
    assert_string_equal(done.result.failure.evidence,
        "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB");
}

static void test_command_without_script(void **state)
{
    const char *const argv[] = {"printf", "%s|", "a b", "$HOME", NULL};
    struct attempt_spec spec = spec_of(NULL);
    spec.argv = argv;
    struct running done = run_spec(&spec);
    assert_int_equal(done.result.exit_code, 0);
    assert_string_equal(read_text(done.folder, "stdout"), "a b|$HOME|");
}

static void test_surroundings(void **state)
{
    const char *const argv[] = {"one", "two words", NULL};
    const char *const env[] = {"PATH=/usr/bin:/bin", "CUDA_VISIBLE_DEVICES=0", "ODD=a=b\nc", NULL};
    const char *const added[] = {"CUDA_VISIBLE_DEVICES=GPU-1", NULL};
    struct attempt_spec spec = spec_of(
        "pwd; id -u; id -g; id -G; umask; echo \"$1|$2|$#\"; echo \"$CUDA_VISIBLE_DEVICES\"\n"
        "echo \"$ODD\"; env | grep -c .; ls /proc/self/fd | tr '\\n' ' '; cat\n"
        "grep -E 'Sig(Blk|Ign)' /proc/self/status\n");
    spec.argv = argv;
    spec.env = env;
    spec.env_added = added;
    spec.umask = 027;
    int leaked = open("/dev/null", O_RDONLY); /* without O_CLOEXEC */
    struct running done = run_spec(&spec);
    close(leaked);
    char expected[512];
    snprintf(expected, sizeof expected, "%s\n%u\n%u\n", work, user(), group());
    const char *out = read_text(done.folder, "stdout");
    assert_memory_equal(out, expected, strlen(expected));
    if (geteuid() == 0)
        assert_non_null(strstr(out, "65534\n65534\n65534\n0027\n"));
    assert_non_null(strstr(out, "\n0027\none|two words|2\nGPU-1\na=b\nc\n"));
    assert_non_null(strstr(out, "\n0 1 2 3 SigBlk:\t0000000000000000\n"));
    unsigned long long ignored = 1;
    sscanf(strstr(out, "SigIgn:"), "SigIgn: %llx", &ignored);
    assert_int_equal(ignored & 0x7fffffff, 0); /* 32 and 33 are the C library's own */
}

static void test_launch_failures(void **state)
{
    struct attempt_spec spec = spec_of("true\n");
    spec.cwd = "/nonexistent/folder";
    struct running done = run_spec(&spec);
    assert_string_equal(failure_name(done.result.failure.class), "launch");
    assert_non_null(strstr(done.result.failure.evidence, "/nonexistent/folder"));
    assert_int_equal(done.result.exit_code, -1);

    done = run("#!/nonexistent/python\n");
    assert_string_equal(failure_name(done.result.failure.class), "launch");
    assert_non_null(strstr(done.result.failure.evidence, "No such file"));
}

static void test_needs_something_to_run(void **state)
{
    struct fault fault;
    struct attempt_watch watch;
    struct attempt_exit result;
    struct attempt_spec spec = spec_of(NULL);
    char folder[128];
    snprintf(folder, sizeof folder, "%s/none", base);
    assert_int_equal(attempt_create(folder, &spec, &fault), -EINVAL);
    assert_false(exists(base, "none"));
    assert_int_equal(attempt_probe(folder, &fault, &watch, &result), ATTEMPT_NO_FOLDER);
    spec = spec_of("true\n");
    assert_int_equal(attempt_create(folder, &spec, &fault), 0);
    assert_int_equal(attempt_create(folder, &spec, &fault), -EEXIST);
}

/*
 * The main process ends; a process that it left in a new session holds the FIFO open until it is
 * killed, too.
 */
static void test_leftovers_end(void **state)
{
    const char *fifo = make_fifo();
    char script[PATH_MAX + 256];
    snprintf(script, sizeof script,
        "(setsid sh -c '(trap \"\" HUP; echo x; exec sleep 1000) & echo $! >&3' >/dev/null 3>%s) \nexit 0\n",
        fifo);
    struct attempt_spec spec = spec_of(script);
    struct running running;
    create(&running, &spec);
    spawn(&running);
    read_fifo(fifo);
    assert_int_equal(finish(&running), ATTEMPT_ENDED);
    assert_int_equal(running.result.exit_code, 0);
    assert_string_equal(failure_name(running.result.failure.class), "none");
}

static void cancel_story(
    const char *trap, int64_t grace_us, enum attempt_ask ask, const char *class)
{
    const char *fifo = make_fifo();
    char script[PATH_MAX + 256];
    snprintf(script, sizeof script,
        "%s\nsetsid sh -c '%s; while :; do sleep 1000; done' &\necho $$ $! >%s\nwhile :; do sleep 1000 & wait; done\n",
        trap, trap, fifo);
    struct attempt_spec spec = spec_of(script);
    spec.grace_us = grace_us;
    struct running running;
    create(&running, &spec);
    spawn(&running);
    int main_pid, other_pid;
    assert_int_equal(sscanf(read_fifo(fifo), "%d %d", &main_pid, &other_pid), 2);
    assert_true(is_alive(main_pid) && is_alive(other_pid));
    assert_int_equal(tree_find_root(other_pid, &running.watch.shim, 1), 0);
    assert_int_equal(attempt_terminate(&running.watch, ask), 0);
    assert_int_equal(finish(&running), ATTEMPT_ENDED);
    assert_false(is_alive(main_pid));
    assert_false(is_alive(other_pid));
    assert_string_equal(failure_name(running.result.failure.class), class);
}

static void test_cancel(void **state)
{
    cancel_story(":", 60 * SECOND_US, ATTEMPT_ASK_CANCEL, "cancelled");
}

static void test_cancel_of_the_deaf(void **state)
{
    cancel_story("trap \"\" TERM", 100 * MS_US, ATTEMPT_ASK_CANCEL, "cancelled");
}

static void test_time_limit_asked(void **state)
{
    cancel_story(":", 60 * SECOND_US, ATTEMPT_ASK_TIME_LIMIT, "time-limit");
}

/* Without bash, which loses a signal that comes just before its `exec`. */
static void test_time_limit_kept_by_shim(void **state)
{
    const char *const argv[] = {"sleep", "1000", NULL};
    struct attempt_spec spec = spec_of(NULL);
    spec.argv = argv;
    spec.time_limit_us = 50 * MS_US;
    struct running done = run_spec(&spec);
    assert_string_equal(failure_name(done.result.failure.class), "time-limit");
    assert_int_equal(done.result.signal, SIGTERM);
}

/* A limit that was raised meanwhile lies in the folder: read when the first one is over. */
static void test_time_limit_raised(void **state)
{
    struct attempt_spec spec = spec_of("sleep 0.3\necho done\n");
    spec.time_limit_us = 50 * MS_US;
    spec.warning_signal = SIGUSR1;
    spec.warning_us = 20 * MS_US;
    struct running running;
    char path[PATH_MAX];
    create(&running, &spec);
    snprintf(path, sizeof path, "%s/" ATTEMPT_TIME_LIMIT, running.folder);
    assert_int_equal(file_write_atomic(path, "3600000000", 10, 0600), 0);
    spawn(&running);
    assert_int_equal(finish(&running), ATTEMPT_ENDED);
    assert_string_equal(read_text(running.folder, "stdout"), "done\n");
    assert_string_equal(failure_name(running.result.failure.class), "none");
}

static void test_time_limit_file_of_any_bytes(void **state)
{
    static const char *const texts[] = {"", "x", "-1", "99999999999999999999", "0 0"};
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        struct attempt_spec spec = spec_of("exec sleep 1000\n");
        spec.time_limit_us = 50 * MS_US;
        struct running running;
        char path[PATH_MAX];
        create(&running, &spec);
        snprintf(path, sizeof path, "%s/" ATTEMPT_TIME_LIMIT, running.folder);
        assert_int_equal(file_write_atomic(path, texts[i], strlen(texts[i]), 0600), 0);
        spawn(&running);
        assert_int_equal(finish(&running), ATTEMPT_ENDED);
        assert_string_equal(failure_name(running.result.failure.class), "time-limit");
    }
}

/* A script that writes a line when it gets the signal, and its child that would be ended by it. */
static void make_handler_script(char *script, size_t size, const char *fifo)
{
    snprintf(script, size,
        "trap 'echo saved' USR1\nsleep 1000 &\necho >%s\nwhile kill -0 $! 2>/dev/null; do wait; "
        "done\n",
        fifo);
}

static void test_warning_before_the_time_limit(void **state)
{
    const char *fifo = make_fifo();
    char script[PATH_MAX + 256];
    make_handler_script(script, sizeof script, fifo);
    struct attempt_spec spec = spec_of(script);
    spec.time_limit_us = 4 * SECOND_US;
    spec.warning_signal = SIGUSR1;
    spec.warning_us = 2 * SECOND_US;
    struct running running;
    create(&running, &spec);
    spawn(&running);
    read_fifo(fifo);
    assert_int_equal(finish(&running), ATTEMPT_ENDED);
    assert_string_equal(read_text(running.folder, "stdout"), "saved\n");
    assert_string_equal(failure_name(running.result.failure.class), "time-limit");
}

/* It is stopped when its limit is over, and goes on later: then the new limit counts, and the
 * warning before it. */
static void test_time_limit_of_a_task_that_was_stopped(void **state)
{
    const char *fifo = make_fifo();
    char handler[PATH_MAX + 256], script[PATH_MAX + 300], path[PATH_MAX], never[32];
    make_handler_script(handler, sizeof handler, fifo);
    snprintf(script, sizeof script, "sleep 0.3\n%s", handler);
    struct attempt_spec spec = spec_of(script);
    spec.time_limit_us = 100 * MS_US;
    spec.warning_signal = SIGUSR1;
    spec.warning_us = 50 * MS_US;
    struct running running;
    create(&running, &spec);
    snprintf(path, sizeof path, "%s/" ATTEMPT_TIME_LIMIT, running.folder);
    int n = snprintf(never, sizeof never, "%" PRId64, TIME_NEVER / 2);
    assert_int_equal(file_write_atomic(path, never, (size_t)n, 0600), 0);
    spawn(&running);
    read_fifo(fifo);
    assert_int_equal(file_write_atomic(path, "3000000", 7, 0600), 0);
    assert_int_equal(finish(&running), ATTEMPT_ENDED);
    assert_string_equal(read_text(running.folder, "stdout"), "saved\n");
    assert_string_equal(failure_name(running.result.failure.class), "time-limit");
}

static void test_warning_before_an_eviction(void **state)
{
    const char *fifo = make_fifo();
    char script[PATH_MAX + 256];
    make_handler_script(script, sizeof script, fifo);
    struct attempt_spec spec = spec_of(script);
    spec.warning_signal = SIGUSR1;
    spec.warning_us = 60 * SECOND_US;
    spec.grace_us = 500 * MS_US; /* the shorter of both */
    struct running running;
    create(&running, &spec);
    spawn(&running);
    read_fifo(fifo);
    attempt_terminate(&running.watch, ATTEMPT_ASK_EVICT);
    assert_int_equal(finish(&running), ATTEMPT_ENDED);
    assert_string_equal(read_text(running.folder, "stdout"), "saved\n");
    assert_string_equal(failure_name(running.result.failure.class), "cancelled");
}

static void test_cancel_sends_no_warning(void **state)
{
    const char *fifo = make_fifo();
    char script[PATH_MAX + 256];
    make_handler_script(script, sizeof script, fifo);
    struct attempt_spec spec = spec_of(script);
    spec.warning_signal = SIGUSR1;
    spec.warning_us = 60 * SECOND_US;
    struct running running;
    create(&running, &spec);
    spawn(&running);
    read_fifo(fifo);
    attempt_terminate(&running.watch, ATTEMPT_ASK_CANCEL);
    assert_int_equal(finish(&running), ATTEMPT_ENDED);
    assert_string_equal(read_text(running.folder, "stdout"), "");
}

static void test_politeness(void **state)
{
    const char *fifo = make_fifo();
    char script[PATH_MAX + 128];
    snprintf(script, sizeof script,
        "trap 'echo saved; exit 0' TERM\necho >%s\nwhile :; do sleep 1000 & wait; done\n", fifo);
    struct attempt_spec spec = spec_of(script);
    struct running running;
    create(&running, &spec);
    spawn(&running);
    read_fifo(fifo);
    attempt_terminate(&running.watch, ATTEMPT_ASK_CANCEL);
    assert_int_equal(finish(&running), ATTEMPT_ENDED);
    assert_string_equal(read_text(running.folder, "stdout"), "saved\n");
    assert_int_equal(running.result.exit_code, 0);
    assert_string_equal(failure_name(running.result.failure.class), "cancelled");
}

static void test_shutdown_is_no_cancel(void **state)
{
    const char *fifo = make_fifo();
    char script[PATH_MAX + 128];
    snprintf(script, sizeof script, "echo >%s\nexec sleep 1000\n", fifo);
    struct attempt_spec spec = spec_of(script);
    struct running running;
    create(&running, &spec);
    spawn(&running);
    read_fifo(fifo);
    kill(running.watch.shim, SIGTERM);
    assert_int_equal(finish(&running), ATTEMPT_ENDED);
    assert_string_equal(failure_name(running.result.failure.class), "signal");
}

static void test_lost_and_swept(void **state)
{
    const char *fifo = make_fifo();
    char script[PATH_MAX + 128];
    snprintf(script, sizeof script,
        "setsid sh -c 'echo >%s; while :; do sleep 1000 & wait; done' &\nexec sleep 1000\n", fifo);
    struct attempt_spec spec = spec_of(script);
    struct running running;
    create(&running, &spec);
    spawn(&running);
    read_fifo(fifo);
    kill(running.watch.shim, SIGKILL);
    assert_int_equal(finish(&running), ATTEMPT_LOST);
    assert_string_equal(failure_name(running.result.failure.class), "lost");
    assert_true(attempt_sweep(running.folder, user()) > 0);
    while (attempt_sweep(running.folder, user()) > 0)
        ;
}

static void test_adopted(void **state)
{
    const char *fifo = make_fifo();
    char script[PATH_MAX + 128];
    snprintf(script, sizeof script, "echo >%s\ncat %s\nexit 5\n", fifo, fifo);
    struct attempt_spec spec = spec_of(script);
    struct running running;
    create(&running, &spec);
    pid_t daemon = fork(); /* starts the shim and is gone */
    if (daemon == 0) {
        spawn(&running);
        _exit(0);
    }
    waitpid(daemon, NULL, 0);
    read_fifo(fifo);
    struct fault fault;
    assert_int_equal(
        attempt_probe(running.folder, &fault, &running.watch, &running.result), ATTEMPT_RUNNING);
    int fd = open(fifo, O_WRONLY | O_CLOEXEC); /* lets it go on */
    close(fd);
    assert_int_equal(finish(&running), ATTEMPT_ENDED);
    assert_int_equal(running.result.exit_code, 5);
}

static void test_fenced(void **state)
{
    struct attempt_spec spec = spec_of("echo ran\n");
    struct running running;
    struct fault fault;
    create(&running, &spec);
    assert_int_equal(attempt_probe(running.folder, &fault, &running.watch, &running.result),
        ATTEMPT_NEVER_STARTED);
    spawn(&running);
    assert_int_equal(finish(&running), ATTEMPT_NEVER_STARTED);
    assert_false(exists(running.folder, "stdout"));
    assert_false(exists(running.folder, "exit"));
}

/* The shim as a process that stops at each of its system calls. */
static pid_t spawn_traced(const char *folder)
{
    pid_t pid = fork();
    if (pid == 0) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
            _exit(77);
        raise(SIGSTOP);
        execl(getenv("COLLOC_SHIM"), "colloc-shim", folder, NULL);
        _exit(127);
    }
    return pid;
}

/* Which file the fsync forces that the process is about to call; "" when it calls something
 * else. */
static void read_fsync(pid_t pid, char *ret_path, size_t size)
{
    struct __ptrace_syscall_info info = {0};
    char link[64];
    ptrace(PTRACE_GET_SYSCALL_INFO, pid, (void *)sizeof info, &info);
    ssize_t n = 0;
    if (info.op == PTRACE_SYSCALL_INFO_ENTRY && info.entry.nr == SYS_fsync) {
        snprintf(link, sizeof link, "/proc/%d/fd/%d", (int)pid, (int)info.entry.args[0]);
        n = readlink(link, ret_path, size - 1);
    }
    ret_path[n > 0 ? n : 0] = '\0';
}

/* After a power cut in the task's first moment the disk must know that it was started: the folder
 * is forced to the disk when it has the claim. That costs one flush. */
static void test_claim_is_on_the_disk_before_the_task_runs(void **state)
{
    struct attempt_spec spec = spec_of("true\n");
    struct running running;
    char path[PATH_MAX];
    int status, n_fsyncs = 0;
    bool had_claim = false;
    create(&running, &spec);
    pid_t pid = spawn_traced(running.folder);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        skip(); /* a sandbox refuses ptrace */
    ptrace(PTRACE_SETOPTIONS, pid, NULL,
        PTRACE_O_EXITKILL | PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |
            PTRACE_O_TRACECLONE);
    while (WIFSTOPPED(status) && status >> 16 == 0) { /* up to the fork of the task's process */
        path[0] = '\0';
        if (WSTOPSIG(status) == (SIGTRAP | 0x80))
            read_fsync(pid, path, sizeof path);
        n_fsyncs += path[0] != '\0';
        if (strcmp(path, running.folder) == 0)
            had_claim = exists(running.folder, CLAIM_NAME);
        ptrace(PTRACE_SYSCALL, pid, NULL, NULL);
        assert_int_equal(waitpid(pid, &status, 0), pid);
    }
    assert_true(WIFSTOPPED(status));
    unsigned long child = 0;
    ptrace(PTRACE_GETEVENTMSG, pid, NULL, &child);
    kill(pid, SIGKILL);
    kill((pid_t)child, SIGKILL);
    waitpid(pid, NULL, 0);
    waitpid((pid_t)child, NULL, __WALL);
    assert_true(had_claim);
    assert_int_equal(n_fsyncs, 1);
}

/* The name is on the disk, what is in the file need not be: a power cut may empty it. */
static void test_an_emptied_claim_is_no_fence(void **state)
{
    struct attempt_spec spec = spec_of("true\n");
    struct running running;
    struct fault fault;
    char path[PATH_MAX];
    create(&running, &spec);
    snprintf(path, sizeof path, "%s/" CLAIM_RESERVED_NAME, running.folder);
    char claim[PATH_MAX];
    snprintf(claim, sizeof claim, "%s/" CLAIM_NAME, running.folder);
    assert_int_equal(rename(path, claim), 0);
    assert_int_equal(truncate(claim, 0), 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(
            attempt_probe(running.folder, &fault, &running.watch, &running.result), ATTEMPT_LOST);
}

static void test_a_fence_stays(void **state)
{
    struct attempt_spec spec = spec_of("echo ran >>fenced\n");
    struct running running;
    struct fault fault;
    create(&running, &spec);
    for (int i = 0; i < 2; i++)
        assert_int_equal(attempt_probe(running.folder, &fault, &running.watch, &running.result),
            ATTEMPT_NEVER_STARTED);
    spawn(&running);
    assert_int_equal(finish(&running), ATTEMPT_NEVER_STARTED);
    assert_false(exists(work, "fenced"));
    attempt_clean(running.folder);
    assert_false(exists(running.folder, ""));
}

static void test_second_shim_gives_up(void **state)
{
    struct attempt_spec spec = spec_of("echo ran >>once\n");
    struct running running;
    create(&running, &spec);
    spawn(&running);
    struct running second = running;
    spawn(&second);
    wait_gone(&second.watch);
    attempt_unwatch(&second.watch); /* a probe now might fence the first, which has yet to claim */
    assert_int_equal(finish(&running), ATTEMPT_ENDED);
    assert_string_equal(read_text(work, "once"), "ran\n");
}

static void name_mark(
    struct attempt_spec *spec, char *variable, size_t size, const char *env[2], int number)
{
    snprintf(variable, size, "COLLOC_ATTEMPT_NUMBER=%d", number);
    env[0] = variable;
    env[1] = NULL;
    spec->env_added = env;
}

/* Shims against a fencing daemon: each attempt runs exactly once or never, and the daemon knows
 * which. */
static void test_race(void **state)
{
    enum { COUNT = 100 };
    static struct running racing[COUNT];
    int states[COUNT], ran = 0;
    struct attempt_spec spec = spec_of("echo ran >>mark.$COLLOC_ATTEMPT_NUMBER\n");
    for (int i = 0; i < COUNT; i++) {
        char variable[64];
        const char *env[2];
        name_mark(&spec, variable, sizeof variable, env, i);
        create(&racing[i], &spec);
    }
    for (int i = 0; i < COUNT; i++) {
        struct attempt_watch found = {.pidfd = -1};
        struct fault fault;
        spawn(&racing[i]);
        for (volatile int spin = 0; spin < i * 20000; spin++)
            ;
        states[i] = attempt_probe(racing[i].folder, &fault, &found, &racing[i].result);
        if (states[i] == ATTEMPT_RUNNING)
            assert_int_equal(found.shim, racing[i].watch.shim);
        attempt_unwatch(&found);
    }
    for (int i = 0; i < COUNT; i++) {
        char mark[32];
        snprintf(mark, sizeof mark, "mark.%d", i);
        int last = finish(&racing[i]);
        if (states[i] == ATTEMPT_NEVER_STARTED) {
            assert_int_equal(last, ATTEMPT_NEVER_STARTED);
            assert_false(exists(work, mark));
        } else {
            assert_int_equal(last, ATTEMPT_ENDED);
            assert_string_equal(read_text(work, mark), "ran\n");
            ran++;
        }
    }
    print_message("%d of %d were claimed before the fence\n", ran, COUNT);
}

/* A daemon that starts an attempt and is killed at some moment of it. */
static void start_and_die(struct running *running, const struct attempt_spec *spec, int spins)
{
    pid_t daemon = fork();
    if (daemon == 0) {
        struct fault fault;
        if (attempt_create(running->folder, spec, &fault) == 0)
            attempt_spawn(getenv("COLLOC_SHIM"), running->folder, &fault, &running->watch);
        for (;;)
            pause();
    }
    for (volatile int spin = 0; spin < spins; spin++)
        ;
    kill(daemon, SIGKILL);
    waitpid(daemon, NULL, 0);
}

/* The next daemon starts anew what never started, and nothing else: each task runs once. */
static void test_daemon_killed_at_any_moment(void **state)
{
    enum { ROUNDS = 60 };
    int again = 0;
    for (int i = 0; i < ROUNDS; i++) {
        struct attempt_spec spec = spec_of("echo ran >>killed.$COLLOC_ATTEMPT_NUMBER\n");
        char variable[64], mark[32];
        const char *env[2];
        struct running running = {.watch.pidfd = -1};
        struct fault fault = {0};
        name_mark(&spec, variable, sizeof variable, env, i);
        snprintf(running.folder, sizeof running.folder, "%s/tasks/8/%d", base, i);
        start_and_die(&running, &spec, i * i * 8000);
        int found = attempt_probe(running.folder, &fault, &running.watch, &running.result);
        if (found == ATTEMPT_NEVER_STARTED || found == ATTEMPT_NO_FOLDER) {
            create(&running, &spec);
            spawn(&running);
            again++;
        }
        assert_int_equal(found == ATTEMPT_ENDED ? found : finish(&running), ATTEMPT_ENDED);
        snprintf(mark, sizeof mark, "killed.%d", i);
        assert_string_equal(read_text(work, mark), "ran\n");
    }
    print_message("%d of %d were started by the next daemon\n", again, ROUNDS);
}

static void test_named_output(void **state)
{
    struct attempt_spec spec = spec_of("echo out; echo err >&2\n");
    spec.stdout_path = "log-%j-100%%.txt";
    struct running done = run_spec(&spec);
    assert_string_equal(read_text(work, "log-7-100%.txt"), "out\nerr\n");
    assert_false(exists(done.folder, "stdout"));

    spec.append = true;
    run_spec(&spec);
    assert_string_equal(read_text(work, "log-7-100%.txt"), "out\nerr\nout\nerr\n");

    spec.append = false;
    spec.stderr_path = "errors";
    run_spec(&spec);
    assert_string_equal(read_text(work, "log-7-100%.txt"), "out\n");
    assert_string_equal(read_text(work, "errors"), "err\n");
}

/* An earlier attempt's end, in the same file, says nothing about this one. */
static void test_appended_log(void **state)
{
    struct attempt_spec spec = spec_of("echo 'CUDA error: out of memory'; exit 1\n");
    spec.stdout_path = "appended";
    spec.append = true;
    struct running done = run_spec(&spec);
    assert_string_equal(failure_name(done.result.failure.class), "gpu-oom");
    spec.script = span_of("exit 1\n");
    done = run_spec(&spec);
    assert_string_equal(failure_name(done.result.failure.class), "program");
    assert_string_equal(done.result.failure.evidence, "");
}

/* The output file begins anew between the error and the end: the error is in the file before. */
static void test_evidence_in_the_file_before(void **state)
{
    struct attempt_spec spec = spec_of(
        "seq 10000 13000; echo 'CUDA error: out of memory'; seq 20000 23000; exit 1\n");
    spec.stdout_path = "colloc-%j.out";
    spec.stdout_is_default = true;
    spec.output_max_bytes = 64 * KIB;
    struct running done = run_spec(&spec);
    const char *text = read_text(work, "colloc-7.out");
    assert_non_null(strstr(text, "is in colloc-7.out.1"));
    assert_null(strstr(text, "CUDA error"));
    assert_string_equal(failure_name(done.result.failure.class), "gpu-oom");
    const bool appends[] = {true, false}; /* the file before is of an earlier attempt */
    for (size_t i = 0; i < ARRAY_SIZE(appends); i++) {
        spec.script = span_of("exit 1\n");
        spec.append = appends[i];
        done = run_spec(&spec);
        assert_string_equal(failure_name(done.result.failure.class), "program");
    }
}

/* The second attempt appends to the file of the first, which begins anew and then has more than
 * the first attempt wrote: its evidence is in the file before, behind that of the first attempt. */
static void test_evidence_of_a_second_attempt(void **state)
{
    static const struct {
        const char *first, *second, *class;
    } cases[] = {
        {"seq 10000 13000; exit 1\n", "echo 'CUDA error: out of memory'; seq 20000 25000; exit 1\n",
            "gpu-oom"},
        {"echo 'CUDA error: out of memory'; seq 10000 13000; exit 1\n", "seq 20000 25000; exit 1\n",
            "program"},
        {"seq 10000 13000; exit 1\n",
            "seq 30000 35000; echo 'CUDA error: out of memory'; seq 20000 25000; exit 1\n",
            "gpu-oom"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct attempt_spec spec = spec_of(cases[i].first);
        spec.stdout_path = "colloc-%j.out";
        spec.stdout_is_default = true;
        spec.output_max_bytes = 64 * KIB;
        run_spec(&spec);
        spec.script = span_of(cases[i].second);
        spec.append = true;
        struct running done = run_spec(&spec);
        assert_non_null(strstr(read_text(work, "colloc-7.out"), "is in colloc-7.out.1"));
        assert_string_equal(failure_name(done.result.failure.class), cases[i].class);
    }
}

/* SIGKILL for a task's processes does not take what they have printed. */
static void test_the_last_output_of_a_killed_task(void **state)
{
    struct attempt_spec spec = spec_of("seq 10000 13999; echo the end; kill -KILL 0\n");
    spec.stdout_path = "colloc-%j.out";
    spec.stdout_is_default = true;
    spec.output_max_bytes = 1 * MIB;
    for (int i = 0; i < 5; i++) {
        struct running done = run_spec(&spec);
        assert_int_equal(done.result.signal, SIGKILL);
        assert_non_null(strstr(read_text(work, "colloc-7.out"), "\n13999\nthe end\n"));
    }
}

static void test_named_output_is_opened_as_the_user(void **state)
{
    if (geteuid() != 0)
        skip();
    char own[PATH_MAX], link[PATH_MAX];
    snprintf(own, sizeof own, "%s/roots-own", base);
    snprintf(link, sizeof link, "%s/innocent", work);
    assert_int_equal(file_write_atomic(own, "precious", 8, 0600), 0);
    assert_int_equal(symlink(own, link), 0);
    struct attempt_spec spec = spec_of("echo ran >ran-anyway\n");
    const char *const tries[] = {own, "innocent", "../new"};
    for (size_t i = 0; i < ARRAY_SIZE(tries); i++) {
        spec.stdout_path = tries[i];
        struct running done = run_spec(&spec);
        assert_string_equal(failure_name(done.result.failure.class), "launch");
        assert_non_null(strstr(done.result.failure.evidence, "Permission denied"));
    }
    assert_string_equal(read_text(base, "roots-own"), "precious");
    assert_false(exists(work, "ran-anyway"));
    assert_false(exists(base, "new"));
}

/* A magic link would be the shim's own open file. */
static void test_output_to_a_magic_link_is_refused(void **state)
{
    const char *const tries[] = {"/dev/stdout", "/proc/self/fd/1", "/proc/thread-self/fd/2"};
    for (size_t i = 0; i < ARRAY_SIZE(tries); i++) {
        struct attempt_spec spec = spec_of("echo ran >ran-anyway\n");
        spec.stdout_path = tries[i];
        struct running done = run_spec(&spec);
        assert_string_equal(failure_name(done.result.failure.class), "launch");
        assert_non_null(strstr(done.result.failure.evidence, "link to an open file"));
        assert_false(exists(work, "ran-anyway"));
    }
    struct attempt_spec spec = spec_of("echo ran\n");
    spec.stdout_path = "/dev/null";
    struct running done = run_spec(&spec);
    assert_int_equal(done.result.exit_code, 0);
}

/* What has the name by now was not written by the task. */
static void test_output_that_was_replaced_says_nothing(void **state)
{
    struct attempt_spec spec = spec_of(
        "mv log old; echo 'CUDA error: out of memory' >log; exit 3\n");
    spec.stdout_path = "log";
    struct running done = run_spec(&spec);
    assert_int_equal(done.result.exit_code, 3);
    assert_string_equal(failure_name(done.result.failure.class), "program");
    assert_string_equal(done.result.failure.evidence, "");
}

static void test_own_output_belongs_to_the_user(void **state)
{
    struct running done = run("echo x\n");
    char path[PATH_MAX];
    struct stat status;
    snprintf(path, sizeof path, "%s/stdout", done.folder);
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_uid, user());
    assert_int_equal(status.st_mode & 07777, 0600);
    snprintf(path, sizeof path, "%s/spec", done.folder);
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_uid, geteuid());
    assert_int_equal(status.st_mode & 07777, 0600);
}

static void test_broken_spec(void **state)
{
    struct attempt_spec spec = spec_of("true\n");
    struct running running;
    char path[PATH_MAX];
    create(&running, &spec);
    snprintf(path, sizeof path, "%s/spec", running.folder);
    assert_int_equal(file_write_atomic(path, "colloc-spec 1 9\n", 16, 0600), 0);
    spawn(&running);
    assert_int_equal(finish(&running), ATTEMPT_ENDED);
    assert_string_equal(failure_name(running.result.failure.class), "launch");
}

static int set_up(void **state)
{
    snprintf(base, sizeof base, "/tmp/colloc-exec-XXXXXX");
    if (!mkdtemp(base) || chmod(base, 0711) < 0)
        return -1;
    snprintf(work, sizeof work, "%s/work", base);
    return mkdir(work, 0700) < 0 || chown(work, user(), group()) < 0 ? -1 : 0;
}

static int tear_down(void **state)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", base);
    return system(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_success),
        cmocka_unit_test(test_exit_code_and_evidence),
        cmocka_unit_test(test_signal),
        cmocka_unit_test(test_gpu_oom),
        cmocka_unit_test(test_command_without_script),
        cmocka_unit_test(test_surroundings),
        cmocka_unit_test(test_launch_failures),
        cmocka_unit_test(test_needs_something_to_run),
        cmocka_unit_test(test_leftovers_end),
        cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_cancel_of_the_deaf),
        cmocka_unit_test(test_time_limit_asked),
        cmocka_unit_test(test_time_limit_kept_by_shim),
        cmocka_unit_test(test_time_limit_raised),
        cmocka_unit_test(test_time_limit_of_a_task_that_was_stopped),
        cmocka_unit_test(test_time_limit_file_of_any_bytes),
        cmocka_unit_test(test_warning_before_the_time_limit),
        cmocka_unit_test(test_warning_before_an_eviction),
        cmocka_unit_test(test_cancel_sends_no_warning),
        cmocka_unit_test(test_politeness),
        cmocka_unit_test(test_shutdown_is_no_cancel),
        cmocka_unit_test(test_lost_and_swept),
        cmocka_unit_test(test_adopted),
        cmocka_unit_test(test_fenced),
        cmocka_unit_test(test_claim_is_on_the_disk_before_the_task_runs),
        cmocka_unit_test(test_an_emptied_claim_is_no_fence),
        cmocka_unit_test(test_a_fence_stays),
        cmocka_unit_test(test_second_shim_gives_up),
        cmocka_unit_test(test_race),
        cmocka_unit_test(test_daemon_killed_at_any_moment),
        cmocka_unit_test(test_named_output),
        cmocka_unit_test(test_appended_log),
        cmocka_unit_test(test_evidence_in_the_file_before),
        cmocka_unit_test(test_evidence_of_a_second_attempt),
        cmocka_unit_test(test_the_last_output_of_a_killed_task),
        cmocka_unit_test(test_named_output_is_opened_as_the_user),
        cmocka_unit_test(test_output_to_a_magic_link_is_refused),
        cmocka_unit_test(test_output_that_was_replaced_says_nothing),
        cmocka_unit_test(test_own_output_belongs_to_the_user),
        cmocka_unit_test(test_broken_spec),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
