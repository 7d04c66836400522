/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An emulated nvidia-cuda-mps-control, as far as a manager observes NVIDIA's: the daemon, its files
 * in the pipe and log directories, and the commands on its standard input. After the "Multi-Process
 * Service" guide (docs.nvidia.com/deploy/mps).
 *
 *     $CUDA_MPS_PIPE_DIRECTORY/nvidia-cuda-mps-control.pid    locked while the daemon runs
 *     $CUDA_MPS_PIPE_DIRECTORY/control                        the socket (mps_channel.c)
 *     $CUDA_MPS_LOG_DIRECTORY/control.log, server.log         what a manager looks for failures in
 *
 * The same program is the daemon (-d, -f) and its client: without an argument it passes each line
 * of its standard input to the daemon and prints the answers.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "emulator/mps_channel.h"
#include "emulator/mps_commands.h"

static const char PID_FILE[] = "nvidia-cuda-mps-control.pid";
/* How often a daemon that was asked to quit counts its clients. Chosen. */
static const int QUIT_POLL_MS = 5;

/* One command per connection. A connection that requested to quit stays open until the daemon
 * exits, so the requester waits for that. */
static void answer_request(struct control *control, int listener)
{
    struct timeval limit = {.tv_sec = 1};
    char line[256] = "";
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

    if (fd < 0)
        return;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    bool was_quitting = control->quitting;
    ssize_t n = read(fd, line, sizeof(line) - 1);
    FILE *out = fdopen(fd, "w");
    if (n > 0 && out)
        control_run(control, line, out);
    if (out && (was_quitting || !control->quitting))
        fclose(out);
}

static bool may_end(struct control *control)
{
    FILE *nowhere = fopen("/dev/null", "we");
    int clients = nowhere ? control_clients(control, nowhere) : 0;

    if (nowhere)
        fclose(nowhere);
    return clients == 0 || clock_monotonic_us() >= control->quit_by_us;
}

static volatile sig_atomic_t ended;

static void on_signal(int number)
{
    ended = number;
}

/*
 * Serves one command after the other until a signal or "quit" ends the daemon. While it waits for
 * clients to end it polls, since the end of a client that was killed sends no message.
 *
 * The server is killed at the end: it has no state to save, and its memory is free once its entry
 * in the world is removed. The socket and the pid file go last: a manager that sees neither can
 * start the next daemon at once.
 */
static void serve_requests(struct control *control, int listener)
{
    char path[PATH_MAX];
    struct sigaction action = {.sa_handler = on_signal};

    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
    while (!ended && !(control->quitting && may_end(control))) {
        struct pollfd wait = {.fd = listener, .events = POLLIN};
        if (poll(&wait, 1, control->quitting ? QUIT_POLL_MS : -1) <= 0)
            continue;
        control_reap(control);
        answer_request(control, listener);
    }
    log_line(control->log, "Control", "Exit");
    if (control->server > 0) {
        kill(control->server, SIGKILL);
        waitpid(control->server, NULL, 0);
    }
    if (mps_path("control", path, sizeof(path)) == 0)
        unlink(path);
    if (mps_path(PID_FILE, path, sizeof(path)) == 0)
        unlink(path);
}

static FILE *open_log(const char *name)
{
    const char *folder = getenv("CUDA_MPS_LOG_DIRECTORY");
    char path[PATH_MAX];

    snprintf(path, sizeof(path), "%s/%s", folder && *folder ? folder : "/var/log/nvidia-mps", name);
    return fopen(path, "ae");
}

/*
 * Locks the pid file for as long as the daemon lives.
 *
 * Returns a descriptor, -EWOULDBLOCK when another daemon has it, or -errno.
 */
static int lock_pid_file(void)
{
    char path[PATH_MAX];
    int r = mps_path(PID_FILE, path, sizeof(path));

    if (r < 0)
        return r;
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd < 0)
        return -errno;
    if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        r = -errno;
        close(fd);
        return r;
    }
    return fd;
}

static int write_pid(int pid_file, pid_t pid)
{
    char text[16];
    int n = snprintf(text, sizeof(text), "%d\n", (int)pid);

    return ftruncate(pid_file, 0) < 0 ? -errno : file_write_fd(pid_file, text, (size_t)n);
}

static void detach_from_terminal(void)
{
    int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);

    setsid();
    for (int fd = 0; fd < 3; fd++)
        dup2(nowhere, fd);
    close(nowhere);
}

static int print_refusal(const char *format, const char *what)
{
    fprintf(stderr, format, what);
    fputc('\n', stderr);
    return 1;
}

/* The listening socket exists before the parent returns, so a client started next finds it. */
static int start_daemon(bool background)
{
    struct control control = {.default_percent = 100, .server_percent = 100};
    struct fault fault = {""};
    const char *gpus = getenv("COLLOC_EMULATOR");

    if (!gpus || world_open(gpus, &fault, &control.world) < 0)
        return print_refusal(
            "no emulated GPUs: COLLOC_EMULATOR: %s", gpus ? fault.text : "not set");
    int pid_file = lock_pid_file();
    if (pid_file == -EWOULDBLOCK)
        return print_refusal("An instance of this daemon is already running%s", "");
    int listener = pid_file < 0 ? pid_file : mps_listen();
    if (listener < 0)
        return print_refusal("Failed to create the control socket: %s", strerror(-listener));
    control.log = open_log("control.log");
    control.server_log = open_log("server.log");
    pid_t pid = background ? fork() : 0;
    if (pid > 0)
        return write_pid(pid_file, pid) < 0;
    if (pid < 0)
        return print_refusal("fork: %s", strerror(errno));
    if (background)
        detach_from_terminal();
    else
        write_pid(pid_file, getpid());
    log_line(control.log, "Control", "Start");
    serve_requests(&control, listener);
    return 0;
}

/* Sends the commands on standard input to the daemon of the pipe directory. */
static int pass_on(void)
{
    char line[256], text[16384];

    while (fgets(line, sizeof(line), stdin)) {
        if (mps_request(line, text, sizeof(text)) < 0)
            return print_refusal("Cannot find MPS control daemon process%s", "");
        fputs(text, stdout);
        fflush(stdout);
    }
    return 0;
}

/* Without an argument it passes commands from its standard input on to the daemon. */
int main(int argc, char **argv)
{
    if (argc == 1)
        return pass_on();
    if (argc == 2 && strcmp(argv[1], "-d") == 0)
        return start_daemon(true);
    if (argc == 2 && strcmp(argv[1], "-f") == 0)
        return start_daemon(false);
    fputs("Usage: nvidia-cuda-mps-control [-d | -f]\n", stderr);
    return 2;
}
