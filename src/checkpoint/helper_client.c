/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A helper process is an object, with three handles of the loop: the process and two
 * pipes. A client drops it (and kills it) when it is stuck, and it is freed when the kernel has let
 * it go. So a helper that hangs in the driver blocks only its own memory.
 *
 *     helper_client_call   starts a helper when there is none, writes a line, starts the limit
 *     on_read              a whole line: the reply
 *     on_limit, on_exit    the helper is dropped, the call is answered with -ETIMEDOUT or -EPIPE
 */
#include "checkpoint/helper_client.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "checkpoint/lent_memory.h"

/* Neither which GPUs another program may see nor a way to become an MPS client: the helper works on
 * all GPUs, and on processes of users with and without MPS. */
static const char *const HIDDEN[] = {
    "CUDA_VISIBLE_DEVICES=", "CUDA_MPS_", "CUDA_DEVICE_ORDER=", "LD_PRELOAD="};
static char NO_MPS[] = "CUDA_MPS_PIPE_DIRECTORY=/nonexistent";

struct helper {
    struct helper_client *owner;
    struct helper *next; /* of its owner's */
    bool is_dropped;     /* the owner has nothing more to do with it */
    uv_process_t process;
    uv_pipe_t to, from;
    int descriptors; /* the socket that they come from (lent_memory.h) */
    int open;        /* handles of the first three that are initialised */
    bool has_process;
    bool is_over;
    char line[HELPER_LINE_MAX];
    size_t size;
};

struct helper_client {
    uv_loop_t *loop;
    char *program;
    struct helper *helper;  /* the living one; NULL: none */
    struct helper *helpers; /* also those that were dropped and have not ended yet */
    uv_timer_t limit;
    uv_idle_t soon; /* answers a call that could not be made */
    int open;       /* helpers, and handles of these two */
    bool is_busy, is_closed;
    helper_on_reply *on_reply;
    void *context;
    struct helper_reply reply;
    char request[HELPER_LINE_MAX];
};

/* ---- one helper process ---- */

static void free_if_unused(struct helper_client *client)
{
    if (--client->open > 0)
        return;
    free(client->program);
    free(client);
}

static void on_handle_closed(uv_handle_t *handle)
{
    struct helper *helper = handle->data;
    if (--helper->open > 0)
        return;
    struct helper **link = &helper->owner->helpers;
    while (*link != helper)
        link = &(*link)->next;
    *link = helper->next;
    if (helper->descriptors >= 0)
        close(helper->descriptors);
    free_if_unused(helper->owner);
    free(helper);
}

static void close_pipes(struct helper *helper)
{
    if (!uv_is_closing((uv_handle_t *)&helper->to))
        uv_close((uv_handle_t *)&helper->to, on_handle_closed);
    if (!uv_is_closing((uv_handle_t *)&helper->from))
        uv_close((uv_handle_t *)&helper->from, on_handle_closed);
}

static void close_process(struct helper *helper)
{
    if (helper->has_process && !uv_is_closing((uv_handle_t *)&helper->process))
        uv_close((uv_handle_t *)&helper->process, on_handle_closed);
}

/* It is freed when it has ended. */
static void drop_helper(struct helper_client *client)
{
    struct helper *helper = client->helper;
    if (!helper)
        return;
    client->helper = NULL;
    helper->is_dropped = true;
    close_pipes(helper);
    if (helper->is_over)
        close_process(helper);
    if (!helper->is_over)
        uv_process_kill(&helper->process, SIGKILL);
}

static void finish_request(struct helper_client *client, int result, const char *text)
{
    if (!client->is_busy)
        return;
    client->is_busy = false;
    uv_timer_stop(&client->limit);
    uv_idle_stop(&client->soon);
    if (result < 0) {
        client->reply = (struct helper_reply){.result = result};
        snprintf(client->reply.text, sizeof client->reply.text, "%s", text);
    }
    struct helper_reply reply = client->reply;
    client->on_reply(client->context, &reply);
}

static void lose_helper(struct helper_client *client, int result, const char *text)
{
    drop_helper(client);
    finish_request(client, result, text);
}

static void on_exit_of_helper(uv_process_t *process, int64_t status, int signal_number)
{
    struct helper *helper = process->data;
    helper->is_over = true;
    if (helper->is_dropped)
        close_process(helper);
    else
        lose_helper(helper->owner, -EPIPE, "colloc-checkpoint ended in a call");
}

static void on_space(uv_handle_t *handle, size_t wanted, uv_buf_t *buffer)
{
    struct helper *helper = handle->data;
    *buffer = uv_buf_init(
        helper->line + helper->size, (unsigned)(sizeof helper->line - helper->size));
}

static void take_line(struct helper *helper, size_t size)
{
    struct helper_client *client = helper->owner;
    int r = helper_reply_read((struct span){helper->line, size}, &client->reply);
    helper->size -= size + 1;
    memmove(helper->line, helper->line + size + 1, helper->size);
    if (r < 0 || !client->is_busy || helper->size)
        lose_helper(client, -EPIPE, "colloc-checkpoint answered with nonsense");
    else
        finish_request(client, 0, "");
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buffer)
{
    struct helper *helper = stream->data;
    if (helper->is_dropped)
        return;
    if (n < 0 || helper->size + (size_t)n == sizeof helper->line) {
        lose_helper(helper->owner, -EPIPE, "colloc-checkpoint closed its output");
        return;
    }
    helper->size += (size_t)n;
    const char *end = memchr(helper->line, '\n', helper->size);
    if (end)
        take_line(helper, (size_t)(end - helper->line));
}

static bool is_hidden(const char *entry)
{
    for (size_t i = 0; i < sizeof HIDDEN / sizeof *HIDDEN; i++)
        if (strncmp(entry, HIDDEN[i], strlen(HIDDEN[i])) == 0)
            return true;
    return false;
}

/* Returns an array to free; its entries are borrowed. NULL when memory is out. */
static char **make_environment(void)
{
    size_t count = 0, used = 0;
    while (environ[count])
        count++;
    char **list = calloc(count + 2, sizeof *list);
    for (size_t i = 0; list && i < count; i++)
        if (!is_hidden(environ[i]))
            list[used++] = environ[i];
    if (list)
        list[used] = NO_MPS;
    return list;
}

static int spawn_helper(struct helper_client *client, struct helper *helper, int descriptors)
{
    char **environment = make_environment();
    char *arguments[] = {client->program, NULL};
    uv_stdio_container_t stdio[LENT_MEMORY_SOCKET + 1] = {
        {.flags = (uv_stdio_flags)(UV_CREATE_PIPE | UV_READABLE_PIPE),
            .data.stream = (uv_stream_t *)&helper->to},
        {.flags = (uv_stdio_flags)(UV_CREATE_PIPE | UV_WRITABLE_PIPE),
            .data.stream = (uv_stream_t *)&helper->from},
        {.flags = UV_INHERIT_FD, .data.fd = 2},
        {.flags = UV_INHERIT_FD, .data.fd = descriptors},
    };
    const uv_process_options_t options = {
        .file = client->program,
        .args = arguments,
        .env = environment,
        .exit_cb = on_exit_of_helper,
        .stdio = stdio,
        .stdio_count = LENT_MEMORY_SOCKET + 1,
    };
    if (!environment)
        return UV_ENOMEM;
    helper->has_process = true; /* a handle that could not start has to be closed, too */
    helper->open++;
    int r = uv_spawn(client->loop, &helper->process, &options);
    free(environment);
    return r;
}

static int start_helper(struct helper_client *client)
{
    struct helper *helper = calloc(1, sizeof *helper);
    if (!helper)
        return UV_ENOMEM;
    uv_pipe_init(client->loop, &helper->to, 0);
    uv_pipe_init(client->loop, &helper->from, 0);
    helper->process.data = helper->to.data = helper->from.data = helper;
    helper->open = 2;
    helper->owner = client;
    helper->next = client->helpers;
    client->helpers = client->helper = helper;
    client->open++;
    int ends[2] = {-1, -1};
    int r = socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0 ? -errno : 0;
    helper->descriptors = ends[0];
    if (r == 0)
        r = spawn_helper(client, helper, ends[1]);
    if (ends[1] >= 0)
        close(ends[1]);
    if (r < 0) {
        helper->is_over = true;
        drop_helper(client);
        return r;
    }
    uv_unref((uv_handle_t *)&helper->process);
    return uv_read_start((uv_stream_t *)&helper->from, on_space, on_read);
}

/* ---- calls ---- */

static void on_limit(uv_timer_t *limit)
{
    struct helper_client *client = limit->data;
    log_warning(
        "colloc-checkpoint (pid %d) does not answer: it is killed", (int)helper_client_pid(client));
    lose_helper(client, -ETIMEDOUT, "the NVIDIA driver does not answer");
}

static void on_soon(uv_idle_t *soon)
{
    finish_request(soon->data, -ENOEXEC, ((struct helper_client *)soon->data)->request);
}

static void on_written(uv_write_t *write, int status)
{
    free(write);
}

static int write_request(struct helper_client *client, size_t size)
{
    uv_write_t *write = calloc(1, sizeof *write);
    uv_buf_t buffer = uv_buf_init(client->request, (unsigned)size);
    int r = write ? uv_write(write, (uv_stream_t *)&client->helper->to, &buffer, 1, on_written)
                  : UV_ENOMEM;
    if (r < 0)
        free(write);
    return r;
}

int helper_client_call(struct helper_client *client, const struct helper_request *request,
    int64_t limit_us, helper_on_reply *on_reply, void *context)
{
    if (client->is_busy || client->is_closed)
        return -EBUSY;
    client->is_busy = true;
    client->on_reply = on_reply;
    client->context = context;
    size_t size = helper_request_write(request, client->request, sizeof client->request);
    int r = size ? 0 : UV_E2BIG;
    if (r == 0 && !client->helper)
        r = start_helper(client);
    if (r == 0)
        r = write_request(client, size);
    if (r < 0) {
        drop_helper(client);
        snprintf(
            client->request, sizeof client->request, "%s: %s", client->program, uv_strerror(r));
        uv_idle_start(&client->soon, on_soon);
        return 0;
    }
    uv_timer_start(&client->limit, on_limit, (uint64_t)(limit_us / MS_US) + 1, 0);
    return 0;
}

int helper_client_take_descriptor(struct helper_client *client)
{
    char byte;
    struct iovec part = {.iov_base = &byte, .iov_len = 1};
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int))];
    } control;
    struct msghdr message = {.msg_iov = &part,
        .msg_iovlen = 1,
        .msg_control = control.room,
        .msg_controllen = sizeof control.room};
    int fd = -1;
    if (!client->helper ||
        recvmsg(client->helper->descriptors, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) != 1)
        return -1;
    const struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS &&
        header->cmsg_len == CMSG_LEN(sizeof fd))
        memcpy(&fd, CMSG_DATA(header), sizeof fd);
    return fd;
}

bool helper_client_is_busy(const struct helper_client *client)
{
    return client->is_busy;
}

pid_t helper_client_pid(const struct helper_client *client)
{
    return client->helper ? client->helper->process.pid : 0;
}

/* ---- life ---- */

struct helper_client *helper_client_create(uv_loop_t *loop, const char *program)
{
    struct helper_client *client = calloc(1, sizeof *client);
    if (client)
        client->program = strdup(program);
    if (!client || !client->program) {
        free(client);
        return NULL;
    }
    client->loop = loop;
    uv_timer_init(loop, &client->limit);
    uv_idle_init(loop, &client->soon);
    client->limit.data = client->soon.data = client;
    client->open = 2;
    return client;
}

static void on_client_closed(uv_handle_t *handle)
{
    free_if_unused(handle->data);
}

void helper_client_close(struct helper_client *client)
{
    if (!client || client->is_closed)
        return;
    client->is_closed = true;
    client->is_busy = false;
    drop_helper(client);
    for (struct helper *helper = client->helpers; helper; helper = helper->next)
        close_process(helper);
    uv_close((uv_handle_t *)&client->limit, on_client_closed);
    uv_close((uv_handle_t *)&client->soon, on_client_closed);
}
