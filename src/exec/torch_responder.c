/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PyTorch's profiler, libkineto, takes orders from outside to record some steps. With
 * KINETO_USE_DAEMON=1, libkineto asks a daemon every five seconds, by datagrams to a Unix socket
 * (kineto_message.h), and records what the answer says into a file. dynolog is such a daemon for a
 * host; this one is for a task.
 *
 *     shim ── program    libkineto: "anything to do?"  ──►  FOLDER/dynolog
 *       ╰──── responder  "ACTIVITIES_ITERATIONS=5 ..."  ◄── reads it from the attempt's folder
 *
 * It is a process of the task: it runs as the task's user and in its cgroup, and reads datagrams
 * with no other rights than those that sent them. Its sockets are in a folder that only this user
 * can enter. collocd never reads a datagram: it writes an order into the attempt's folder, which
 * the responder reads when a process asks (torch_dispatch.c: which process gets which order).
 *
 * It ends with the task's program, and is no child of it (tracker.c has the reason and the form).
 * It then removes the folder; the shim removes the files of a killed responder, and the daemon
 * those of a killed shim.
 */
#include "exec/torch_responder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "exec/identity.h"
#include "exec/kineto_message.h"
#include "exec/torch_dispatch.h"

/* libkineto's name for the daemon's socket. */
#define SOCKET_NAME "dynolog"

enum { CONFIG_MAX = 3000 };

struct responder {
    const char *folder; /* of the attempt */
    const struct attempt_spec *spec;
    int socket, task; /* the latter: a pidfd */
    struct torch_dispatch dispatch;
    bool was_asked;
};

/* ---- orders ---- */

static void read_order_file(struct responder *responder)
{
    char path[PATH_MAX], text[TORCH_ORDER_TEXT];
    struct torch_order order;
    snprintf(path, sizeof path, "%s/" TORCH_ORDER_FILE, responder->folder);
    ssize_t n = file_read_start(path, text, sizeof text);
    if (n > 0 && torch_order_parse((struct span){text, (size_t)n}, &order) == 0)
        torch_dispatch_take(&responder->dispatch, &order, clock_monotonic_us());
}

/* "colloc-7.torch.json", then "colloc-7.torch-2.json": libkineto puts _PID before the ending. */
static const char *write_config(
    const struct responder *responder, const struct torch_given *given, char *text, size_t size)
{
    const struct attempt_spec *spec = responder->spec;
    char name[64], path[PATH_MAX], count[16] = "";
    if (given->count > 1)
        snprintf(count, sizeof count, "-%d", given->count);
    snprintf(
        name, sizeof name, "%s.torch%s.json", spec->array_id ? "colloc-%A_%a" : "colloc-%j", count);
    if (spec_output_path(spec, name, path, sizeof path) < 0)
        return NULL;
    return kineto_config_write(given->order, path, text, size);
}

/* Returns the configuration for a process, "" if there is nothing new for it. */
static const char *config_for(struct responder *responder, pid_t pid, char *text, size_t size)
{
    struct torch_given given = torch_dispatch_next(&responder->dispatch, pid, clock_monotonic_us());
    const char *config = given.order ? write_config(responder, &given, text, size) : NULL;
    return config ? config : "";
}

/* So that the daemon knows that a process asks. */
static void note_first(struct responder *responder)
{
    char path[PATH_MAX];
    if (responder->was_asked)
        return;
    responder->was_asked = true;
    snprintf(path, sizeof path, "%s/" TORCH_ASKED_FILE, responder->folder);
    int fd = open(path, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return;
    file_write_fd(fd, "1", 1);
    close(fd);
}

/* ---- datagrams ---- */

/* The sender by the kernel: 0 for another user. */
static pid_t sender_of(struct msghdr *header)
{
    const struct cmsghdr *control = CMSG_FIRSTHDR(header);
    struct ucred sender;
    if (!control || control->cmsg_level != SOL_SOCKET || control->cmsg_type != SCM_CREDENTIALS)
        return 0;
    memcpy(&sender, CMSG_DATA(control), sizeof sender);
    return sender.uid == geteuid() ? sender.pid : 0;
}

static size_t make_answer(struct responder *responder, const struct kineto_request *request,
    pid_t pid, unsigned char answer[KINETO_MESSAGE_MAX])
{
    char config[CONFIG_MAX];
    note_first(responder);
    read_order_file(responder);
    if (request->kind == KINETO_CONTEXT) {
        torch_dispatch_find(&responder->dispatch, pid, clock_monotonic_us());
        return kineto_message_count(responder->dispatch.n_processes, answer);
    }
    return kineto_message_config(
        request->wants_activities ? config_for(responder, pid, config, sizeof config) : "", answer);
}

/* A datagram that is cut or not of the protocol is left unanswered; so is one of a sender that does
 * not take the answer at once. */
static void answer_datagram(struct responder *responder)
{
    unsigned char data[KINETO_MESSAGE_MAX], answer[KINETO_MESSAGE_MAX];
    char control[CMSG_SPACE(sizeof(struct ucred))];
    struct sockaddr_un from;
    struct iovec part = {data, sizeof data};
    struct msghdr header = {.msg_name = &from,
        .msg_namelen = sizeof from,
        .msg_iov = &part,
        .msg_iovlen = 1,
        .msg_control = control,
        .msg_controllen = sizeof control};
    struct kineto_request request;
    ssize_t n = recvmsg(responder->socket, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (n <= 0 || (header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)))
        return;
    pid_t pid = sender_of(&header);
    if (pid == 0 || kineto_message_read(data, (size_t)n, &request) < 0)
        return;
    size_t size = make_answer(responder, &request, pid, answer);
    sendto(responder->socket, answer, size, MSG_DONTWAIT | MSG_NOSIGNAL,
        (const struct sockaddr *)&from, header.msg_namelen);
}

/* ---- the process ---- */

static int open_socket(const char *folder)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const int on = 1;
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%s/" SOCKET_NAME, folder);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof on) < 0 ||
        bind(fd, (const struct sockaddr *)&address, sizeof address) < 0) {
        int r = -errno;
        if (fd >= 0)
            close(fd);
        return r;
    }
    return fd;
}

/* With the sockets that libkineto has left there. */
static void remove_folder(const char *folder)
{
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *list = fd >= 0 ? fdopendir(fd) : NULL;
    const struct dirent *entry;
    if (fd >= 0 && !list)
        close(fd);
    while (list && (entry = readdir(list)))
        unlinkat(dirfd(list), entry->d_name, 0);
    if (list)
        closedir(list);
    rmdir(folder);
}

/* Of the program's launch nothing stays open: the shim waits for the end of a pipe. */
static void keep_only(int *first, int *second)
{
    enum { KEPT = 100 }; /* chosen: a shim has fewer open */
    int one = fcntl(*first, F_DUPFD_CLOEXEC, KEPT), other = fcntl(*second, F_DUPFD_CLOEXEC, KEPT);
    if (one != KEPT || other != KEPT + 1)
        _exit(1);
    close_range(STDERR_FILENO + 1, KEPT - 1, 0);
    close_range(KEPT + 2, ~0U, 0);
    *first = one;
    *second = other;
}

static _Noreturn void respond_until_end(struct responder *responder)
{
    keep_only(&responder->task, &responder->socket);
    struct pollfd wait[] = {
        {.fd = responder->task, .events = POLLIN}, {.fd = responder->socket, .events = POLLIN}};
    prctl(PR_SET_NAME, "colloc-torch");
    prctl(PR_SET_PDEATHSIG, 0);
    signal(SIGTERM, SIG_IGN); /* the program may handle it: this one ends after it */
    signal(SIGINT, SIG_IGN);
    while (poll(wait, 2, -1) >= 0 || errno == EINTR) {
        if (wait[0].revents)
            break;
        if (wait[1].revents)
            answer_datagram(responder);
    }
    remove_folder(responder->spec->torch_sockets);
    _exit(0);
}

static int start_process(struct responder *responder)
{
    pid_t between = fork();
    if (between < 0)
        return -errno;
    if (between == 0) {
        if (fork() == 0)
            respond_until_end(responder);
        _exit(0);
    }
    waitpid(between, NULL, 0);
    return 0;
}

static int start_responder(struct responder *responder)
{
    int r = 0;
    responder->socket = open_socket(responder->spec->torch_sockets);
    responder->task = responder->socket < 0 ? -1 : pidfd_open(getpid(), 0);
    if (responder->socket < 0)
        r = responder->socket;
    else if (responder->task < 0)
        r = -errno;
    if (r == 0)
        r = start_process(responder);
    if (responder->task >= 0)
        close(responder->task);
    if (responder->socket >= 0)
        close(responder->socket);
    return r;
}

/* Short: the names of libkineto's sockets have 52 characters, and paths of sockets 107. */
int torch_responder_name(char ret_sockets[TORCH_SOCKET_FOLDER])
{
    uint64_t random;
    if (getrandom(&random, sizeof random, 0) != sizeof random)
        return -errno;
    snprintf(ret_sockets, TORCH_SOCKET_FOLDER, "/tmp/colloc-torch-%016" PRIx64, random);
    return 0;
}

int torch_responder_start(const char *folder, const struct attempt_spec *spec)
{
    struct responder responder = {.folder = folder, .spec = spec};
    struct torch_order order;
    if (torch_order_parse(span_of(spec->torch), &order) == 0)
        torch_dispatch_submitted(&responder.dispatch, &order);
    bool is_made = mkdir(spec->torch_sockets, 0700) == 0;
    int r = is_made ? start_responder(&responder) : -errno;
    if (r < 0)
        fprintf(stderr, "colloc: --profile=torch: %s: %s\n", spec->torch_sockets, strerror(-r));
    if (r < 0 && is_made)
        remove_folder(spec->torch_sockets);
    return r;
}

/* With the groups that removing needs, so that no name service is waited for. */
void torch_responder_clean(const struct attempt_spec *spec)
{
    gid_t gid = spec->gid;
    const struct identity identity = {
        .is_root = geteuid() == 0, .uid = spec->uid, .gid = gid, .groups = &gid, .group_count = 1};
    pid_t child = spec->torch_sockets ? fork() : -1;
    if (child == 0) {
        if (identity_become(&identity) == 0)
            remove_folder(spec->torch_sockets);
        _exit(0);
    }
    if (child > 0)
        waitpid(child, NULL, 0);
}
