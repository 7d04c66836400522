/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `colloc reserve`: reserves GPUs for users, lists the reservations, and cancels one.
 *
 *     colloc reserve --gpus=2 --from=16:00 --for=2h --users=ada,bob
 *     colloc reserve                       ID  GPUS  FROM   UNTIL  USERS
 *     colloc reserve --cancel=3
 *
 * A reservation is of a number of GPUs; src/core/ask/set_aside.c decides which are kept free.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "cli/print.h"
#include "cli/reply_list.h"
#include "cli/session.h"
#include "cli/session_once.h"
#include "cli/task_view.h"

enum { RESERVE_GPUS, RESERVE_FROM, RESERVE_FOR, RESERVE_USERS, RESERVE_CANCEL };

static const struct option_spec options[] = {
    [RESERVE_GPUS] = OPTION(
        "gpus", INTEGER, "N", .letter = 'G', .min = 1, .max = 1024, .help = "how many GPUs"),
    [RESERVE_FROM] = OPTION("from", MOMENT, "MOMENT", .min = 0,
        .max = INT64_C(4102444800) * SECOND_US,
        .help = "when it begins: 16:00, now+2h, tomorrow, 2026-11-30T08:00; default: now"),
    [RESERVE_FOR] = OPTION("for", DURATION, "TIME", .min = SECOND_US,
        .max = 3650 * INT64_C(86400) * SECOND_US,
        .help = "how long it lasts, such as 2h or 1-12:00:00"),
    [RESERVE_USERS] = OPTION("users", TEXT, "LIST", .letter = 'u',
        .help = "users whose tasks may use the GPUs; names or numbers, comma-separated"),
    [RESERVE_CANCEL] = OPTION(
        "cancel", INTEGER, "ID", .min = 1, .max = INT64_MAX, .help = "cancel this reservation"),
};

static const struct table_column columns[] = {
    {"ID", TABLE_RIGHT}, {"GPUS", TABLE_RIGHT}, {"FROM", 0}, {"UNTIL", 0}, {"USERS", TABLE_REST}};

static void add_row(struct table *table, const json_t *reservation)
{
    char cell[CELL_SIZE];
    table_row(table);
    table_cell(table, NULL, "%.0f", member_number(reservation, "id", 0));
    table_cell(table, NULL, "%.0f", member_number(reservation, "gpus", 0));
    table_cell(table, NULL, "%s", moment_text(json_object_get(reservation, "from"), cell));
    table_cell(table, NULL, "%s", moment_text(json_object_get(reservation, "until"), cell));
    table_cell(table, NULL, "%s", list_text(json_object_get(reservation, "users"), cell));
}

static const struct reply_list list = {.path = "/v1/reservations",
    .member = "reservations",
    REPLY_LIST_COLUMNS(columns),
    .add_row = add_row,
    .none = "No GPUs are reserved."};

/* `body`: released. */
static int post_reservation(
    const struct invocation *invocation, const char *path, json_t *body, const char *what)
{
    json_t *reply;
    int code = session_post(invocation, path, body, &reply);
    if (code != EXIT_OK)
        return code;
    if (invocation->common[COMMON_JSON].number)
        print_json(reply);
    else
        printf("Reservation %.0f %s\n",
            member_number(json_object_get(reply, "reservation"), "id", 0), what);
    json_decref(reply);
    return EXIT_OK;
}

/* Returns the user ids; NULL after a message. */
static json_t *read_users(const char *text)
{
    json_t *uids = json_array();
    for (const char *at = text; *at;) {
        struct span word = {at, strcspn(at, ",")};
        char name[256] = "";
        int64_t uid;
        bool fits = span_copy(span_trim(word), name, sizeof name);
        if (!fits || find_user(name, &uid) < 0) {
            print_error("reserve: there is no user '%s'", name);
            json_decref(uids);
            return NULL;
        }
        json_array_append_new(uids, json_integer(uid));
        at += word.size + (at[word.size] == ',');
    }
    return uids;
}

/* From now on, unless --from says when. The daemon checks whether that many GPUs can be
 * reserved. */
static int reserve_gpus(const struct invocation *invocation)
{
    const struct option_value *values = invocation->values;
    if (!values[RESERVE_GPUS].set || !values[RESERVE_FOR].set || !values[RESERVE_USERS].set) {
        print_error("reserve: --gpus, --for and --users are required");
        return EXIT_USAGE;
    }
    json_t *uids = read_users(values[RESERVE_USERS].text);
    if (!uids)
        return EXIT_USAGE;
    double from_s = (double)(values[RESERVE_FROM].set ? values[RESERVE_FROM].number
                                                      : clock_wall_us()) /
                    1e6;
    json_t *body = json_pack("{s:I, s:f, s:f, s:o}", "gpus",
        (json_int_t)values[RESERVE_GPUS].number, "from", from_s, "until",
        from_s + (double)values[RESERVE_FOR].number / 1e6, "uids", uids);
    return post_reservation(invocation, "/v1/reservations", body, "is made");
}

static int run(const struct invocation *invocation)
{
    const struct option_value *values = invocation->values;
    char path[64];
    if (values[RESERVE_CANCEL].set) {
        snprintf(path, sizeof path, "/v1/reservations/%" PRId64 "/cancel",
            values[RESERVE_CANCEL].number);
        return post_reservation(invocation, path, NULL, "is cancelled");
    }
    bool wants_new = values[RESERVE_GPUS].set || values[RESERVE_FOR].set ||
                     values[RESERVE_USERS].set || values[RESERVE_FROM].set;
    return wants_new ? reserve_gpus(invocation) : reply_list_show(invocation, &list);
}

const struct command command_reserve = {
    .name = "reserve",
    .usage = "[--gpus=N --for=TIME --users=LIST [--from=MOMENT] | --cancel=ID]",
    .summary = "reserve GPUs for users, list reservations, cancel one",
    .description =
        "Without options it lists the reservations. Root and operators make and cancel them. "
        "Tasks of other users start on reserved GPUs only if they end before the reservation "
        "begins, by --time or --expect; a task of unknown time does not. --expect is not enforced: "
        "a task that takes longer continues beside the reservation. While it lasts, tasks of its "
        "users are placed first, on as many GPUs. No task is ended for a reservation.",
    COMMAND_OPTIONS(options),
    .operand = OPERAND_NONE,
    .min_operands = 0,
    .max_operands = 0,
    .run = run,
};
