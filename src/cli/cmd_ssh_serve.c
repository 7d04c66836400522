/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `colloc ssh-serve LINK`, the command of a task that `colloc ssh-proxy` submits: serves ssh to
 * the task's user. Each connection of the link (terminal/link.h: the kernel says that the other
 * end is of the same user) becomes the input and output of an `sshd -i`, which runs in the task,
 * with its cgroup and environment, as its user. No port is opened.
 *
 * The host key is the user's: it is made once, and stays in the user's state folder, so that the
 * client sees the same host in each task.
 */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "cli/command.h"
#include "cli/print.h"
#include "cli/sshd_conf.h"
#include "gpu/program.h"
#include "terminal/link.h"

#define KEEP_DEFAULT_US (15 * 60 * SECOND_US) /* chosen: as of `colloc shell` */
enum { CHECK_MS = 2000, SESSIONS_MAX = 64 };  /* chosen */
enum { SERVER_KEEP, SERVER_KEYS };

static const struct option_spec options[] = {
    [SERVER_KEEP] = OPTION("keep", DURATION, "TIME", .max = 30 * DAY_US,
        .help = "end after this time without a connection (0s: never); default: 15m"),
    [SERVER_KEYS] = OPTION("authorized-keys", FILE, "FILE", .max = PATH_MAX - 1,
        .help = "keys that may log in; default: sshd's, ~/.ssh/authorized_keys"),
};

struct server {
    char sshd[PATH_MAX], folder[PATH_MAX], key[PATH_MAX + 32], conf[PATH_MAX + 64];
};

/* ---- files ---- */

static int find_folder(struct server *server)
{
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    int n = state && *state == '/'
                ? snprintf(server->folder, sizeof server->folder, "%s/colloc/ssh", state)
                : snprintf(server->folder, sizeof server->folder, "%s/.local/state/colloc/ssh",
                      home ? home : "");
    int r = n < (int)sizeof server->folder ? file_make_folders(server->folder, 0700)
                                           : -ENAMETOOLONG;
    if (r < 0)
        print_error("%s: %s", server->folder, strerror(-r));
    return r < 0 ? EXIT_REFUSED : EXIT_OK;
}

static int run_and_wait(const char *const *words)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        execvp(words[0], (char *const *)(uintptr_t)words);
        _exit(127);
    }
    return child > 0 && waitpid(child, &status, 0) == child && status == 0 ? 0 : -EIO;
}

/* Two tasks may make it at once: the key that is linked first stays. */
static int make_key(struct server *server)
{
    char fresh[PATH_MAX + 64], public_key[PATH_MAX + 80];
    snprintf(server->key, sizeof server->key, "%s/host_ed25519_key", server->folder);
    if (access(server->key, R_OK) == 0)
        return EXIT_OK;
    snprintf(fresh, sizeof fresh, "%s/fresh-%d", server->folder, (int)getpid());
    snprintf(public_key, sizeof public_key, "%s.pub", fresh);
    const char *const words[] = {
        "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "colloc", "-f", fresh, NULL};
    int r = run_and_wait(words);
    if (r == 0 && link(fresh, server->key) < 0 && errno != EEXIST)
        r = -errno;
    unlink(fresh);
    unlink(public_key);
    if (r < 0)
        print_error("ssh-keygen made no key %s: %s", server->key, strerror(-r));
    return r < 0 ? EXIT_REFUSED : EXIT_OK;
}

static int write_conf(struct server *server, const char *keys)
{
    const struct passwd *user = getpwuid(geteuid());
    const struct sshd_order order = {.user = user ? user->pw_name : "",
        .host_key = server->key,
        .authorized_keys = keys,
        .environment = (const char *const *)environ};
    const char *task = getenv("COLLOC_TASK_ID");
    if (!user || !task || task[strspn(task, "0123456789")] || !*task) {
        print_error("ssh-serve: this is no task of a user: `colloc ssh-proxy` submits one");
        return EXIT_USAGE;
    }
    snprintf(server->conf, sizeof server->conf, "%s/task-%s.conf", server->folder, task);
    char *text = sshd_conf_make(&order);
    int r = text ? file_write_atomic(server->conf, text, strlen(text), 0600) : -ENOMEM;
    free(text);
    if (r < 0)
        print_error("%s: %s", server->conf, strerror(-r));
    return r < 0 ? EXIT_REFUSED : EXIT_OK;
}

/* ---- connections ---- */

/* sshd wants an absolute path of itself. Its log goes to the task's output. */
static void become_sshd(const struct server *server, int connection)
{
    char sshd[PATH_MAX], conf[sizeof server->conf];
    char *const words[] = {sshd, (char[]){"-i"}, (char[]){"-e"}, (char[]){"-f"}, conf, NULL};
    snprintf(sshd, sizeof sshd, "%s", server->sshd);
    snprintf(conf, sizeof conf, "%s", server->conf);
    if (dup2(connection, STDIN_FILENO) >= 0 && dup2(connection, STDOUT_FILENO) >= 0)
        execv(sshd, words);
    _exit(127);
}

static int reap_sessions(int sessions)
{
    while (waitpid(-1, NULL, WNOHANG) > 0)
        sessions--;
    return sessions;
}

static int accept_all(const struct server *server, int listener, int64_t keep_us)
{
    int64_t quiet_us = clock_monotonic_us();
    for (int sessions = 0;;) {
        bool is_full = sessions >= SESSIONS_MAX; /* further ones wait, and do not wake this */
        struct pollfd ready = {.fd = is_full ? -1 : listener, .events = POLLIN};
        poll(&ready, 1, CHECK_MS);
        sessions = reap_sessions(sessions);
        int connection = ready.revents ? link_accept(listener) : -EAGAIN;
        if (connection >= 0) {
            pid_t child = fork();
            if (child == 0)
                become_sshd(server, connection);
            sessions += child > 0;
            close(connection);
        }
        if (sessions > 0)
            quiet_us = clock_monotonic_us();
        if (keep_us && clock_monotonic_us() - quiet_us > keep_us)
            return EXIT_OK;
    }
}

static int run(const struct invocation *invocation)
{
    struct server server = {0};
    struct fault fault = {0};
    if (!program_find("sshd", server.sshd, sizeof server.sshd) &&
        !program_find("/usr/sbin/sshd", server.sshd, sizeof server.sshd)) {
        print_error("ssh-serve: sshd is not installed here (package openssh-server)");
        return EXIT_REFUSED;
    }
    int code = link_is_name(invocation->operands[0]) ? EXIT_OK : EXIT_USAGE;
    if (code == EXIT_USAGE)
        print_error("ssh-serve: `colloc ssh-proxy` starts it");
    if (code == EXIT_OK)
        code = find_folder(&server);
    if (code == EXIT_OK)
        code = make_key(&server);
    if (code == EXIT_OK)
        code = write_conf(&server, invocation->values[SERVER_KEYS].text);
    if (code != EXIT_OK)
        return code;
    int listener = link_listen_stream(invocation->operands[0], &fault);
    if (listener < 0)
        print_error("%s", fault.text);
    code = listener < 0 ? EXIT_REFUSED
                        : accept_all(&server, listener,
                              option_number_or(&invocation->values[SERVER_KEEP], KEEP_DEFAULT_US));
    unlink(server.conf);
    return code;
}

const struct command command_ssh_serve = {
    .name = "ssh-serve",
    .usage = "[OPTION...] LINK",
    .summary = "in a task: serve ssh to the task's user (ssh-proxy starts it)",
    .description = "Runs an `sshd -i` for each connection of `colloc ssh-proxy`, in the task's "
                   "cgroup and environment, as the task's user. It opens no port. The host key is "
                   "in the user's state folder (XDG_STATE_HOME, ~/.local/state/colloc/ssh).",
    COMMAND_OPTIONS(options),
    .min_operands = 1,
    .max_operands = 1,
    .common_without = WITHOUT_SOCKET | WITHOUT_JSON,
    .run = run,
};
