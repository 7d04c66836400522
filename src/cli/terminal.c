/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connects the user's terminal with that of a task. A loop between the user's keyboard, the link
 * and the screen. One key is ours: Ctrl-], as in telnet and virsh. "Ctrl-] d" detaches, "Ctrl-]
 * Ctrl-]" sends one Ctrl-].
 */
#include "cli/terminal.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#include "base/array.h"
#include "base/file.h"

enum { ESCAPE_KEY = 0x1d, DETACH_KEY = 'd' }; /* Ctrl-] */

struct terminal {
    int link, signals;
    bool has_escape; /* Ctrl-] was the last key */
    bool is_over;
    enum terminal_end end;
    struct termios before;
    sigset_t signals_before;
};

bool terminal_is_there(void)
{
    return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
}

struct link_size terminal_size(void)
{
    struct winsize window;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) < 0 || !window.ws_row || !window.ws_col)
        return (struct link_size){24, 80};
    return (struct link_size){window.ws_row, window.ws_col};
}

static void end_terminal(struct terminal *terminal, enum terminal_end how)
{
    terminal->is_over = true;
    terminal->end = how;
}

/* There are few keys: if one does not fit into the link's buffer, the program waits. When the other
 * end has closed, read_link reads the output that it sent before. */
static void send_packet(
    struct terminal *terminal, enum link_packet packet, const void *data, size_t size)
{
    struct pollfd room = {.fd = terminal->link, .events = POLLOUT};
    while (link_send(terminal->link, packet, data, size) == -EAGAIN)
        poll(&room, 1, -1);
}

static void send_size(struct terminal *terminal)
{
    struct link_size size = terminal_size();
    send_packet(terminal, LINK_SIZE, &size, sizeof size);
}

/* Sends the keys, except colloc's own. */
static void press_keys(struct terminal *terminal, const char *keys, size_t n)
{
    char sent[LINK_DATA_MAX];
    size_t n_sent = 0;
    for (size_t i = 0; i < n && !terminal->is_over; i++) {
        bool had_escape = terminal->has_escape;
        terminal->has_escape = !had_escape && keys[i] == ESCAPE_KEY;
        if (terminal->has_escape)
            continue;
        if (had_escape && keys[i] == DETACH_KEY)
            end_terminal(terminal, TERMINAL_DETACHED);
        else
            sent[n_sent++] = keys[i];
    }
    if (n_sent > 0)
        send_packet(terminal, LINK_DATA, sent, n_sent);
    if (terminal->is_over && terminal->end == TERMINAL_DETACHED)
        send_packet(terminal, LINK_DETACH, NULL, 0);
}

static void read_keys(struct terminal *terminal)
{
    char keys[LINK_DATA_MAX];
    ssize_t n = read(STDIN_FILENO, keys, sizeof keys);
    if (n > 0)
        press_keys(terminal, keys, (size_t)n);
    else if (n == 0 || (errno != EAGAIN && errno != EINTR))
        end_terminal(terminal, TERMINAL_CLOSED);
}

/* The relay says how it ends: the command has exited, another terminal has taken over, or the
 * connection was lost. */
static void read_link(struct terminal *terminal)
{
    struct link_message message;
    int r = link_receive(terminal->link, &message);
    if (r == -EAGAIN)
        return;
    if (r <= 0)
        end_terminal(terminal, TERMINAL_LOST);
    else if (message.packet == LINK_DATA)
        file_write_fd(STDOUT_FILENO, message.data, message.size);
    else if (message.packet == LINK_TAKEN)
        end_terminal(terminal, TERMINAL_TAKEN);
    else if (message.packet == LINK_EXIT)
        end_terminal(terminal, TERMINAL_EXITED);
}

static void read_signals(struct terminal *terminal)
{
    struct signalfd_siginfo info;
    while (read(terminal->signals, &info, sizeof info) == sizeof info) {
        if (info.ssi_signo == SIGWINCH)
            send_size(terminal);
        else
            end_terminal(terminal, TERMINAL_CLOSED);
    }
}

/* SIGINT and SIGQUIT come from other programs only: in raw mode their keys are bytes. */
static int open_signals(struct terminal *terminal)
{
    const int numbers[] = {SIGWINCH, SIGTERM, SIGHUP, SIGINT, SIGQUIT};
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
        sigaddset(&set, numbers[i]);
    sigprocmask(SIG_BLOCK, &set, &terminal->signals_before);
    terminal->signals = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    return terminal->signals < 0 ? -errno : 0;
}

/* Signals first: a terminal that was closed is not written to any more. */
static void pass_bytes(struct terminal *terminal)
{
    while (!terminal->is_over) {
        struct pollfd fds[] = {{.fd = terminal->signals, .events = POLLIN},
            {.fd = terminal->link, .events = POLLIN}, {.fd = STDIN_FILENO, .events = POLLIN}};
        if (poll(fds, ARRAY_SIZE(fds), -1) < 0)
            continue;
        if (fds[0].revents)
            read_signals(terminal);
        if (fds[1].revents && !terminal->is_over)
            read_link(terminal);
        if (fds[2].revents && !terminal->is_over)
            read_keys(terminal);
    }
}

/* The user's terminal becomes raw, so that each key reaches the task; it is as before when this
 * returns, however it ended. */
enum terminal_end terminal_pass(int fd)
{
    struct terminal terminal = {.link = fd, .signals = -1, .end = TERMINAL_LOST};
    bool is_raw = tcgetattr(STDIN_FILENO, &terminal.before) == 0;
    if (open_signals(&terminal) == 0) {
        struct termios raw = terminal.before;
        cfmakeraw(&raw);
        if (is_raw)
            tcsetattr(STDIN_FILENO, TCSADRAIN, &raw);
        send_size(&terminal);
        pass_bytes(&terminal);
        if (is_raw)
            tcsetattr(STDIN_FILENO, TCSADRAIN, &terminal.before);
        close(terminal.signals);
    }
    sigprocmask(SIG_SETMASK, &terminal.signals_before, NULL);
    close(fd);
    return terminal.end;
}
