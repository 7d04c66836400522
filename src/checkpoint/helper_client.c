/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client drops its helper (and kills it) when it is stuck. A helper that hangs in the driver then
 * blocks only its own memory (child/line_process.h).
 *
 *     helper_client_call   starts a helper when there is none, writes a line, starts the limit
 *     on_helper_line       a whole line: the reply
 *     on_limit,            the helper is dropped, the call is answered with -ETIMEDOUT or -EPIPE
 *     on_helper_exit
 */
#include "checkpoint/helper_client.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clamp.h"
#include "base/clock.h"
#include "base/environment.h"
#include "base/log.h"
#include "child/line_process.h"

/* Neither which GPUs another program may see nor a way to become an MPS client: the helper works on
 * all GPUs, and on processes of users with and without MPS. */
static const char *const HIDDEN[] = {
    "CUDA_VISIBLE_DEVICES=", "CUDA_MPS_", "CUDA_DEVICE_ORDER=", "LD_PRELOAD=", NULL};
static char NO_MPS[] = "CUDA_MPS_PIPE_DIRECTORY=/nonexistent";

struct helper_client {
    uv_loop_t *loop;
    char *program;
    struct line_processes helpers;
    struct line_process *helper; /* the living one; NULL: none */
    int descriptors;             /* the socket that they come from (lent_memory.h) */
    uv_timer_t limit;
    uv_idle_t soon; /* answers a call that could not be made */
    int open;       /* of these two handles */
    bool is_busy, is_closed;
    int64_t asked_us; /* when the call was made, of the monotonic clock */
    helper_on_reply *on_reply;
    void *context;
    struct helper_reply reply;
    char request[HELPER_LINE_MAX];
};

/* ---- one helper process ---- */

static void drop_helper(struct helper_client *client)
{
    if (!client->helper)
        return;
    line_process_drop(client->helper);
    close(client->descriptors);
    client->helper = NULL;
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

static void on_helper_exit(void *context)
{
    lose_helper(context, -EPIPE, "colloc-checkpoint ended in a call");
}

static void on_helper_end(void *context)
{
    lose_helper(context, -EPIPE, "colloc-checkpoint closed its output");
}

/* A call cannot have taken longer than its reply: no other number enters a learned speed. */
static void bound_time(const struct helper_client *client, struct helper_reply *reply)
{
    reply->took_us = clamp_int64(reply->took_us, 0, clock_monotonic_us() - client->asked_us);
}

static void on_helper_line(void *context, const char *line, size_t size, size_t left)
{
    struct helper_client *client = context;
    int r = helper_reply_read((struct span){line, size}, &client->reply);
    if (r < 0 || !client->is_busy || left)
        lose_helper(client, -EPIPE, HELPER_NONSENSE);
    else {
        bound_time(client, &client->reply);
        finish_request(client, 0, "");
    }
}

/* `descriptors`: the helper's end of the socket. */
static int spawn_helper(struct helper_client *client, int descriptors)
{
    char *arguments[] = {client->program, NULL}, *added[] = {NO_MPS, NULL};
    char **environment = environment_make(HIDDEN, false, added);
    const struct line_process_order order = {.loop = client->loop,
        .arguments = arguments,
        .environment = environment,
        .socket = descriptors,
        .line_max = HELPER_LINE_MAX,
        .context = client,
        .on_line = on_helper_line,
        .on_end = on_helper_end,
        .on_exit = on_helper_exit};
    int r = environment ? line_process_start(&client->helpers, &order, &client->helper) : -ENOMEM;
    free(environment);
    return r;
}

static int start_helper(struct helper_client *client)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return -errno;
    int r = spawn_helper(client, ends[1]);
    client->descriptors = ends[0];
    if (r < 0)
        close(ends[0]);
    close(ends[1]);
    return r;
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

static int send_request(struct helper_client *client, size_t size)
{
    char *line = malloc(size);
    return line ? line_process_write(client->helper, memcpy(line, client->request, size), size)
                : -ENOMEM;
}

int helper_client_call(struct helper_client *client, const struct helper_request *request,
    int64_t limit_us, helper_on_reply *on_reply, void *context)
{
    if (client->is_busy || client->is_closed)
        return -EBUSY;
    client->is_busy = true;
    client->asked_us = clock_monotonic_us();
    client->on_reply = on_reply;
    client->context = context;
    size_t size = helper_request_write(request, client->request, sizeof client->request);
    int r = size ? 0 : UV_E2BIG;
    if (r == 0 && !client->helper)
        r = start_helper(client);
    if (r == 0)
        r = send_request(client, size);
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
        recvmsg(client->descriptors, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) != 1)
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
    return client->helper ? line_process_pid(client->helper) : 0;
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
    struct helper_client *client = handle->data;
    if (--client->open > 0)
        return;
    free(client->program);
    free(client);
}

void helper_client_close(struct helper_client *client)
{
    if (!client || client->is_closed)
        return;
    client->is_closed = true;
    client->is_busy = false;
    drop_helper(client);
    line_processes_leave(&client->helpers);
    uv_close((uv_handle_t *)&client->limit, on_client_closed);
    uv_close((uv_handle_t *)&client->soon, on_client_closed);
}
