/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process that hangs in the driver does not end when it is killed. So it is an object by itself,
 * with three handles of the loop (the process and two pipes), and its owner goes on without it.
 */
#include "daemon/kernels/kernel_process.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"

enum { LINE_SIZE = 4096, HANDLES = 3, UUID_SIZE = 128 };

/* Of the daemon's variables the process gets those that it needs to find libraries, and those of
 * emulated GPUs and sanitizers. */
static const char *const needed[] = {"PATH=", "LD_LIBRARY_PATH=", "LANG=", "LC_", "COLLOC_",
    "CUDA_HOME=", "ASAN_OPTIONS=", "UBSAN_OPTIONS=", "LSAN_OPTIONS="};

/* It is no client of MPS, whatever servers there are; and it loads only what it calls. */
static char no_mps[] = "CUDA_MPS_PIPE_DIRECTORY=/nonexistent",
            is_lazy[] = "CUDA_MODULE_LOADING=LAZY";

struct kernel_process {
    struct kernel_processes *owner;
    struct kernel_process *next;
    bool is_dropped, is_over; /* over: the kernel has let it go */
    uv_process_t process;
    uv_pipe_t to, from;
    int open; /* of the three handles */
    void *context;
    void (*on_line)(void *context, const char *line, size_t size);
    void (*on_end)(void *context);
    char line[LINE_SIZE];
    size_t size;
};

/* ---- the end ---- */

static void on_closed(uv_handle_t *handle)
{
    struct kernel_process *process = handle->data;
    if (--process->open > 0)
        return;
    struct kernel_process **link = &process->owner->first;
    while (*link != process)
        link = &(*link)->next;
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
    struct kernel_process *process = handle->data;
    process->is_over = true;
    if (process->is_dropped)
        close_once((uv_handle_t *)handle);
}

void kernel_process_drop(struct kernel_process *process)
{
    process->is_dropped = true;
    close_once((uv_handle_t *)&process->to);
    close_once((uv_handle_t *)&process->from);
    if (process->is_over)
        close_once((uv_handle_t *)&process->process);
    else
        uv_process_kill(&process->process, SIGKILL);
}

void kernel_processes_leave(struct kernel_processes *processes)
{
    for (struct kernel_process *process = processes->first; process; process = process->next)
        close_once((uv_handle_t *)&process->process);
}

/* ---- output ---- */

static void on_space(uv_handle_t *handle, size_t wanted, uv_buf_t *buffer)
{
    struct kernel_process *process = handle->data;
    *buffer = uv_buf_init(
        process->line + process->size, (unsigned)(sizeof process->line - process->size));
}

/* Hands on all whole lines; the rest goes to the front. */
static void take_lines(struct kernel_process *process)
{
    char *at = process->line, *end = process->line + process->size, *newline;
    while (!process->is_dropped && (newline = memchr(at, '\n', (size_t)(end - at)))) {
        process->on_line(process->context, at, (size_t)(newline - at));
        at = newline + 1;
    }
    process->size = (size_t)(end - at);
    memmove(process->line, at, process->size);
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buffer)
{
    struct kernel_process *process = stream->data;
    if (process->is_dropped)
        return;
    if (n > 0) {
        process->size += (size_t)n;
        take_lines(process);
    }
    if (!process->is_dropped && (n < 0 || process->size == sizeof process->line))
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

int kernel_process_write(struct kernel_process *process, char *text, size_t size)
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

static bool is_needed(const char *entry)
{
    for (size_t i = 0; i < ARRAY_SIZE(needed); i++)
        if (strncmp(entry, needed[i], strlen(needed[i])) == 0)
            return true;
    return false;
}

/* Returns an array to free; its entries are borrowed. NULL when memory is out. */
static char **make_environment(char *visible)
{
    size_t count = 0, used = 0;
    while (environ[count])
        count++;
    char **list = calloc(count + 4, sizeof *list);
    for (size_t i = 0; list && i < count; i++)
        if (is_needed(environ[i]))
            list[used++] = environ[i];
    if (list) {
        list[used++] = no_mps;
        list[used++] = is_lazy;
        list[used] = visible;
    }
    return list;
}

static int spawn_process(
    struct kernel_process *process, const struct kernel_process_order *order, char **environment)
{
    char *arguments[] = {(char *)order->program, (char *)order->library, NULL};
    uv_stdio_container_t stdio[] = {
        {.flags = (uv_stdio_flags)(UV_CREATE_PIPE | UV_READABLE_PIPE),
            .data.stream = (uv_stream_t *)&process->to},
        {.flags = (uv_stdio_flags)(UV_CREATE_PIPE | UV_WRITABLE_PIPE),
            .data.stream = (uv_stream_t *)&process->from},
        {.flags = UV_INHERIT_FD, .data.fd = STDERR_FILENO},
    };
    const uv_process_options_t options = {
        .file = order->program,
        .args = arguments,
        .env = environment,
        .exit_cb = on_exit_of_process,
        .stdio = stdio,
        .stdio_count = ARRAY_SIZE(stdio),
    };
    return uv_spawn(order->loop, &process->process, &options);
}

static struct kernel_process *make_process(
    struct kernel_processes *processes, const struct kernel_process_order *order)
{
    struct kernel_process *process = calloc(1, sizeof *process);
    if (!process)
        return NULL;
    process->owner = processes;
    process->next = processes->first;
    process->context = order->context;
    process->on_line = order->on_line;
    process->on_end = order->on_end;
    process->open = HANDLES;
    processes->first = process;
    uv_pipe_init(order->loop, &process->to, 0);
    uv_pipe_init(order->loop, &process->from, 0);
    process->process.data = process->to.data = process->from.data = process;
    return process;
}

int kernel_process_start(struct kernel_processes *processes,
    const struct kernel_process_order *order, struct kernel_process **ret_process)
{
    char visible[UUID_SIZE];
    snprintf(visible, sizeof visible, "CUDA_VISIBLE_DEVICES=%s", order->gpu_uuid);
    char **environment = make_environment(visible);
    struct kernel_process *process = environment ? make_process(processes, order) : NULL;
    *ret_process = NULL;
    if (!process) {
        free(environment);
        return -ENOMEM;
    }
    int r = spawn_process(process, order, environment);
    free(environment);
    if (r == 0)
        r = uv_read_start((uv_stream_t *)&process->from, on_space, on_read);
    else
        process->is_over = true;
    if (r < 0)
        kernel_process_drop(process);
    *ret_process = r < 0 ? NULL : process;
    return r;
}

pid_t kernel_process_pid(const struct kernel_process *process)
{
    return process->process.pid;
}
