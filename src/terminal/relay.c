/* SPDX-License-Identifier: Apache-2.0 */
/*
 * colloc-terminal NAME KEEP_S ROWS COLUMNS COMMAND [ARGUMENT...]: runs a command of a task in a
 * terminal (pty), to which a user's terminal attaches, leaves and attaches again.
 *
 *     user's terminal            on the server, in the task
 *     colloc attach  --- link --- colloc-terminal --- pty --- COMMAND
 *                                       |
 *                                       `--- standard output: the task's log
 *
 * The relay is a process of the task, as its user. What the command prints goes to the log, which
 * `colloc logs` shows and in which collocd searches for the reason of a crash, and into a
 * scrollback, from which an attached terminal is fed, beginning with what it has missed.
 *
 * One terminal is attached at a time; a new one takes over. While it takes no output, the command
 * waits as it would for any terminal, but for TAKES_NOTHING_US at most: then the relay drops the
 * terminal. When a terminal goes without saying so (a lost connection), the command is ended as by
 * a hang-up after KEEP_S seconds without another, so that a forgotten shell does not keep a GPU. 0:
 * never.
 *
 * The relay ends as the command does: with its exit code, or by the signal that killed it.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/units.h"
#include "terminal/link.h"
#include "terminal/scrollback.h"

/* Chosen. */
#define TAKES_NOTHING_US (60 * SECOND_US)
#define FAREWELL_US      (5 * SECOND_US)  /* for the last output, after the command's end */
#define FIRST_WAIT_US    (10 * SECOND_US) /* for the first terminal, once the scrollback is full */
#define NEVER            INT64_MAX

enum { NO_FD = -1, PTY_PIECE = 4096, EXIT_CANNOT_RUN = 127 };

struct relay {
    int listener, signals;
    int pty;      /* NO_FD once it is hung up */
    int terminal; /* the attached one, or NO_FD */
    pid_t command;
    bool has_ended;
    int wait_status;
    uint64_t position;        /* of the attached terminal in the scrollback */
    struct link_message keys; /* that the pty has not taken yet */
    size_t keys_taken;
    int64_t blocked_us;  /* since when it takes nothing; NEVER: it takes */
    int64_t keep_us;     /* without a terminal; 0: no limit */
    int64_t hang_up_us;  /* when that is over; NEVER */
    int64_t farewell_us; /* when the relay ends at the latest; NEVER: the command runs */
    int64_t first_us;    /* until when the command waits for its first terminal; 0: no more */
    struct scrollback scrollback;
};

/* ---- the attached terminal ---- */

static void let_go(struct relay *relay, bool on_purpose)
{
    if (relay->terminal == NO_FD)
        return;
    close(relay->terminal);
    relay->terminal = NO_FD;
    relay->blocked_us = NEVER;
    relay->hang_up_us = on_purpose || relay->keep_us == 0 ? NEVER
                                                          : clock_monotonic_us() + relay->keep_us;
}

static void accept_terminal(struct relay *relay)
{
    int fd = link_accept(relay->listener);
    if (fd < 0)
        return;
    if (relay->terminal != NO_FD)
        link_send(relay->terminal, LINK_TAKEN, NULL, 0);
    let_go(relay, true);
    relay->terminal = fd;
    relay->first_us = 0;
    relay->position = scrollback_oldest(&relay->scrollback);
    relay->hang_up_us = NEVER;
}

/* Sends what the terminal has not seen, until it takes no more. */
static void feed_terminal(struct relay *relay)
{
    const char *bytes;
    size_t size;
    while (relay->terminal != NO_FD &&
           (size = scrollback_peek(&relay->scrollback, &relay->position, &bytes)) > 0) {
        size = size < LINK_DATA_MAX ? size : LINK_DATA_MAX;
        int r = link_send(relay->terminal, LINK_DATA, bytes, size);
        if (r == -EAGAIN) {
            int64_t now_us = clock_monotonic_us();
            if (relay->blocked_us == NEVER)
                relay->blocked_us = now_us;
            else if (now_us - relay->blocked_us > TAKES_NOTHING_US)
                let_go(relay, false);
            return;
        }
        if (r < 0) {
            let_go(relay, false);
            return;
        }
        relay->position += size;
        relay->blocked_us = NEVER;
    }
}

static void set_size(const struct relay *relay, const struct link_message *message)
{
    struct link_size size;
    memcpy(&size, message->data, sizeof size);
    const struct winsize window = {.ws_row = size.rows, .ws_col = size.columns};
    if (relay->pty != NO_FD)
        ioctl(relay->pty, TIOCSWINSZ, &window);
}

static bool has_keys(const struct relay *relay)
{
    return relay->keys_taken < relay->keys.size;
}

/* Writes keys of the user to the pty; the rest waits until it takes more. */
static void press_keys(struct relay *relay)
{
    if (!has_keys(relay))
        return;
    ssize_t n = relay->pty == NO_FD ? -1
                                    : write(relay->pty, relay->keys.data + relay->keys_taken,
                                          relay->keys.size - relay->keys_taken);
    if (n >= 0)
        relay->keys_taken += (size_t)n;
    else if (relay->pty == NO_FD || errno != EAGAIN)
        relay->keys_taken = relay->keys.size;
}

static void read_terminal(struct relay *relay)
{
    struct link_message message;
    int r = link_receive(relay->terminal, &message);
    if (r == -EAGAIN)
        return;
    if (r <= 0)
        let_go(relay, false);
    else if (message.packet == LINK_DATA) {
        relay->keys = message;
        relay->keys_taken = 0;
        press_keys(relay);
    } else if (message.packet == LINK_SIZE)
        set_size(relay, &message);
    else if (message.packet == LINK_DETACH)
        let_go(relay, true);
}

/* ---- the command ---- */

/* The terminal hangs up: the kernel sends SIGHUP to the command's session. */
static void hang_up(struct relay *relay)
{
    if (relay->pty != NO_FD)
        close(relay->pty);
    relay->pty = NO_FD;
    relay->hang_up_us = NEVER;
}

/* Also at the command's end: then the last piece is read, and the pty has no more. */
static void read_pty(struct relay *relay)
{
    char piece[PTY_PIECE];
    ssize_t n = read(relay->pty, piece, sizeof piece);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        hang_up(relay);
        return;
    }
    file_write_fd(STDOUT_FILENO, piece, (size_t)n);
    scrollback_add(&relay->scrollback, piece, (size_t)n);
}

static bool ignores_sigterm(pid_t pid)
{
    char path[64], status[4096];
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    ssize_t n = file_read_start(path, status, sizeof status);
    const char *mask = n > 0 ? strstr(status, "\nSigIgn:") : NULL;
    return mask && strtoull(mask + strlen("\nSigIgn:"), NULL, 16) >> (SIGTERM - 1) & 1;
}

/* collocd ends the task: every process of it has the signal. An interactive shell ignores it, and
 * ends by a hang-up, as it does when its window is closed. */
static void on_sigterm(struct relay *relay)
{
    if (!relay->has_ended && ignores_sigterm(relay->command))
        hang_up(relay);
}

static void reap_children(struct relay *relay)
{
    int status;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
        if (pid != relay->command)
            continue;
        relay->has_ended = true;
        relay->wait_status = status;
        relay->farewell_us = clock_monotonic_us() + FAREWELL_US;
    }
}

static void read_signals(struct relay *relay)
{
    struct signalfd_siginfo info;
    while (read(relay->signals, &info, sizeof info) == sizeof info) {
        if (info.ssi_signo == SIGCHLD)
            reap_children(relay);
        else
            on_sigterm(relay);
    }
}

/* ---- the loop ---- */

static bool has_unseen(const struct relay *relay)
{
    return relay->terminal != NO_FD && relay->position < relay->scrollback.written;
}

/* Output of the command from before its first terminal attaches must not be lost. */
static bool waits_for_terminal(const struct relay *relay)
{
    return relay->first_us > clock_monotonic_us() &&
           relay->scrollback.written + PTY_PIECE > SCROLLBACK_SIZE;
}

/* The command waits while its terminal has half the ring to take. */
static bool is_behind(const struct relay *relay)
{
    return has_unseen(relay) && relay->scrollback.written - relay->position > SCROLLBACK_SIZE / 2;
}

static bool may_read_pty(const struct relay *relay)
{
    return relay->pty != NO_FD && !is_behind(relay) && !waits_for_terminal(relay);
}

/* Has the command printed something that no terminal could show yet? */
static bool has_unshown(const struct relay *relay)
{
    return relay->first_us > clock_monotonic_us() && relay->scrollback.written > 0;
}

static bool is_done(const struct relay *relay)
{
    if (!relay->has_ended)
        return false;
    return clock_monotonic_us() >= relay->farewell_us ||
           (relay->pty == NO_FD && !has_unseen(relay) && !has_unshown(relay));
}

static int poll_timeout_ms(const struct relay *relay)
{
    int64_t until_us = relay->hang_up_us < relay->farewell_us ? relay->hang_up_us
                                                              : relay->farewell_us;
    if (relay->blocked_us != NEVER && relay->blocked_us + TAKES_NOTHING_US < until_us)
        until_us = relay->blocked_us + TAKES_NOTHING_US;
    if (waits_for_terminal(relay) && relay->first_us < until_us)
        until_us = relay->first_us;
    if (until_us == NEVER)
        return -1;
    int64_t left_us = until_us - clock_monotonic_us();
    return left_us <= 0 ? 0 : (int)(left_us / MS_US) + 1;
}

/* What to wait for on the pty: output, and room for keys. */
static short pty_events(const struct relay *relay)
{
    return (short)((may_read_pty(relay) ? POLLIN : 0) | (has_keys(relay) ? POLLOUT : 0));
}

/* While keys wait, no more are read. */
static short terminal_events(const struct relay *relay)
{
    return (short)((has_keys(relay) ? 0 : POLLIN) | (has_unseen(relay) ? POLLOUT : 0));
}

static void run_round(struct relay *relay)
{
    short wanted = pty_events(relay);
    struct pollfd fds[] = {
        {.fd = relay->signals, .events = POLLIN},
        {.fd = relay->listener, .events = POLLIN},
        {.fd = wanted ? relay->pty : NO_FD, .events = wanted},
        {.fd = relay->terminal, .events = terminal_events(relay)},
    };
    if (poll(fds, ARRAY_SIZE(fds), poll_timeout_ms(relay)) < 0)
        return;
    if (fds[0].revents)
        read_signals(relay);
    press_keys(relay);
    if (fds[2].revents & (POLLIN | POLLHUP | POLLERR) && relay->pty != NO_FD)
        read_pty(relay);
    if (fds[3].revents & (POLLIN | POLLHUP | POLLERR))
        read_terminal(relay);
    if (fds[1].revents)
        accept_terminal(relay);
    feed_terminal(relay);
    if (clock_monotonic_us() >= relay->hang_up_us) {
        printf("\r\n[colloc: no terminal was attached for %lld s: the command is hung up]\r\n",
            (long long)(relay->keep_us / SECOND_US));
        fflush(stdout);
        hang_up(relay);
    }
}

/* ---- start and end ---- */

static int open_signals(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, NULL);
    return signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
}

_Noreturn static void become_command(char **words)
{
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (!getenv("TERM"))
        setenv("TERM", "xterm", 1);
    execvp(words[0], words);
    fprintf(stderr, "colloc-terminal: cannot run %s: %s\n", words[0], strerror(errno));
    _exit(EXIT_CANNOT_RUN);
}

static int start_command(struct relay *relay, struct link_size size, char **words)
{
    const struct winsize window = {.ws_row = size.rows, .ws_col = size.columns};
    relay->command = forkpty(&relay->pty, NULL, NULL, &window);
    if (relay->command == 0)
        become_command(words);
    if (relay->command < 0)
        return -errno;
    fcntl(relay->pty, F_SETFD, FD_CLOEXEC);
    fcntl(relay->pty, F_SETFL, O_RDWR | O_NONBLOCK);
    return 0;
}

/* Ends this process as the command ended. */
_Noreturn static void end_likewise(int wait_status)
{
    if (WIFSIGNALED(wait_status)) {
        sigset_t none;
        sigemptyset(&none);
        signal(WTERMSIG(wait_status), SIG_DFL);
        sigprocmask(SIG_SETMASK, &none, NULL);
        raise(WTERMSIG(wait_status));
        _exit(128 + WTERMSIG(wait_status));
    }
    exit(WEXITSTATUS(wait_status));
}

int main(int argc, char **argv)
{
    struct fault fault = {0};
    int64_t keep_s, rows, columns;
    if (argc < 6 || !link_is_name(argv[1]) || parse_int64(argv[2], 0, 1 << 24, &keep_s) < 0 ||
        parse_int64(argv[3], 1, UINT16_MAX, &rows) < 0 ||
        parse_int64(argv[4], 1, UINT16_MAX, &columns) < 0) {
        fputs("usage: colloc-terminal NAME KEEP_S ROWS COLUMNS COMMAND [ARGUMENT...]\n"
              "`colloc run --pty` starts it.\n",
            stderr);
        return 2;
    }
    struct relay relay = {.terminal = NO_FD,
        .keep_us = keep_s * SECOND_US,
        .blocked_us = NEVER,
        .hang_up_us = keep_s ? clock_monotonic_us() + keep_s * SECOND_US : NEVER,
        .farewell_us = NEVER,
        .first_us = clock_monotonic_us() + FIRST_WAIT_US};
    relay.signals = open_signals();
    relay.listener = link_listen(argv[1], &fault);
    if (relay.signals < 0 || relay.listener < 0) {
        fprintf(stderr, "colloc-terminal: %s\n", *fault.text ? fault.text : strerror(errno));
        return 1;
    }
    int r = start_command(&relay, (struct link_size){(uint16_t)rows, (uint16_t)columns}, argv + 5);
    if (r < 0) {
        fprintf(stderr, "colloc-terminal: no terminal for the command: %s\n", strerror(-r));
        return 1;
    }
    while (!is_done(&relay))
        run_round(&relay);
    if (relay.terminal != NO_FD)
        link_send(relay.terminal, LINK_EXIT, &(struct link_exit){relay.wait_status},
            sizeof(struct link_exit));
    end_likewise(relay.wait_status);
}
