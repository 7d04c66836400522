/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `colloc ssh-proxy`, for ssh's ProxyCommand: connects standard input and output to the sshd of a
 * task (cmd_ssh_serve.c). The task is the user's live one of that name; without one it is
 * submitted, and its turn is awaited.
 *
 *     ssh gpu  --->  ProxyCommand ssh gpu-server colloc ssh-proxy --name=dev
 *                        --->  link of task "dev"  --->  sshd -i, in the task
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/array.h"
#include "base/beside.h"
#include "base/clock.h"
#include "base/json_member.h"
#include "cli/interactive.h"
#include "cli/print.h"
#include "cli/session.h"
#include "cli/submission.h"

#define NAME_DEFAULT "ssh"
#define START_US     (30 * SECOND_US) /* chosen: until the server of a started task listens */
#define LOCK_US      (10 * SECOND_US) /* chosen: for a submission of another connection */
enum { PIECE = 65536, RETRY_MS = 100 };
enum { PROXY_KEEP, PROXY_KEYS };

static const struct option_spec options[] = {
    [PROXY_KEEP] = OPTION("keep", DURATION, "TIME", .max = 30 * DAY_US,
        .help = "end the task after this time without a connection (0s: never); default: 15m"),
    [PROXY_KEYS] = OPTION("authorized-keys", FILE, "FILE", .max = PATH_MAX - 1,
        .help = "keys that may log in; default: sshd's, ~/.ssh/authorized_keys"),
};

/* ---- the task ---- */

/* "colloc ssh-serve LINK ..." is its command. */
static bool link_of(const json_t *task, char link[LINK_NAME_SIZE])
{
    const json_t *arguments = json_object_get(task, "arguments");
    const char *verb = json_string_value(json_array_get(arguments, 1)),
               *name = json_string_value(json_array_get(arguments, 2));
    if (!verb || strcmp(verb, "ssh-serve") != 0 || !name || !link_is_name(name))
        return false;
    snprintf(link, LINK_NAME_SIZE, "%s", name);
    return true;
}

/* Finds the user's live task of this name. Returns EXIT_OK with its id, 0: none; or a code. */
static int find_task(struct client *client, const char *name, int64_t *ret_id)
{
    json_t *reply;
    const json_t *task;
    size_t i;
    *ret_id = 0;
    int code = session_call(client, "GET", "/v1/tasks?short=1&state=live", NULL, &reply);
    if (code != EXIT_OK)
        return code;
    json_array_foreach(json_object_get(reply, "tasks"), i, task) {
        if (json_integer_value(json_object_get(task, "uid")) == (json_int_t)geteuid() &&
            strcmp(member_text(task, "name", ""), name) == 0)
            *ret_id = json_integer_value(json_object_get(task, "id"));
    }
    json_decref(reply);
    return EXIT_OK;
}

static int find_link(struct client *client, int64_t id, char link[LINK_NAME_SIZE])
{
    json_t *reply;
    int code = session_get_task(client, id, &reply);
    if (code != EXIT_OK)
        return code;
    bool has_link = link_of(json_object_get(reply, "task"), link);
    json_decref(reply);
    if (!has_link)
        print_error("task %" PRId64 " has this name and serves no ssh: give another --name", id);
    return has_link ? EXIT_OK : EXIT_REFUSED;
}

static int make_request(
    const struct invocation *invocation, char link[LINK_NAME_SIZE], json_t **ret_request)
{
    char self[PATH_MAX], keep[40], keys[PATH_MAX + 24];
    const char *words[6] = {self, "ssh-serve", link};
    int n = 3;
    const char *file = invocation->values[PROXY_KEYS].text;
    struct invocation command = *invocation;
    if (!beside_self(self) || link_make_name(link) < 0)
        return EXIT_REFUSED;
    if (invocation->values[PROXY_KEEP].set) {
        snprintf(keep, sizeof keep, "--keep=%" PRId64 "s",
            invocation->values[PROXY_KEEP].number / SECOND_US);
        words[n++] = keep;
    }
    if (file) {
        snprintf(keys, sizeof keys, "--authorized-keys=%s", file);
        words[n++] = keys;
    }
    command.operands = words;
    command.operand_count = n;
    command.after_dashes = true;
    int code = submission_request(&command, ret_request);
    if (code == EXIT_OK && !invocation->task_values[TASK_NAME].set)
        json_object_set_new(*ret_request, "name", json_string(NAME_DEFAULT));
    if (code == EXIT_OK && !json_object_get(*ret_request, "requeue"))
        json_object_set_new(*ret_request, "requeue", json_false());
    return code;
}

/* Several connections at once look for the task one after the other, so that the first submits it.
 * The lock is on a folder of the user's; who cannot have it in time goes on without. Returns a
 * descriptor that holds it, or -1. */
static int lock_submissions(void)
{
    const char *runtime = getenv("XDG_RUNTIME_DIR"), *home = getenv("HOME");
    int64_t end_us = clock_monotonic_us() + LOCK_US;
    int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC, fd = runtime ? open(runtime, flags) : -1;
    if (fd < 0) /* none, or by `su` that of another user */
        fd = open(home ? home : "/", flags);
    while (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK &&
           clock_monotonic_us() < end_us)
        poll(NULL, 0, RETRY_MS);
    return fd;
}

/* `ret_is_own`: it was submitted here. */
static int find_or_send(const struct invocation *invocation, struct client *client, int64_t *ret_id,
    bool *ret_is_own, char link[LINK_NAME_SIZE])
{
    json_t *request;
    int code = find_task(
        client, option_text_or(&invocation->task_values[TASK_NAME], NAME_DEFAULT), ret_id);
    *ret_is_own = code == EXIT_OK && *ret_id == 0;
    if (code != EXIT_OK)
        return code;
    if (*ret_id)
        return find_link(client, *ret_id, link);
    code = make_request(invocation, link, &request);
    if (code != EXIT_OK)
        return code;
    code = interactive_send(client, request, ret_id);
    json_decref(request);
    return code;
}

static int find_or_submit(const struct invocation *invocation, struct client *client,
    int64_t *ret_id, char link[LINK_NAME_SIZE])
{
    bool is_own;
    int lock = lock_submissions();
    int code = find_or_send(invocation, client, ret_id, &is_own, link);
    if (lock >= 0)
        close(lock);
    if (code != EXIT_OK)
        return code;
    return is_own ? interactive_wait_turn(client, *ret_id)
                  : interactive_wait_start(client, *ret_id);
}

/* ---- the connection ---- */

/* The server needs a moment until it listens, and makes its key the first time. Of many connections
 * at once (EAGAIN) it takes one after the other. */
static int connect_to(struct client *client, int64_t id, const char *link, int *ret_fd)
{
    struct fault fault = {0};
    int64_t end_us = clock_monotonic_us() + START_US;
    for (;;) {
        bool has_ended = false;
        *ret_fd = link_connect_stream(link, &fault);
        if (*ret_fd >= 0)
            return EXIT_OK;
        int code = interactive_has_ended(client, id, &has_ended);
        if (code != EXIT_OK)
            return code;
        bool is_early = *ret_fd == -ECONNREFUSED || *ret_fd == -EAGAIN;
        if (!is_early || has_ended || clock_monotonic_us() > end_us)
            break;
        poll(NULL, 0, RETRY_MS);
    }
    print_error("%s; `colloc logs %" PRId64 "` says why", fault.text, id);
    return EXIT_REFUSED;
}

/* Writes all, also to a descriptor that does not block. */
static int write_all(int fd, const char *data, size_t size)
{
    while (size > 0) {
        ssize_t n = write(fd, data, size);
        if (n < 0 && errno == EAGAIN)
            poll(&(struct pollfd){.fd = fd, .events = POLLOUT}, 1, -1);
        else if (n < 0 && errno != EINTR)
            return -errno;
        data += n > 0 ? n : 0;
        size -= n > 0 ? (size_t)n : 0;
    }
    return 0;
}

/* Returns 1, 0 at the end, or -errno. */
static int copy_piece(int from, int to)
{
    static char data[PIECE];
    ssize_t n = read(from, data, sizeof data);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? 1 : -errno;
    return n == 0 ? 0 : write_all(to, data, (size_t)n) < 0 ? -EPIPE : 1;
}

/* Until the task's end closes. When ssh closes its own, sshd sees that and ends. */
static void relay_bytes(int fd)
{
    for (bool has_input = true;;) {
        struct pollfd ready[] = {
            {.fd = fd, .events = POLLIN}, {.fd = has_input ? STDIN_FILENO : -1, .events = POLLIN}};
        if (poll(ready, ARRAY_SIZE(ready), -1) < 0 && errno != EINTR)
            return;
        if (ready[0].revents && copy_piece(fd, STDOUT_FILENO) <= 0)
            return;
        if (ready[1].revents && copy_piece(STDIN_FILENO, fd) <= 0) {
            has_input = false;
            shutdown(fd, SHUT_WR);
        }
    }
}

static int run(const struct invocation *invocation)
{
    struct client *client;
    char link[LINK_NAME_SIZE];
    int64_t id;
    int fd = -1, code = session_open(invocation, &client);
    if (code != EXIT_OK)
        return code;
    code = find_or_submit(invocation, client, &id, link);
    if (code == EXIT_OK)
        code = connect_to(client, id, link, &fd);
    client_close(client);
    if (code == EXIT_OK) {
        relay_bytes(fd);
        close(fd);
    }
    return code;
}

const struct command command_ssh_proxy = {
    .name = "ssh-proxy",
    .usage = "[OPTION...]",
    .summary = "connect ssh or VS Code to a task (as ssh's ProxyCommand)",
    .description =
        "Connects standard input and output to an sshd in your task of the name (--name, "
        "default ssh). If there is none, it is submitted with the other options, and "
        "its turn is awaited. Several connections share the task, which ends when "
        "there was none for a time (--keep), and by `colloc cancel`.\n\n"
        "docs/ssh.md has the lines for ~/.ssh/config.",
    COMMAND_OPTIONS(options),
    .task_options = TASK_OPTIONS_ALL,
    .usual_options = TASK_OPTIONS_USUAL,
    .slurm = SLURM_SALLOC,
    .max_operands = 0,
    .common_without = WITHOUT_JSON,
    .run = run,
};
