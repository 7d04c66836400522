/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `colloc top`: GPUs and tasks on the full screen.
 *
 * The loop waits for a key or the next sample, updates the state (top_tasks.c has the list of tasks
 * and its selection) and draws all of it (top_draw.c).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clamp.h"
#include "base/clock.h"
#include "base/json_member.h"
#include "cli/external.h"
#include "cli/print.h"
#include "cli/session.h"
#include "cli/top.h"

enum { TOP_INTERVAL };

#define INTERVAL_DEFAULT_US SECOND_US

static const struct option_spec options[] = {
    [TOP_INTERVAL] = OPTION("interval", DURATION, "TIME", .letter = 'i', .min = 100 * MS_US,
        .max = DAY_US, .help = "interval between two samples, at least 100ms; default: 1s"),
};

/* ---- the daemon ---- */

/* Returns the reply, for the caller to release; or NULL with a fault. */
static json_t *fetch_reply(struct client *client, const char *path, struct fault *fault)
{
    json_t *reply = NULL;
    int status = 0, r = client_request(client, "GET", path, NULL, fault, &status, &reply);
    if (r == 0 && status / 100 == 2)
        return reply;
    if (r == 0)
        client_error(status, reply, fault);
    json_decref(reply);
    return NULL;
}

/* Without a reply the picture is unchanged, and the last line shows the error. */
static void poll_daemon(struct top *top, struct client *client)
{
    struct fault fault = {0};
    json_t *gpus = fetch_reply(client, "/v1/gpus", &fault);
    json_t *tasks = gpus ? fetch_reply(client, "/v1/tasks?state=live", &fault) : NULL;
    bool was_cut_off = top->is_cut_off;
    top->is_cut_off = !tasks;
    if (!tasks) {
        snprintf(top->message, sizeof top->message, "%s", fault.text);
        json_decref(gpus);
        return;
    }
    if (was_cut_off)
        top->message[0] = '\0';
    external_name(gpus);
    top_take(top, gpus, tasks);
}

/* Fills RECENTLY from the daemon's samples of the time before; without them it begins empty. */
static void fetch_past(struct top *top, struct client *client, int64_t interval_us)
{
    char path[64];
    struct fault fault = {0};
    snprintf(path, sizeof path, "/v1/samples?since_s=%.3f",
        (double)(interval_us * (TEXT_GRAPH_WIDTH_MAX + 1)) / 1e6);
    json_t *samples = fetch_reply(client, path, &fault);
    top_recall(top, samples, (double)clock_wall_us() / 1e6, (double)interval_us / 1e6);
    json_decref(samples);
}

/* The daemon's answer is shown in the last line; the list shows the rest with the next sample. */
static void cancel_selected(struct top *top, struct client *client)
{
    char path[64];
    struct fault fault = {0};
    json_t *reply = NULL;
    int status = 0;
    snprintf(path, sizeof path, "/v1/tasks/%" JSON_INTEGER_FORMAT "/cancel", top->to_cancel);
    int r = client_request(client, "POST", path, NULL, &fault, &status, &reply);
    if (r == 0 && status / 100 != 2)
        client_error(status, reply, &fault);
    if (r == 0 && status / 100 == 2)
        snprintf(top->message, sizeof top->message,
            "task %" JSON_INTEGER_FORMAT " is being cancelled", top->to_cancel);
    else
        snprintf(top->message, sizeof top->message, "%s", fault.text);
    json_decref(reply);
}

/* A task that has just ended is still there. */
static void poll_page(struct top *top, struct client *client)
{
    struct fault fault = {0};
    char path[64];
    snprintf(path, sizeof path, "/v1/tasks/%" JSON_INTEGER_FORMAT, top->page_task);
    json_t *task = fetch_reply(client, path, &fault);
    strcat(path, "/series");
    const json_t *one = json_object_get(task, "task"); /* none: an array of Slurm that waits */
    json_t *series = one ? fetch_reply(client, path, &fault) : NULL;
    if (one)
        top_page_take(top, one, series);
    json_decref(task);
    json_decref(series);
}

/* ---- keys ---- */

static void move_selection(struct top *top, int by)
{
    int at = top_selected(top);
    if (at < 0)
        return;
    at = clamp_int(at + by, 0, top->shown_count - 1);
    top->selected = json_integer_value(json_object_get(top->shown[at], "id"));
}

/* No request that the daemon would refuse. */
static void ask_to_cancel(struct top *top)
{
    int at = top_selected(top);
    if (at < 0)
        return;
    const json_t *task = top->shown[at];
    json_int_t id = json_integer_value(json_object_get(task, "id"));
    if (geteuid() != 0 && member_number(task, "uid", -1) != (double)geteuid()) {
        snprintf(top->message, sizeof top->message, "task %" JSON_INTEGER_FORMAT " is %s's", id,
            member_text(task, "user", "another user"));
        return;
    }
    top->to_cancel = id;
    top->mode = TOP_CONFIRM;
}

/* Escape empties the filter, Enter keeps it. The list follows with each key. */
static void edit_filter(struct top *top, int key)
{
    size_t n = strlen(top->filter);
    if (key == KEY_ENTER || key == KEY_ESCAPE)
        top->mode = TOP_BROWSE;
    if (key == KEY_ESCAPE)
        top->filter[0] = '\0';
    if (key == KEY_BACKSPACE && n > 0)
        top->filter[n - 1] = '\0';
    if (key >= ' ' && key < KEY_BACKSPACE && n + 1 < sizeof top->filter) {
        top->filter[n] = (char)key;
        top->filter[n + 1] = '\0';
    }
    top_choose(top);
}

/* Returns false to quit. */
static bool on_browse_key(struct top *top, int key)
{
    top->message[0] = '\0';
    switch (key) {
    case 'q':
        return false;
    case 's':
        top->sort = (top->sort + 1) % SORTS;
        top_choose(top);
        break;
    case '/':
        top->mode = TOP_FILTER;
        break;
    case KEY_ESCAPE:
        top->filter[0] = '\0';
        top_choose(top);
        break;
    case 'c':
        ask_to_cancel(top);
        break;
    case KEY_UP:
    case 'k':
        move_selection(top, -1);
        break;
    case KEY_DOWN:
    case 'j':
        move_selection(top, 1);
        break;
    case KEY_PAGE_UP:
        move_selection(top, -top->task_rows);
        break;
    case KEY_PAGE_DOWN:
        move_selection(top, top->task_rows);
        break;
    case KEY_HOME:
        move_selection(top, -top->shown_count);
        break;
    case KEY_END:
        move_selection(top, top->shown_count);
        break;
    default:
        break;
    }
    return true;
}

static void open_page(struct top *top, struct client *client)
{
    int at = top_selected(top);
    if (at < 0)
        return;
    top->page_task = json_integer_value(json_object_get(top->shown[at], "id"));
    top->page_first = 0;
    top->mode = TOP_PAGE;
    free(top->page);
    top->page = NULL;
    poll_page(top, client);
}

/* Returns false to quit. */
static bool on_page_key(struct top *top, int key)
{
    int rows = screen_rows(top->screen) - 2;
    if (key == KEY_ESCAPE || key == KEY_ENTER)
        top->mode = TOP_BROWSE;
    else if (key == KEY_UP || key == 'k')
        top->page_first--;
    else if (key == KEY_DOWN || key == 'j')
        top->page_first++;
    else if (key == KEY_PAGE_UP || key == KEY_PAGE_DOWN)
        top->page_first += key == KEY_PAGE_UP ? -rows : rows;
    else if (key == KEY_HOME)
        top->page_first = 0;
    return key != 'q';
}

/* Returns false to quit. */
static bool on_key(struct top *top, struct client *client, int key)
{
    switch (top->mode) {
    case TOP_FILTER:
        edit_filter(top, key);
        return true;
    case TOP_CONFIRM:
        top->mode = TOP_BROWSE;
        if (key == 'y' || key == 'Y') {
            cancel_selected(top, client);
            poll_daemon(top, client);
        }
        return true;
    case TOP_PAGE:
        return on_page_key(top, key);
    default:
        if (key == KEY_ENTER)
            open_page(top, client);
        return on_browse_key(top, key);
    }
}

/* ---- the loop ---- */

/* A key is handled at once. The daemon is polled at the end of each interval, and not more often
 * because of keys. */
static void run_loop(struct top *top, struct client *client, int64_t interval_us)
{
    int64_t next_us = clock_monotonic_us() + interval_us;
    for (;;) {
        top_draw(top);
        int64_t left_us = next_us - clock_monotonic_us();
        int key = left_us > 0 ? screen_wait_key(top->screen, (int)(left_us / MS_US) + 1) : KEY_NONE;
        if (key == KEY_CLOSED || (key != KEY_NONE && !on_key(top, client, key)))
            return;
        if (clock_monotonic_us() >= next_us) {
            poll_daemon(top, client);
            if (top->mode == TOP_PAGE)
                poll_page(top, client);
            next_us = clock_monotonic_us() + interval_us;
        }
    }
}

/* The first answer comes before the screen is set up, so an unreachable daemon is an ordinary
 * message. */
static int start_display(struct top *top, struct client *client, int64_t interval_us)
{
    struct fault fault = {0};
    fetch_past(top, client, interval_us);
    poll_daemon(top, client);
    if (top->is_cut_off) {
        print_error("%s", top->message);
        return EXIT_UNREACHABLE;
    }
    if (screen_open(&fault, &top->screen) < 0) {
        print_error("top: %s: use `colloc gpus` and `colloc queue` instead", fault.text);
        return EXIT_USAGE;
    }
    run_loop(top, client, interval_us);
    screen_close(top->screen);
    return EXIT_OK;
}

static int run(const struct invocation *invocation)
{
    const struct option_value *interval = &invocation->values[TOP_INTERVAL];
    int64_t interval_us = option_number_or(interval, INTERVAL_DEFAULT_US);
    struct top top = {0};
    CLEANUP(cleanup_client_close) struct client *client = NULL;
    if (invocation->common[COMMON_JSON].number) {
        print_error("top: --json is not supported: use `colloc gpus --json` and `colloc queue "
                    "--json`");
        return EXIT_USAGE;
    }
    int code = session_open(invocation, &client);
    if (code != EXIT_OK)
        return code;
    code = start_display(&top, client, interval_us);
    top_fini(&top);
    return code;
}

const struct command command_top = {
    .name = "top",
    .usage = "[OPTION...]",
    .summary = "watch the GPUs and tasks on a full screen",
    .description = "Shows for each GPU its memory, its SMACT (the fraction of streaming "
                   "multiprocessors that were active) now and in the recent past, one column "
                   "for each sample, and its power; below the GPUs, the waiting and running "
                   "tasks. An unknown value is \"-\", and \"·\" in the past.\n\n"
                   "Keys: up and down (or k and j), page up and down, home and end select a "
                   "task; s sorts by queue, time, memory or user; / filters by name, user, "
                   "state or id, until escape; c cancels the selected task if it is yours, "
                   "after a confirmation; enter opens a task's page, with its attempts and its "
                   "metrics over time, until escape; q quits.",
    COMMAND_OPTIONS(options),
    .common_without = WITHOUT_JSON,
    .run = run,
};
