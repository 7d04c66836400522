/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process is an object by itself, with three handles of the loop: the process and two pipes.
 * Dropping it closes the pipes and kills it; the handle of the process stays open until the kernel
 * reports the end. With the last of the handles the object goes.
 */
#include "child/line_process.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { HANDLES = 3 };

struct line_process {
    struct line_processes *owner; /* NULL: it has left */
    struct line_process *next;
    bool is_dropped, is_over; /* over: the kernel has let it go */
    uv_process_t process;
    uv_pipe_t to, from;
    int open; /* of the three handles */
    void *context;
    void (*on_line)(void *context, const char *line, size_t size, size_t left);
    void (*on_end)(void *context);
    void (*on_exit)(void *context);
    size_t size, line_max;
    char line[];
};

/* ---- the end ---- */

static void on_closed(uv_handle_t *handle)
{
    struct line_process *process = handle->data;
    if (--process->open > 0)
        return;
    struct line_process **link = process->owner ? &process->owner->first : NULL;
    while (link && *link != process)
        link = &(*link)->next;
    if (link)
        *link = process->next;
    free(process);
}

static void close_once(uv_handle_t *handle)
{
    if (!uv_is_closing(handle))
        uv_close(handle, on_closed);
}

static void on_exit_of_process(uv_process_t *handle, int64_t status, int signal_number)
{
    struct line_process *process = handle->data;
    process->is_over = true;
    if (process->is_dropped)
        close_once((uv_handle_t *)handle);
    else if (process->on_exit)
        process->on_exit(process->context);
}

void line_process_drop(struct line_process *process)
{
    process->is_dropped = true;
    close_once((uv_handle_t *)&process->to);
    close_once((uv_handle_t *)&process->from);
    if (process->is_over)
        close_once((uv_handle_t *)&process->process);
    else
        uv_process_kill(&process->process, SIGKILL);
}

void line_processes_leave(struct line_processes *processes)
{
    for (struct line_process *process = processes->first; process; process = process->next) {
        process->owner = NULL;
        close_once((uv_handle_t *)&process->process);
    }
    processes->first = NULL;
}

/* ---- output ---- */

static void on_space(uv_handle_t *handle, size_t wanted, uv_buf_t *buffer)
{
    struct line_process *process = handle->data;
    *buffer = uv_buf_init(
        process->line + process->size, (unsigned)(process->line_max - process->size));
}

/* Hands on all whole lines; the rest goes to the front. */
static void take_lines(struct line_process *process)
{
    char *at = process->line, *end = process->line + process->size, *newline;
    while (!process->is_dropped && (newline = memchr(at, '\n', (size_t)(end - at)))) {
        process->on_line(process->context, at, (size_t)(newline - at), (size_t)(end - newline) - 1);
        at = newline + 1;
    }
    process->size = (size_t)(end - at);
    memmove(process->line, at, process->size);
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buffer)
{
    struct line_process *process = stream->data;
    if (process->is_dropped)
        return;
    if (n > 0) {
        process->size += (size_t)n;
        take_lines(process);
    }
    if (!process->is_dropped && (n < 0 || process->size == process->line_max))
        process->on_end(process->context);
}

/* ---- input ---- */

struct writing {
    uv_write_t write;
    char *text;
};

static void on_written(uv_write_t *write, int status)
{
    struct writing *writing = (struct writing *)write;
    free(writing->text);
    free(writing);
}

int line_process_write(struct line_process *process, char *text, size_t size)
{
    struct writing *writing = malloc(sizeof *writing);
    uv_buf_t buffer = uv_buf_init(text, (unsigned)size);
    int r = -ENOMEM;
    if (writing) {
        writing->text = text;
        r = uv_write(&writing->write, (uv_stream_t *)&process->to, &buffer, 1, on_written);
    }
    if (r < 0) {
        free(text);
        free(writing);
    }
    return r;
}

/* ---- the start ---- */

static int spawn_process(struct line_process *process, const struct line_process_order *order)
{
    uv_stdio_container_t stdio[LINE_PROCESS_SOCKET + 1] = {
        {.flags = (uv_stdio_flags)(UV_CREATE_PIPE | UV_READABLE_PIPE),
            .data.stream = (uv_stream_t *)&process->to},
        {.flags = (uv_stdio_flags)(UV_CREATE_PIPE | UV_WRITABLE_PIPE),
            .data.stream = (uv_stream_t *)&process->from},
        {.flags = UV_INHERIT_FD, .data.fd = STDERR_FILENO},
        {.flags = UV_INHERIT_FD, .data.fd = order->socket},
    };
    const uv_process_options_t options = {
        .file = order->arguments[0],
        .args = order->arguments,
        .env = order->environment,
        .exit_cb = on_exit_of_process,
        .stdio = stdio,
        .stdio_count = LINE_PROCESS_SOCKET + (order->socket > 0),
    };
    return uv_spawn(order->loop, &process->process, &options);
}

static struct line_process *make_process(
    struct line_processes *processes, const struct line_process_order *order)
{
    struct line_process *process = calloc(1, sizeof *process + order->line_max);
    if (!process)
        return NULL;
    process->owner = processes;
    process->next = processes->first;
    process->context = order->context;
    process->on_line = order->on_line;
    process->on_end = order->on_end;
    process->on_exit = order->on_exit;
    process->line_max = order->line_max;
    process->open = HANDLES;
    processes->first = process;
    uv_pipe_init(order->loop, &process->to, 0);
    uv_pipe_init(order->loop, &process->from, 0);
    process->process.data = process->to.data = process->from.data = process;
    return process;
}

int line_process_start(struct line_processes *processes, const struct line_process_order *order,
    struct line_process **ret_process)
{
    struct line_process *process = make_process(processes, order);
    *ret_process = NULL;
    if (!process)
        return -ENOMEM;
    int r = spawn_process(process, order);
    process->is_over = r < 0; /* a handle that could not start has to be closed, too */
    if (r == 0)
        r = uv_read_start((uv_stream_t *)&process->from, on_space, on_read);
    if (r < 0) {
        line_process_drop(process);
        return r;
    }
    uv_unref((uv_handle_t *)&process->process);
    *ret_process = process;
    return 0;
}

pid_t line_process_pid(const struct line_process *process)
{
    return process->process.pid;
}
