/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `colloc share`: the standing of each user (GET /v1/share), and which of two tasks comes first,
 * and why.
 *
 *     RANK  USER  PROJECT  SHARES   USAGE  GPUS  RUNNING  PENDING
 *        1  bob   vision        1   2.1 h     0        0        3
 *        2  ada   vision        2  14.8 h     2        2        9
 *
 * Users of one rank have the same claim. docs/fair-share.md explains usage and rank.
 */
#include <stdio.h>
#include <string.h>

#include "api/client.h"
#include "base/array.h"
#include "base/json_member.h"
#include "cli/hours.h"
#include "cli/print.h"
#include "cli/session.h"
#include "cli/table.h"
#include "cli/task_words.h"

/* WINDOW, the last one, is only where the daemon has a window. */
static const struct table_column columns[] = {
    {"RANK", TABLE_RIGHT},
    {"USER", TABLE_CUT},
    {"PROJECT", TABLE_CUT},
    {"SHARES", TABLE_RIGHT},
    {"USAGE", TABLE_RIGHT},
    {"GPUS", TABLE_RIGHT},
    {"RUNNING", TABLE_RIGHT},
    {"PENDING", TABLE_RIGHT},
    {"WINDOW", TABLE_RIGHT},
};

static void add_user(struct table *table, const json_t *user, bool has_window)
{
    table_row(table);
    table_cell(table, NULL, "%.0f", member_number(user, "fair_rank", 0));
    table_cell(table, NULL, "%s", member_text(user, "user", "?"));
    table_cell(table, NULL, "%s", member_text(user, "project", "?"));
    table_cell(table, NULL, "%.0f", member_number(user, "shares", 0));
    hours_cell(table, member_number(user, "usage", 0));
    table_cell(table, NULL, "%.0f", member_number(user, "gpus", 0));
    table_cell(table, NULL, "%.0f", member_number(user, "running", 0));
    table_cell(table, NULL, "%.0f", member_number(user, "pending", 0));
    if (has_window)
        hours_cell(table, member_number(user, "window_usage", 0));
}

/* The users of one rank, in the order of the answer. Returns the next rank; 0: there is none. */
static int add_rank(struct table *table, const json_t *users, int rank, bool has_window)
{
    size_t i;
    json_t *user;
    int next = 0;
    json_array_foreach(users, i, user) {
        int each = (int)member_number(user, "fair_rank", 0);
        if (each == rank)
            add_user(table, user, has_window);
        else if (each > rank && (next == 0 || each < next))
            next = each;
    }
    return next;
}

static void print_users(const json_t *reply)
{
    const json_t *users = json_object_get(reply, "users");
    bool has_window = member_number(reply, "window_s", 0) > 0;
    struct table *table = table_create(columns, ARRAY_SIZE(columns) - !has_window);
    int rank = 0;
    do
        rank = add_rank(table, users, rank, has_window);
    while (rank);
    table_print(table, "No user has tasks or has used a GPU.");
    table_destroy(table);
    if (strcmp(member_text(reply, "order", "fair"), "fifo") == 0)
        print_error("the daemon orders tasks by age (setting order: fifo): ranks decide nothing");
}

/* The reason why one task is before another needs both of them. */
static int make_path(
    const struct invocation *invocation, struct client *client, char *path, size_t size)
{
    char pair[64];
    int64_t ids[2];
    if (invocation->operand_count == 0)
        return EXIT_OK;
    if (invocation->operand_count == 1) {
        print_error("share: give two tasks, to see which comes first and why; `colloc show %.20s` "
                    "says why one waits",
            invocation->operands[0]);
        return EXIT_USAGE;
    }
    for (int i = 0; i < 2; i++) {
        int code = task_word_find(client, invocation->operands[i], &ids[i]);
        if (code != EXIT_OK)
            return code;
    }
    snprintf(pair, sizeof pair, "%lld,%lld", (long long)ids[0], (long long)ids[1]);
    query_add(path, size, "tasks", pair);
    return EXIT_OK;
}

static int print_share(const struct invocation *invocation, struct client *client)
{
    char path[128] = "/v1/share";
    json_t *reply;
    int code = make_path(invocation, client, path, sizeof path);
    if (code == EXIT_OK)
        code = session_call(client, "GET", path, NULL, &reply);
    if (code != EXIT_OK)
        return code;
    const char *why = member_text(reply, "why", NULL);
    if (invocation->common[COMMON_JSON].number) {
        print_json(reply);
    } else if (why) {
        print_safe(stdout, why);
        putchar('\n');
    } else {
        print_users(reply);
    }
    json_decref(reply);
    return EXIT_OK;
}

static int run(const struct invocation *invocation)
{
    CLEANUP(cleanup_client_close) struct client *client = NULL;
    int code = session_open(invocation, &client);
    return code == EXIT_OK ? print_share(invocation, client) : code;
}

const struct command command_share = {
    .name = "share",
    .usage = "[OPTION...] [ID ID]",
    .summary = "show whose tasks come first by fair share, and why",
    .description =
        "RANK is the place of a user in the order of the queue: the user with rank 1 "
        "has the smallest usage for its share, and that user's oldest task is next. USAGE "
        "is the GPU time charged, in GPU hours; half of it is forgotten after the "
        "setting usage-half-life. GPUS are those that the user's tasks hold now. "
        "WINDOW is the time charged within the setting gpu-hours-window, if "
        "that is set.\n\n"
        "With two tasks it says which comes first and why.",
    .operand = OPERAND_TASK,
    .max_operands = 2,
    .run = run,
};
