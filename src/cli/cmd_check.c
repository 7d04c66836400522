/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `colloc check`: is an event log damaged or incomplete? Three checks:
 *
 *   1. the rows are unchanged (SQLite's check, checksums, numbers), and none is missing;
 *   2. each event is possible after those before it (they are applied to an empty scheduler, as at
 *      a start of collocd);
 *   3. the tasks' folders beside the log have no task that the log lacks.
 */
#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/units.h"
#include "cli/command.h"
#include "cli/print.h"
#include "core/core.h"
#include "policy/policies.h"
#include "store/store.h"

enum { CHECK_ACCEPT_LOSS };

static const struct option_spec options[] = {
    [CHECK_ACCEPT_LOSS] = FLAG_OPTION("accept-loss",
        .help = "accept that events are missing: end the warning about them and treat their "
                "tasks as forgotten"),
};

struct check {
    struct store *store;
    struct core *core;
    json_t *findings;
    uint64_t last_task;
    long long events;
};

static void add_finding(void *context, const char *finding)
{
    struct check *check = context;
    json_array_append_new(check->findings, json_string(finding ? finding : "?"));
}

__attribute__((format(printf, 2, 3))) static void find(struct check *check, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    add_finding(check, text);
}

/* ---- the events, applied ---- */

/* Applies one event to an empty core, as collocd does at its start. Ended tasks are forgotten at
 * once, so that a log of years takes the memory of its live tasks only. */
static int on_event(void *context, const struct event *event, int64_t wall_us, const json_t *detail)
{
    struct check *check = context;
    check->events++;
    check->last_task = event->task > check->last_task ? event->task : check->last_task;
    int r = core_apply(check->core, event);
    if (r != 0)
        find(check, "%s of task %llu is not possible after the events before it",
            event_name(event->kind), (unsigned long long)event->task);
    const struct task *task = core_task(check->core, event->task);
    if (task && task_state_is_done(task->state)) {
        if (store_is_live(check->store, task->id))
            find(check, "task %llu has ended, but is listed as live", (unsigned long long)task->id);
        core_forget(check->core, task->id);
    }
    return 0;
}

static void check_live(struct check *check)
{
    for (const struct task *task = core_next_task(check->core, 0); task;
         task = core_next_task(check->core, task->id))
        if (!store_is_live(check->store, task->id))
            find(check, "task %llu has not ended, but is not listed as live",
                (unsigned long long)task->id);
}

static int check_events(struct check *check, struct fault *fault)
{
    const struct core_settings settings = core_settings_default();
    check->core = core_create(&settings);
    if (!check->core)
        return fault_set(fault, ENOMEM, "out of memory");
    int r = store_all_events(check->store, policy_find, on_event, check, fault);
    if (r == 0)
        check_live(check);
    return r;
}

/* ---- the folders ---- */

/* In a log without tasks, which is a new one, the folders are those of a log that was moved
 * away. */
static void check_folders(struct check *check, const char *database)
{
    char path[4096];
    int64_t id;
    snprintf(path, sizeof path, "%.*s/tasks", (int)(strrchr(database, '/') - database), database);
    DIR *tasks = opendir(path);
    for (const struct dirent *entry; tasks && check->last_task && (entry = readdir(tasks));)
        if (parse_int64(entry->d_name, 1, INT64_MAX, &id) == 0 && (uint64_t)id > check->last_task)
            find(check, "%s/%s: a task's folder, but the log ends at task %llu", path,
                entry->d_name, (unsigned long long)check->last_task);
    if (tasks)
        closedir(tasks);
    for (const struct task *task = core_next_task(check->core, 0); task;
         task = core_next_task(check->core, task->id)) {
        snprintf(path, sizeof path, "%.*s/tasks/%llu", (int)(strrchr(database, '/') - database),
            database, (unsigned long long)task->id);
        if (tasks && task->state == TASK_RUNNING && access(path, F_OK) < 0)
            find(check,
                "task %llu is running, but its folder is missing: collocd would end it "
                "as lost",
                (unsigned long long)task->id);
    }
}

/* ---- the whole ---- */

static int check_missing_events(struct check *check, struct fault *fault)
{
    int64_t missing;
    int r = store_count_missing_events(check->store, fault, &missing);
    if (r == 0 && missing != 0)
        find(check, "%lld event%s missing", (long long)missing, missing == 1 ? " is" : "s are");
    return r;
}

static int check_all(struct check *check, const char *database, struct fault *fault)
{
    int r = store_check_rows(check->store, add_finding, check, fault);
    if (r >= 0 && *store_get_loss(check->store))
        add_finding(check, store_get_loss(check->store));
    if (r == 0)
        r = check_events(check, fault);
    if (r == 0)
        check_folders(check, database);
    core_destroy(check->core);
    return r < 0 ? r : check_missing_events(check, fault);
}

/* With a finding the exit status is 1, for monitoring. */
static int print_findings(const struct invocation *invocation, struct check *check,
    const char *database, const struct store_counts *counts)
{
    size_t i, n = json_array_size(check->findings);
    json_t *finding;
    if (invocation->common[COMMON_JSON].number) {
        json_t *object = json_pack("{s:s, s:b, s:O, s:I, s:I, s:I}", "database", database, "sound",
            n == 0, "findings", check->findings, "events", (json_int_t)counts->events, "live",
            (json_int_t)counts->live, "ended", (json_int_t)counts->ended);
        print_json(object);
        json_decref(object);
        return n ? EXIT_REFUSED : EXIT_OK;
    }
    json_array_foreach(check->findings, i, finding) {
        print_safe(stdout, json_string_value(finding));
        putchar('\n');
    }
    printf("%s: %lld events, %lld live tasks, %lld ended tasks: ", database,
        (long long)counts->events, (long long)counts->live, (long long)counts->ended);
    if (n == 0)
        puts("sound");
    else
        printf("%zu finding%s. Restore a backup of the folder, or continue with what is "
               "left: collocd logs the damaged rows and uses the others; `colloc check "
               "--accept-loss` ends its warning about missing events\n",
            n, n == 1 ? "" : "s");
    return n ? EXIT_REFUSED : EXIT_OK;
}

/* The operand names the database or the state folder; without an operand it is collocd's
 * default. */
static void find_database(const char *operand, char *path, size_t size)
{
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    struct stat status;
    if (operand && (stat(operand, &status) < 0 || !S_ISDIR(status.st_mode)))
        snprintf(path, size, "%s%s", strchr(operand, '/') ? "" : "./", operand);
    else if (operand)
        snprintf(path, size, "%s/colloc.db", operand);
    else if (geteuid() == 0)
        snprintf(path, size, "/var/lib/colloc/colloc.db");
    else if (state && *state == '/')
        snprintf(path, size, "%s/colloc/colloc.db", state);
    else
        snprintf(path, size, "%s/.local/state/colloc/colloc.db", home ? home : "");
}

/* Lost data stays lost. The log notes that an administrator accepts it, which ends collocd's
 * warning at each start. */
static int accept_loss(const char *database)
{
    char folder[4096];
    struct store *store;
    struct fault fault = {0};
    snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(database, '/') - database), database);
    int r = store_open(folder, &fault, &store);
    if (r == 0) {
        r = store_accept_loss(store, &fault);
        store_close(store);
    }
    if (r < 0)
        print_error("%s", fault.text);
    return r < 0 ? EXIT_REFUSED : EXIT_OK;
}

static int run(const struct invocation *invocation)
{
    char database[4096];
    struct check check = {.findings = json_array()};
    struct store_counts counts = {0};
    struct fault fault = {0};
    find_database(invocation->operands[0], database, sizeof database);
    int code = invocation->values[CHECK_ACCEPT_LOSS].number ? accept_loss(database) : EXIT_OK;
    if (code != EXIT_OK) {
        json_decref(check.findings);
        return code;
    }
    int r = store_open_to_check(database, &fault, &check.store);
    if (r == 0) {
        r = check_all(&check, database, &fault);
        if (r == 0)
            r = store_get_counts(check.store, &fault, &counts);
        store_close(check.store);
    }
    if (r == 0)
        code = print_findings(invocation, &check, database, &counts);
    else
        print_error("%s", fault.text);
    json_decref(check.findings);
    return r < 0 ? EXIT_REFUSED : code;
}

const struct command command_check = {
    .name = "check",
    .usage = "[OPTION...] [DATABASE]",
    .summary = "verify an event log while collocd is stopped",
    .description = "DATABASE is a file colloc.db or the state folder that contains it; default: "
                   "that of collocd. Checks the checksum of each row, that no task is missing, "
                   "that each event is possible after the events before it, and that the tasks' "
                   "folders have no task that the log lacks. The database is not changed.\n\n"
                   "The exit status is 0 if the log is sound. Otherwise it is 1, and the output "
                   "says what is wrong and what to do.",
    COMMAND_OPTIONS(options),
    .operand = OPERAND_FILE,
    .max_operands = 1,
    .common_without = WITHOUT_SOCKET,
    .run = run,
};
