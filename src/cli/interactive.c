/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An interactive task is an ordinary task with a terminal. The daemon has no code for terminals:
 * colloc puts a relay (src/terminal/relay.c) before the task's command, whose arguments name the
 * link between the two, so that `colloc attach` finds it in the task's description.
 */
#include "cli/interactive.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/beside.h"
#include "base/clock.h"
#include "cli/log_follow.h"
#include "cli/print.h"
#include "cli/task_end.h"
#include "cli/task_view.h"
#include "cli/task_words.h"
#include "cli/terminal.h"

#define RELAY "colloc-terminal"

/* Chosen: at once for people, twice a second for the daemon. */
enum { LOOK_FIRST_MS = 20, LOOK_LAST_MS = 500 };

/* ---- Ctrl-C ---- */

static volatile sig_atomic_t interrupted;

static void on_interrupt(int number)
{
    if (interrupted)
        _exit(EXIT_CANCELLED);
    interrupted = number;
}

/* Also a closed window and `kill`: the task does not run on unseen. */
static void expect_interrupt(void)
{
    const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    const struct sigaction action = {.sa_handler = on_interrupt};
    interrupted = 0;
    for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
        sigaction(numbers[i], &action, NULL);
}

static void cancel_task(struct client *client, int64_t id)
{
    char path[64];
    json_t *reply = NULL;
    snprintf(path, sizeof path, "/v1/tasks/%" PRId64 "/cancel", id);
    print_error("task %" PRId64 " is cancelled (once more: leave without waiting for its end)", id);
    if (session_call(client, "POST", path, NULL, &reply) == EXIT_OK)
        json_decref(reply);
}

/* ---- the terminal in a request ---- */

/* The relay program goes before the command's words: the task then is the relay, which starts the
 * command on a terminal. How long it keeps the command without a user is in its arguments. */
int interactive_add_terminal(json_t *request, int64_t keep_us)
{
    static const char *const places[] = {".", "../" COLLOC_LIBEXEC_DIR "/colloc", "../terminal"};
    char path[PATH_MAX], name[LINK_NAME_SIZE], keep[24], rows[8], columns[8];
    struct link_size size = terminal_size();
    json_t *arguments = json_object_get(request, "arguments");
    int r = beside_find(places, ARRAY_SIZE(places), RELAY, path, sizeof path);
    if (r == 0)
        r = link_make_name(name);
    if (r < 0) {
        print_error("cannot make a terminal for the task: " RELAY ": %s", strerror(-r));
        return EXIT_REFUSED;
    }
    snprintf(keep, sizeof keep, "%" PRId64, keep_us / SECOND_US);
    snprintf(rows, sizeof rows, "%d", size.rows);
    snprintf(columns, sizeof columns, "%d", size.columns);
    const char *const words[] = {path, name, keep, rows, columns};
    for (size_t i = 0; i < ARRAY_SIZE(words); i++)
        json_array_insert_new(arguments, i, json_string(words[i]));
    return EXIT_OK;
}

bool interactive_link_of(const json_t *task, char name[LINK_NAME_SIZE])
{
    const json_t *arguments = json_object_get(task, "arguments");
    const char *program = json_string_value(json_array_get(arguments, 0)),
               *link = json_string_value(json_array_get(arguments, 1));
    const char *base = program ? strrchr(program, '/') : NULL;
    if (!base || strcmp(base + 1, RELAY) != 0 || !link || !link_is_name(link))
        return false;
    snprintf(name, LINK_NAME_SIZE, "%s", link);
    return true;
}

/* ---- until it starts ---- */

static int get_task(struct client *client, int64_t id, json_t **ret_reply)
{
    char path[64];
    snprintf(path, sizeof path, "/v1/tasks/%" PRId64, id);
    return session_call_patiently(client, "GET", path, ret_reply);
}

int interactive_has_ended(struct client *client, int64_t id, bool *ret_has_ended)
{
    json_t *reply;
    int code = get_task(client, id, &reply);
    if (code != EXIT_OK)
        return code;
    *ret_has_ended = task_has_ended(json_object_get(reply, "task"));
    json_decref(reply);
    return EXIT_OK;
}

/* Says why the task waits, when that has changed. */
static void say_reason(const json_t *task, char *said, size_t size)
{
    const char *reason = member_text(task, "reason", ""),
               *text = member_text(task, "reason_text", "");
    if (strcmp(reason, said) == 0)
        return;
    snprintf(said, size, "%s", reason);
    char id[CELL_SIZE];
    print_error("task %s waits (%s)%s%s", task_id_text(task, id, sizeof id), reason,
        *text ? ": " : "", text);
}

static void pause_ms(int ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000L}, NULL);
}

/* Returns when it has started, has ended, or `interrupted`. */
static int wait_start(struct client *client, int64_t id)
{
    char said[64] = "";
    for (int ms = LOOK_FIRST_MS; !interrupted; ms = 2 * ms < LOOK_LAST_MS ? 2 * ms : LOOK_LAST_MS) {
        json_t *reply;
        int code = get_task(client, id, &reply);
        if (code != EXIT_OK)
            return code;
        const json_t *task = json_object_get(reply, "task");
        bool waits = strcmp(member_text(task, "state", ""), "PENDING") == 0;
        if (waits && ms > LOOK_FIRST_MS)
            say_reason(task, said, sizeof said);
        json_decref(reply);
        if (!waits)
            return EXIT_OK;
        pause_ms(ms);
    }
    return EXIT_OK;
}

int interactive_wait_start(struct client *client, int64_t id)
{
    expect_interrupt();
    int code = wait_start(client, id);
    return code == EXIT_OK && interrupted ? EXIT_CANCELLED : code;
}

int interactive_send(struct client *client, const json_t *request, int64_t *ret_id)
{
    json_t *reply, *warning;
    size_t i;
    int code = session_call(client, "POST", "/v1/tasks", request, &reply);
    if (code != EXIT_OK)
        return code;
    *ret_id = json_integer_value(json_object_get(reply, "id"));
    json_array_foreach(json_object_get(reply, "warnings"), i, warning) {
        print_error("warning: %s", json_string_value(warning));
    }
    json_decref(reply);
    return EXIT_OK;
}

/* An interrupt while the task waits cancels it: no terminal would show its output. */
static int wait_or_cancel(struct client *client, int64_t id)
{
    int code = wait_start(client, id);
    if (code != EXIT_OK || !interrupted)
        return code;
    cancel_task(client, id);
    return EXIT_CANCELLED;
}

int interactive_wait_turn(struct client *client, int64_t id)
{
    expect_interrupt();
    return wait_or_cancel(client, id);
}

int interactive_submit(struct client *client, const json_t *request, int64_t *ret_id)
{
    expect_interrupt();
    int code = interactive_send(client, request, ret_id);
    return code == EXIT_OK ? wait_or_cancel(client, *ret_id) : code;
}

/* ---- its output ---- */

/* The exit code of the task; prints a message if it is not the command's. */
static int end_code(struct client *client, int64_t id)
{
    json_t *reply;
    int code = task_end_wait(client, id, INT64_MAX, &reply);
    if (code != EXIT_OK)
        return code;
    const json_t *task = json_object_get(reply, "task");
    const char *state = member_text(task, "state", ""),
               *text = member_text(task, "reason_text", "");
    code = task_end_exit_code(task);
    if (code != EXIT_OK)
        print_error("task %" PRId64 " %s (%s)%s%s", id, state, member_text(task, "reason", "-"),
            *text ? ": " : "", text);
    json_decref(reply);
    return code;
}

static struct log_stream make_stream(struct client *client, int64_t id, const char *name, int fd)
{
    return (struct log_stream){
        .reader = {.client = client, .stream = name, .id = id}, .name = "", .fd = fd};
}

/* Standard error is a second stream unless it goes to the same file. */
static int open_streams(struct client *client, struct task_log *task)
{
    struct client_log log;
    task->stream[task->n_streams++] = make_stream(client, task->id, "stdout", STDOUT_FILENO);
    struct log_reader probe = task->stream[0].reader;
    int code = log_reader_read(&probe, &log);
    if (code == EXIT_OK && !log.merged)
        task->stream[task->n_streams++] = make_stream(client, task->id, "stderr", STDERR_FILENO);
    if (code == EXIT_OK)
        free(log.data);
    return code;
}

int interactive_follow(struct client *client, int64_t id)
{
    struct task_log task = {.id = id};
    struct log_printer printer = {0};
    expect_interrupt();
    task.code = open_streams(client, &task);
    if (task.code == EXIT_OK)
        log_follow(&printer, &task, 1, &interrupted);
    if (task.code == EXIT_OK && interrupted) {
        cancel_task(client, id);
        log_follow(&printer, &task, 1, NULL);
    }
    return task.code == EXIT_OK ? end_code(client, id) : task.code;
}

/* ---- its terminal ---- */

/* The relay listens soon after the task's start. `ret_fd`: -1 when the task has ended first. */
static int connect_link(struct client *client, int64_t id, const char *link, int *ret_fd)
{
    struct fault fault = {0};
    for (;;) {
        bool has_ended;
        *ret_fd = link_connect(link, &fault);
        if (*ret_fd >= 0)
            return EXIT_OK;
        if (*ret_fd != -ECONNREFUSED) {
            print_error("%s", fault.text);
            return EXIT_REFUSED;
        }
        int code = interactive_has_ended(client, id, &has_ended);
        if (code != EXIT_OK || has_ended || interrupted)
            return code;
        pause_ms(LOOK_FIRST_MS);
    }
}

/* Of the terminal's window, where it is known to have one: "\033[22;0t" keeps the title that it has,
 * "\033[23;0t" brings that back. */
static void put_title(const char *text)
{
    static const char *const terminals[] = {"xterm", "rxvt", "tmux", "foot", "alacritty"};
    const char *term = getenv("TERM");
    for (size_t i = 0; term && i < ARRAY_SIZE(terminals) && isatty(STDERR_FILENO); i++)
        if (strncmp(term, terminals[i], strlen(terminals[i])) == 0)
            fputs(text, stderr);
}

/* The prompt in the terminal is as before, so that a line and the title say where one is. */
static void say_where(struct client *client, int64_t id)
{
    char gpus[CELL_SIZE], title[CELL_SIZE + 80];
    json_t *reply;
    if (get_task(client, id, &reply) != EXIT_OK)
        return;
    const json_t *task = json_object_get(reply, "task"), *list = json_object_get(task, "gpus");
    size_t n = json_array_size(list);
    const char *before = n == 0 ? "" : n == 1 ? "GPU " : "GPUs ";
    const char *text = task_gpus_text(task, gpus);
    snprintf(title, sizeof title, "\033[22;0t\033]0;task %" PRId64 ", %s%s\007", id, before, text);
    put_title(title);
    print_error(
        "task %" PRId64 ", %s%s: exit ends it, Ctrl-] d leaves it running", id, before, text);
    json_decref(reply);
}

/* Returns by how the connection ended: the command's own exit code when it ended, success after
 * Ctrl-] d, 129 when the user's terminal was closed. */
int interactive_attach(struct client *client, int64_t id, const char *link)
{
    int fd;
    int code = connect_link(client, id, link, &fd);
    if (code != EXIT_OK)
        return code;
    if (fd < 0 && interrupted)
        return EXIT_CANCELLED;
    say_where(client, id);
    enum terminal_end end = fd < 0 ? TERMINAL_EXITED : terminal_pass(fd);
    put_title("\033[23;0t");
    if (end == TERMINAL_DETACHED) {
        print_error("left task %" PRId64 " running: `colloc attach %" PRId64
                    "` returns to it, `colloc cancel %" PRId64 "` ends it",
            id, id, id);
        return EXIT_OK;
    }
    if (end == TERMINAL_CLOSED)
        return EXIT_BY_SIGNAL + SIGHUP;
    if (end == TERMINAL_TAKEN) {
        print_error("another terminal has attached to task %" PRId64, id);
        return EXIT_REFUSED;
    }
    return end_code(client, id);
}
