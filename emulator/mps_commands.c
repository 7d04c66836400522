/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The commands of the MPS control daemon, a table of names and functions. Answers have the words of
 * NVIDIA's daemon, since clients parse them. Only "enlist" is an addition: a pretend training sends
 * it where a real one would connect through libcuda.
 */
#include "emulator/mps_commands.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/units.h"
#include "emulator/mps_clients.h"

enum { NO_SUCH_CLIENT = 201 }; /* CUDA_ERROR_INVALID_CONTEXT */

struct command {
    const char *name;
    void (*run)(struct control *control, const char *arguments, FILE *out);
};

/* In the form of NVIDIA's control.log, which managers read for a client's failure. */
void log_line(FILE *log, const char *program, const char *format, ...)
{
    char when[32];
    int64_t now_us = clock_wall_us();
    time_t now = now_us / SECOND_US;
    struct tm parts;
    va_list arguments;

    if (!log)
        return;
    strftime(when, sizeof(when), "%F %T", localtime_r(&now, &parts));
    fprintf(
        log, "[%s.%03d %s %5d] ", when, (int)(now_us % SECOND_US / MS_US), program, (int)getpid());
    va_start(arguments, format);
    vfprintf(log, format, arguments);
    va_end(arguments);
    fputc('\n', log);
    fflush(log);
}

void control_reap(struct control *control)
{
    if (control->server > 0 && waitpid(control->server, NULL, WNOHANG) == control->server) {
        log_line(control->log, "Control", "Server %d exited", (int)control->server);
        control->server = 0;
    }
}

/* A server starts with the first client of a user, and then stays. */
static bool start_server(struct control *control)
{
    if (control->server > 0)
        return true;
    pid_t server = mps_server_start();
    if (server < 0) {
        log_line(control->log, "Control", "Failed to start a server");
        return false;
    }
    control->server = server;
    control->server_percent = control->default_percent;
    log_line(
        control->log, "Control", "Starting new server %d for user %d", (int)server, (int)getuid());
    log_line(
        control->server_log, "Server", "Volta MPS: Creating server context, pid %d", (int)server);
    return true;
}

static bool is_server(const struct control *control, const char *arguments, FILE *out)
{
    if (control->server > 0 && atoi(arguments) == control->server)
        return true;
    fputs("Server not found\n", out);
    return false;
}

int control_clients(struct control *control, FILE *out)
{
    world_enter(control->world);
    int count = control->server > 0
                    ? mps_server_clients(control->world, control->server, NULL, '\n', out)
                    : 0;
    world_leave(control->world);
    return count;
}

/* After a fault the server accepts no client until all clients that the fault stopped have
 * ended. */
static bool is_in_fault(struct control *control)
{
    bool faulted = false;

    world_enter(control->world);
    for (int i = 0; i < control->world->process_end; i++) {
        const struct process *p = &control->world->processes[i];
        faulted |= p->present && p->faulted && p->mps_server == control->server;
    }
    world_leave(control->world);
    return faulted;
}

/* Only in the emulator: the first request of a client. */
static void run_enlist(struct control *control, const char *arguments, FILE *out)
{
    if (control->quitting || !start_server(control))
        return;
    if (is_in_fault(control)) {
        log_line(control->server_log, "Server",
            "Server teardown in progress. Refusing to accept new client");
        fputs("807\n", out);
        return;
    }
    log_line(control->log, "Control", "Accepting connection...");
    log_line(control->server_log, "Server", "Received new client request");
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
        fputs(is_in_fault(control) ? "FAULT\n" : "ACTIVE\n", out);
}

static void run_get_client_list(struct control *control, const char *arguments, FILE *out)
{
    if (is_server(control, arguments, out))
        control_clients(control, out);
}

/* One line for each device, also without clients: its UUID, then pids. */
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

/* Answers with a CUDA result, as NVIDIA's of CUDA 13 does. */
static void run_terminate_client(struct control *control, const char *arguments, FILE *out)
{
    int server = 0, client, found = 0;

    if (sscanf(arguments, "%d %d", &server, &client) != 2 || server != control->server) {
        fprintf(out, "Server %d not found\nServer %d not found!\n1\n", server, server);
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
    if (found)
        log_line(control->server_log, "Server", "Client termination succeeded.");
    fprintf(out, "%d\n", found ? 0 : NO_SUCH_CLIENT);
}

/* Anything but a number from 1 to 100 changes nothing. */
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

/* The daemon ends when its clients have ended, or after the seconds given by -t. */
static void run_quit(struct control *control, const char *arguments, FILE *out)
{
    int seconds;

    control->quitting = true;
    control->quit_by_us = TIME_NEVER;
    if (sscanf(arguments, "-t %d", &seconds) == 1 && seconds >= 0)
        control->quit_by_us = clock_monotonic_us() + seconds * SECOND_US;
    log_line(control->log, "Control", "Quit requested");
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

/* An unknown command is an answer, not an error: the connection goes on. */
void control_run(struct control *control, char *line, FILE *out)
{
    line[strcspn(line, "\r\n")] = '\0';
    char *arguments = line + strcspn(line, " ");
    if (*arguments)
        *arguments++ = '\0';
    for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
        if (strcmp(line, commands[i].name) == 0) {
            commands[i].run(control, arguments, out);
            return;
        }
    }
    fprintf(out, "Unrecognized command: %s\n", line);
}
