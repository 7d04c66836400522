/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Three processes:
 *
 *     colloc   reads the output, watches the limits, kills the rest
 *     keeper   enters namespaces of users, mounts, network and processes, waits for the program
 *     program  process 1 of its namespace: when it ends, the kernel kills all that is left there
 *
 * Each dies with its parent. Where a namespace is not allowed (some containers and distributions)
 * the program runs without it, and the answer says what was not protected.
 */
#include "sandbox/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "sandbox/descendants.h"
#include "sandbox/sandbox_view.h"

enum {
    PIECE = 65536,
    POLL_MS = 100, /* chosen: how long memory can grow unseen */
    NOT_FOUND = 127,
    ALL_GAPS = SANDBOX_FILES | SANDBOX_NETWORK | SANDBOX_PROCESSES,
};

#define FILE_MOST ((rlim_t)8 << 30) /* bytes of one file; chosen: no checkpoint is larger */

struct run {
    const struct sandbox_program *program;
    struct sandbox_end *end;
    unsigned *gaps; /* shared with the keeper and the program */
    pid_t keeper;
    int pidfd, output;
};

/* ---- the keeper ---- */

static int write_text(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : write(fd, text, strlen(text));
    int r = n < 0 ? -errno : 0;
    if (fd >= 0)
        close(fd);
    return r;
}

/* The user keeps its id; no other user is known in the namespace. */
static int map_user(uid_t uid, gid_t gid)
{
    char text[64];
    write_text("/proc/self/setgroups", "deny");
    snprintf(text, sizeof text, "%u %u 1", gid, gid);
    int r = write_text("/proc/self/gid_map", text);
    snprintf(text, sizeof text, "%u %u 1", uid, uid);
    return r < 0 ? r : write_text("/proc/self/uid_map", text);
}

/* Returns the gaps that remain. */
static unsigned enter_namespaces(void)
{
    static const int all = CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWPID | CLONE_NEWUTS;
    uid_t uid = geteuid();
    gid_t gid = getegid();
    if (uid == 0 && unshare(all) == 0)
        return 0;
    if (unshare(CLONE_NEWUSER) < 0 || map_user(uid, gid) < 0)
        return ALL_GAPS;
    return unshare(all) == 0 ? 0 : ALL_GAPS;
}

/* Processes of one training talk over the loopback interface. */
static void raise_loopback(void)
{
    struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd >= 0) {
        ioctl(fd, SIOCSIFFLAGS, &request);
        close(fd);
    }
}

static void set_limit(int resource, rlim_t most)
{
    struct rlimit limit;
    if (getrlimit(resource, &limit) < 0 ||
        (limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur < most))
        return;
    limit.rlim_cur = most;
    setrlimit(resource, &limit);
}

_Noreturn static void become_program(const struct run *run, int output)
{
    const struct sandbox_program *program = run->program;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (!(*run->gaps & SANDBOX_FILES) && sandbox_view_enter(program->folder) != 0)
        *run->gaps |= SANDBOX_FILES;
    if (!(*run->gaps & SANDBOX_NETWORK))
        raise_loopback();
    set_limit(RLIMIT_CORE, 0);
    set_limit(RLIMIT_FSIZE, FILE_MOST);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    int input = open("/dev/null", O_RDONLY);
    if (dup2(input, STDIN_FILENO) < 0 || dup2(output, STDOUT_FILENO) < 0 ||
        dup2(output, STDERR_FILENO) < 0 || close_range(3, ~0U, 0) < 0)
        _exit(NOT_FOUND);
    for (const char *const *setting = program->settings; *setting; setting++)
        putenv((char *)(uintptr_t)*setting);
    execvp(program->words[0], (char *const *)(uintptr_t)program->words);
    dprintf(STDERR_FILENO, "%s: %s\n", program->words[0], strerror(errno));
    _exit(NOT_FOUND);
}

static int exit_code_of(int status)
{
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

_Noreturn static void become_keeper(const struct run *run, int output)
{
    int status = 0;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setsid(); /* no terminal to read from */
    *run->gaps = enter_namespaces();
    pid_t pid = fork();
    if (pid == 0)
        become_program(run, output);
    close(output);
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    _exit(pid < 0 ? NOT_FOUND : exit_code_of(status));
}

/* ---- colloc ---- */

static int start_keeper(struct run *run)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    fflush(NULL); /* otherwise both processes would write the buffered output */
    run->keeper = fork();
    int r = run->keeper < 0 ? -errno : 0;
    if (run->keeper == 0)
        become_keeper(run, ends[1]);
    close(ends[1]);
    run->output = ends[0];
    if (r == 0 && (run->pidfd = pidfd_open(run->keeper, 0)) < 0)
        r = -errno;
    return r;
}

/* Keeps the end of the output. */
static void add_tail(struct sandbox_end *end, const char *piece, size_t size)
{
    static const size_t most = SANDBOX_TAIL_SIZE - 1;
    size_t old = strnlen(end->tail, most);
    if (size > most) {
        piece += size - most;
        size = most;
    }
    size_t kept = old + size > most ? most - size : old;
    memmove(end->tail, end->tail + old - kept, kept);
    for (size_t i = 0; i < size; i++)
        end->tail[kept + i] = piece[i] ? piece[i] : ' ';
    end->tail[kept + size] = '\0';
}

static void read_output(struct run *run)
{
    char piece[PIECE];
    ssize_t n = read(run->output, piece, sizeof piece);
    if (n > 0) {
        run->end->output_bytes += n;
        add_tail(run->end, piece, (size_t)n);
    } else if (n == 0) {
        close(run->output);
        run->output = -1;
    }
}

/* Has the run ended? Then end->how says why. */
static bool has_ended(const struct run *run, int64_t deadline_us, bool exited)
{
    const struct sandbox_program *program = run->program;
    if (access(program->result, F_OK) == 0)
        run->end->how = SANDBOX_RESULT;
    else if (exited)
        run->end->how = SANDBOX_ENDED;
    else if (clock_monotonic_us() > deadline_us)
        run->end->how = SANDBOX_TIME;
    else if (descendants_memory(run->keeper) > program->memory_limit_bytes)
        run->end->how = SANDBOX_MEMORY;
    else
        return false;
    return true;
}

static void watch_run(struct run *run)
{
    int64_t now = clock_monotonic_us(), deadline_us = now + run->program->limit_us, next_us = now;
    for (;;) {
        struct pollfd events[] = {
            {.fd = run->pidfd, .events = POLLIN}, {.fd = run->output, .events = POLLIN}};
        poll(events, 2, POLL_MS);
        if (run->output >= 0 && events[1].revents)
            read_output(run);
        now = clock_monotonic_us();
        bool exited = events[0].revents != 0;
        if (!exited && now < next_us)
            continue; /* /proc is read once in POLL_MS, however often the program prints */
        next_us = now + POLL_MS * MS_US;
        if (has_ended(run, deadline_us, exited))
            return;
        if (run->program->on_wait)
            run->program->on_wait(
                run->program->context, now - (deadline_us - run->program->limit_us));
    }
}

static void end_run(struct run *run)
{
    int status = 0;
    kill(run->keeper, run->end->how == SANDBOX_ENDED ? 0 : SIGKILL);
    while (waitpid(run->keeper, &status, 0) < 0 && errno == EINTR)
        ;
    run->end->status = exit_code_of(status);
    descendants_kill();
    int64_t before = -1;
    while (run->output >= 0 && run->end->output_bytes != before) {
        before = run->end->output_bytes;
        read_output(run);
    }
}

int sandbox_run(
    const struct sandbox_program *program, struct fault *fault, struct sandbox_end *ret_end)
{
    *ret_end = (struct sandbox_end){0};
    struct run run = {.program = program, .end = ret_end, .keeper = -1, .pidfd = -1, .output = -1};
    run.gaps = mmap(
        NULL, sizeof *run.gaps, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (run.gaps == MAP_FAILED)
        return fault_set(fault, errno, "cannot start %s: %s", program->words[0], strerror(errno));
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    int r = start_keeper(&run);
    if (r == 0)
        watch_run(&run);
    if (run.keeper > 0)
        end_run(&run);
    ret_end->gaps = *run.gaps;
    munmap(run.gaps, sizeof *run.gaps);
    if (run.output >= 0)
        close(run.output);
    if (run.pidfd >= 0)
        close(run.pidfd);
    return r < 0 ? fault_set(fault, -r, "cannot start %s: %s", program->words[0], strerror(-r)) : 0;
}
