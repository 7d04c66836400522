/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `colloc mps`: shows, starts and stops the MPS control daemons that collocd manages.
 *
 * collocd starts and stops them by itself as tasks need them. By hand it is for programs outside of
 * colloc. Only root may do so for another user; the daemon checks that, by the uid of the socket.
 */
#include <stdio.h>
#include <string.h>

#include "base/json_member.h"
#include "cli/print.h"
#include "cli/reply_list.h"
#include "cli/session.h"
#include "cli/session_once.h"

enum { MPS_USER };

static const struct option_spec options[] = {
    [MPS_USER] = OPTION("user", TEXT, "NAME",
        .help = "name or uid of the user whose daemon to start or stop (root only); default: "
                "yourself"),
};

static const struct table_column columns[] = {
    {"USER", 0},
    {"GPUS", 0},
    {"STATE", 0},
    {"PID", TABLE_RIGHT},
    {"TASKS", TABLE_RIGHT},
    {"PIPE DIRECTORY", TABLE_CUT},
};

static void add_daemon(struct table *table, const json_t *daemon)
{
    const char *why = member_text(daemon, "state_text", "");
    double pid = member_number(daemon, "pid", 0);
    table_row(table);
    table_cell(table, NULL, "%s", member_text(daemon, "user", "?"));
    table_cell(table, NULL, "%s", member_text(daemon, "gpu", "whole"));
    table_cell(table, NULL, "%s%s%s", member_text(daemon, "state", "?"), *why ? ": " : "", why);
    if (pid > 0)
        table_cell(table, NULL, "%.0f", pid);
    else
        table_cell(table, NULL, "-");
    table_cell(table, NULL, "%.0f", member_number(daemon, "tasks", 0));
    table_cell(table, NULL, "%s", member_text(daemon, "pipe_directory", "?"));
}

static const struct reply_list list = {.path = "/v1/mps",
    .member = "daemons",
    REPLY_LIST_COLUMNS(columns),
    .add_row = add_daemon,
    .none = "No MPS control daemons."};

/* Returns {} or {"uid": N}; NULL, with a message, for an unknown user. */
static json_t *user_json(const struct invocation *invocation)
{
    const char *name = invocation->values[MPS_USER].text;
    int64_t uid;
    if (!name)
        return json_object();
    if (find_user(name, &uid) < 0) {
        print_error("--user=%s: no such user: give a name or a uid", name);
        return NULL;
    }
    return json_pack("{s:I}", "uid", (json_int_t)uid);
}

/* The daemon answers when the control daemon has started or ended, or says why not. */
static int change_server(const struct invocation *invocation, const char *verb)
{
    char path[32];
    json_t *reply, *body = user_json(invocation);
    if (!body)
        return EXIT_USAGE;
    snprintf(path, sizeof path, "/v1/mps/%s", verb);
    int code = session_post(invocation, path, body, &reply);
    if (code != EXIT_OK)
        return code;
    if (invocation->common[COMMON_JSON].number)
        print_json(reply);
    json_decref(reply);
    return EXIT_OK;
}

static int run(const struct invocation *invocation)
{
    const char *verb = invocation->operand_count ? invocation->operands[0] : "status";
    if (strcmp(verb, "status") == 0)
        return reply_list_show(invocation, &list);
    if (strcmp(verb, "start") == 0 || strcmp(verb, "stop") == 0)
        return change_server(invocation, verb);
    print_error("mps: unknown action %s: give status, start or stop", verb);
    return EXIT_USAGE;
}

const struct command command_mps = {
    .name = "mps",
    .usage = "[OPTION...] [status|start|stop]",
    .summary = "show, start or stop MPS control daemons",
    .description = "Each user whose tasks share GPUs through MPS has one control daemon for "
                   "whole GPUs, and one for each MIG instance. collocd starts it when a task "
                   "needs it and stops it when no task has used it for some time (setting "
                   "mps-linger). status shows all of them.\n\n"
                   "start starts your own for whole GPUs, so that programs outside colloc can "
                   "share GPUs through it: export CUDA_MPS_PIPE_DIRECTORY as status shows it. "
                   "stop stops it, unless a task uses it.",
    .operand = OPERAND_NONE,
    .actions = (const char *const[]){"status", "start", "stop", NULL},
    .max_operands = 1,
    COMMAND_OPTIONS(options),
    .run = run,
};
