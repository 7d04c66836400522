/*
 * A pretend nvidia-cuda-mps-control, as far as a manager sees NVIDIA's: the daemon and its files in the pipe and log
 * directories, and the commands on its input. After the "Multi-Process Service" guide (docs.nvidia.com/deploy/mps).
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/units.h"
#include "emulator/mps.h"
#include "emulator/mps_clients.h"

static const char PID_FILE[] = "nvidia-cuda-mps-control.pid";
static const int QUIT_LOOK_MS = 5;

struct control {
    struct world *world;
    FILE *log, *server_log;
    pid_t server; /* 0: none yet */
    double default_percent, server_percent;
    bool quitting;
    int64_t quit_by_us;
};

struct command {
    const char *name;
    void (*run)(struct control *control, const char *arguments, FILE *out);
};

static void note(FILE *log, const char *who, const char *format, ...) __attribute__((format(printf, 3, 4)));

static void note(FILE *log, const char *who, const char *format, ...)
{
    char when[32];
    int64_t now_us = clock_wall_us();
    time_t now = now_us / SECOND_US;
    struct tm parts;
    va_list arguments;

    if (!log)
        return;
    strftime(when, sizeof(when), "%F %T", localtime_r(&now, &parts));
    fprintf(log, "[%s.%03d %s %5d] ", when, (int)(now_us % SECOND_US / MS_US), who, (int)getpid());
    va_start(arguments, format);
    vfprintf(log, format, arguments);
    va_end(arguments);
    fputc('\n', log);
    fflush(log);
}

static void forget_dead_server(struct control *control)
{
    if (control->server > 0 && waitpid(control->server, NULL, WNOHANG) == control->server) {
        note(control->log, "Control", "Server %d exited", (int)control->server);
        control->server = 0;
    }
}

static bool start_server(struct control *control)
{
    if (control->server > 0)
        return true;
    pid_t server = mps_server_start();
    if (server < 0) {
        note(control->log, "Control", "Failed to start a server");
        return false;
    }
    control->server = server;
    control->server_percent = control->default_percent;
    note(control->log, "Control", "Starting new server %d for user %d", (int)server, (int)getuid());
    note(control->server_log, "Server", "Volta MPS: Creating server context, pid %d", (int)server);
    return true;
}

static bool is_server(const struct control *control, const char *arguments, FILE *out)
{
    if (control->server > 0 && atoi(arguments) == control->server)
        return true;
    fputs("Server not found\n", out);
    return false;
}

static int client_count(struct control *control, FILE *out)
{
    world_enter(control->world);
    int count = control->server > 0 ? mps_server_clients(control->world, control->server, NULL, '\n', out) : 0;
    world_leave(control->world);
    return count;
}

/* Not NVIDIA's: what a pretend client says first. */
static void run_enlist(struct control *control, const char *arguments, FILE *out)
{
    if (control->quitting || !start_server(control))
        return;
    note(control->log, "Control", "Accepting connection...");
    note(control->server_log, "Server", "Received new client request");
    fprintf(out, "%d %g\n", (int)control->server, control->server_percent);
}

static void run_start_server(struct control *control, const char *arguments, FILE *out)
{
    if (!start_server(control))
        fputs("Failed to start server\n", out);
}

static void run_get_server_list(struct control *control, const char *arguments, FILE *out)
{
    if (control->server > 0)
        fprintf(out, "%d\n", (int)control->server);
}

static void run_get_server_status(struct control *control, const char *arguments, FILE *out)
{
    if (is_server(control, arguments, out))
        fputs("ACTIVE\n", out);
}

static void run_get_client_list(struct control *control, const char *arguments, FILE *out)
{
    if (is_server(control, arguments, out))
        client_count(control, out);
}

static void run_get_device_client_list(struct control *control, const char *arguments, FILE *out)
{
    struct world *world = control->world;

    world_enter(world);
    for (int g = 0; control->server > 0 && g < world->gpu_count; g++) {
        for (int u = 0; u < world->gpus[g].unit_count; u++) {
            struct seat seat = {g, u};
            fprintf(out, "%s ", world_unit(world, seat)->uuid);
            mps_server_clients(world, control->server, &seat, ' ', out);
            fputc('\n', out);
        }
    }
    world_leave(world);
}

static void run_terminate_client(struct control *control, const char *arguments, FILE *out)
{
    int server, client, found = 0;

    if (sscanf(arguments, "%d %d", &server, &client) != 2 || server != control->server) {
        fputs("Server not found\n", out);
        return;
    }
    world_enter(control->world);
    for (int i = 0; i < control->world->process_end; i++) {
        struct process *p = &control->world->processes[i];
        if (p->present && p->mps_server == server && p->pid == client) {
            p->terminated = true;
            world_wake(p);
            found++;
        }
    }
    world_leave(control->world);
    if (!found)
        fputs("Client not found\n", out);
}

static void take_percent(const char *text, double *percent, FILE *out)
{
    if (parse_double(text, 1, 100, percent) == 0)
        fprintf(out, "%.1f\n", *percent);
    else
        fputs("Invalid percentage\n", out);
}

static void run_set_default_percentage(struct control *control, const char *arguments, FILE *out)
{
    take_percent(arguments, &control->default_percent, out);
}

static void run_get_default_percentage(struct control *control, const char *arguments, FILE *out)
{
    fprintf(out, "%.1f\n", control->default_percent);
}

static void run_set_percentage(struct control *control, const char *arguments, FILE *out)
{
    const char *percent = strchr(arguments, ' ');

    if (is_server(control, arguments, out))
        take_percent(percent ? percent + 1 : "", &control->server_percent, out);
}

static void run_get_percentage(struct control *control, const char *arguments, FILE *out)
{
    if (is_server(control, arguments, out))
        fprintf(out, "%.1f\n", control->server_percent);
}

/* Waits for clients, without -t as long as they take. */
static void run_quit(struct control *control, const char *arguments, FILE *out)
{
    int seconds;

    control->quitting = true;
    control->quit_by_us = INT64_MAX;
    if (sscanf(arguments, "-t %d", &seconds) == 1 && seconds >= 0)
        control->quit_by_us = clock_monotonic_us() + seconds * SECOND_US;
    note(control->log, "Control", "Quit requested");
}

static const struct command commands[] = {
    {"enlist", run_enlist},
    {"start_server", run_start_server},
    {"get_server_list", run_get_server_list},
    {"get_server_status", run_get_server_status},
    {"get_client_list", run_get_client_list},
    {"get_device_client_list", run_get_device_client_list},
    {"terminate_client", run_terminate_client},
    {"set_default_active_thread_percentage", run_set_default_percentage},
    {"get_default_active_thread_percentage", run_get_default_percentage},
    {"set_active_thread_percentage", run_set_percentage},
    {"get_active_thread_percentage", run_get_percentage},
    {"quit", run_quit},
};

static void run_command(struct control *control, char *line, FILE *out)
{
    line[strcspn(line, "\r\n")] = '\0';
    char *arguments = line + strcspn(line, " ");
    if (*arguments)
        *arguments++ = '\0';
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        if (strcmp(line, commands[i].name) == 0) {
            commands[i].run(control, arguments, out);
            return;
        }
    }
    fprintf(out, "Unrecognized command: %s\n", line);
}

/* One command per connection. Who asked to quit hears the end of it: the connection stays open until we exit. */
static void answer(struct control *control, int listener)
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
        run_command(control, line, out);
    if (out && (was_quitting || !control->quitting))
        fclose(out);
}

static bool may_end(struct control *control)
{
    FILE *nowhere = fopen("/dev/null", "we");
    int clients = nowhere ? client_count(control, nowhere) : 0;

    if (nowhere)
        fclose(nowhere);
    return clients == 0 || clock_monotonic_us() >= control->quit_by_us;
}

static volatile sig_atomic_t ended;

static void on_signal(int number)
{
    ended = number;
}

static void serve(struct control *control, int listener)
{
    char path[PATH_MAX];
    struct sigaction action = {.sa_handler = on_signal};

    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
    while (!ended && !(control->quitting && may_end(control))) {
        struct pollfd wait = {.fd = listener, .events = POLLIN};
        if (poll(&wait, 1, control->quitting ? QUIT_LOOK_MS : -1) <= 0)
            continue;
        forget_dead_server(control);
        answer(control, listener);
    }
    note(control->log, "Control", "Exit");
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

/* The lock on the pid file is the daemon's for life. A descriptor or -errno; -EWOULDBLOCK when another has it. */
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

static void detach(void)
{
    int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);

    setsid();
    for (int fd = 0; fd < 3; fd++)
        dup2(nowhere, fd);
    close(nowhere);
}

static int refuse(const char *format, const char *what)
{
    fprintf(stderr, format, what);
    fputc('\n', stderr);
    return 1;
}

/* The listening socket exists before the parent returns, so a client started next finds it. */
static int start(bool background)
{
    struct control control = {.default_percent = 100, .server_percent = 100};
    struct fault fault = {""};
    const char *gpus = getenv("COLLOC_EMULATOR");

    if (!gpus || world_open(gpus, &fault, &control.world) < 0)
        return refuse("no pretend GPUs: COLLOC_EMULATOR: %s", gpus ? fault.text : "not set");
    int pid_file = lock_pid_file();
    if (pid_file == -EWOULDBLOCK)
        return refuse("An instance of this daemon is already running%s", "");
    int listener = pid_file < 0 ? pid_file : mps_listen();
    if (listener < 0)
        return refuse("Failed to create the control socket: %s", strerror(-listener));
    control.log = open_log("control.log");
    control.server_log = open_log("server.log");
    pid_t pid = background ? fork() : 0;
    if (pid > 0)
        return write_pid(pid_file, pid) < 0;
    if (pid < 0)
        return refuse("fork: %s", strerror(errno));
    if (background)
        detach();
    else
        write_pid(pid_file, getpid());
    note(control.log, "Control", "Start");
    serve(&control, listener);
    return 0;
}

/* Commands from the input, to the daemon that serves the pipe directory. */
static int pass_on(void)
{
    char line[256], text[16384];

    while (fgets(line, sizeof(line), stdin)) {
        if (mps_ask(line, text, sizeof(text)) < 0)
            return refuse("Cannot find MPS control daemon process%s", "");
        fputs(text, stdout);
        fflush(stdout);
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 1)
        return pass_on();
    if (argc == 2 && strcmp(argv[1], "-d") == 0)
        return start(true);
    if (argc == 2 && strcmp(argv[1], "-f") == 0)
        return start(false);
    fputs("Usage: nvidia-cuda-mps-control [-d | -f]\n", stderr);
    return 2;
}
