/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A value in the form of a program:
 *
 *     "exec_s": 95         RUN 1:35 (colloc)     TIME 1:35 (squeue)     Elapsed 00:01:35 (sacct)
 *
 * A form says only how a known value is written. What stands for an unknown one is in the table of
 * task_fields.c, since each of Slurm's programs has another word for it.
 */
#include "cli/task_forms.h"

#include <grp.h>
#include <limits.h>
#include <math.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/slurm_states.h"
#include "cli/task_words.h"

enum { DAY_S = 86400, HOUR_S = 3600, MINUTE_S = 60 };

/* ---- one member ---- */

const char *short_moment_text(const json_t *value, char cell[CELL_SIZE])
{
    struct tm then, today;
    time_t moment = (time_t)json_number_value(value), now = time(NULL);
    if (!json_is_number(value) || !localtime_r(&moment, &then) || !localtime_r(&now, &today))
        return "-";
    strftime(cell, CELL_SIZE, then.tm_year == today.tm_year ? "%m-%d %H:%M" : "%Y-%m-%d", &then);
    return cell;
}

const char *slurm_text(const json_t *value, char cell[CELL_SIZE])
{
    (void)cell;
    return json_string_value(value);
}

const char *slurm_number_text(const json_t *value, char cell[CELL_SIZE])
{
    snprintf(cell, CELL_SIZE, "%.0f", json_number_value(value));
    return json_is_number(value) ? cell : NULL;
}

const char *slurm_moment_text(const json_t *value, char cell[CELL_SIZE])
{
    time_t seconds = (time_t)json_number_value(value);
    struct tm parts;
    bool is_known = json_is_number(value) && localtime_r(&seconds, &parts) &&
                    strftime(cell, CELL_SIZE, "%Y-%m-%dT%H:%M:%S", &parts) > 0;
    return is_known ? cell : NULL;
}

const char *slurm_time_text(const json_t *value, char cell[CELL_SIZE])
{
    long long s = (long long)json_number_value(value);
    if (s >= DAY_S)
        snprintf(cell, CELL_SIZE, "%lld-%02lld:%02lld:%02lld", s / DAY_S, s % DAY_S / HOUR_S,
            s % HOUR_S / MINUTE_S, s % MINUTE_S);
    else if (s >= HOUR_S)
        snprintf(
            cell, CELL_SIZE, "%lld:%02lld:%02lld", s / HOUR_S, s % HOUR_S / MINUTE_S, s % MINUTE_S);
    else
        snprintf(cell, CELL_SIZE, "%lld:%02lld", s / MINUTE_S, s % MINUTE_S);
    return json_is_number(value) ? cell : NULL;
}

const char *slurm_elapsed_text(const json_t *value, char cell[CELL_SIZE])
{
    long long s = (long long)json_number_value(value);
    int n = s >= DAY_S ? snprintf(cell, CELL_SIZE, "%lld-", s / DAY_S) : 0;
    snprintf(cell + n, (size_t)(CELL_SIZE - n), "%02lld:%02lld:%02lld", s % DAY_S / HOUR_S,
        s % HOUR_S / MINUTE_S, s % MINUTE_S);
    return json_is_number(value) ? cell : NULL;
}

const char *slurm_minutes_text(const json_t *value, char cell[CELL_SIZE])
{
    snprintf(cell, CELL_SIZE, "%.0f", json_number_value(value) / MINUTE_S);
    return json_is_number(value) ? cell : NULL;
}

const char *slurm_list_text(const json_t *value, char cell[CELL_SIZE])
{
    return json_array_size(value) ? list_text(value, cell) : NULL;
}

const char *slurm_priority_text(const json_t *value, char cell[CELL_SIZE])
{
    static const char *const names[] = {"low", "normal", "high", "urgent"};
    const char *name = json_is_string(value) ? json_string_value(value) : "normal";
    int i = 0;
    while (i < 3 && strcmp(names[i], name) != 0)
        i++;
    snprintf(cell, CELL_SIZE, "%d", i + 1);
    return cell;
}

/* ---- ids ---- */

static bool write_step_of_id(const json_t *task, FILE *out)
{
    const char *step = member_text(task, STEP_MEMBER, NULL);
    if (step)
        fprintf(out, ".%s", step);
    return true;
}

bool write_task_id(const json_t *task, FILE *out)
{
    char cell[CELL_SIZE];
    fputs(task_id_text(task, cell, sizeof cell), out);
    return write_step_of_id(task, out);
}

bool write_raw_id(const json_t *task, FILE *out)
{
    fprintf(out, "%.0f", order_of_id(task));
    return write_step_of_id(task, out);
}

bool write_array_id(const json_t *task, FILE *out)
{
    double array = member_number(task, "array_id", 0);
    fprintf(out, "%.0f", array > 0 ? array : order_of_id(task));
    return true;
}

double order_of_id(const json_t *task)
{
    return member_number(task, "id", 0);
}

/* ---- times ---- */

double order_of_run(const json_t *task)
{
    return slurm_has_started(task) ? member_number(task, "exec_s", 0) : 0;
}

double order_of_limit(const json_t *task)
{
    return member_number(task, "time_limit_s", HUGE_VAL);
}

double order_of_time_left(const json_t *task)
{
    return order_of_limit(task) - order_of_run(task);
}

bool write_time_left(const json_t *task, FILE *out)
{
    char cell[CELL_SIZE];
    double left = order_of_time_left(task);
    if (!isfinite(left))
        return false;
    json_t *number = json_real(left > 0 ? left : 0);
    fputs(slurm_time_text(number, cell), out);
    json_decref(number);
    return true;
}

bool write_time(const json_t *task, FILE *out)
{
    char cell[CELL_SIZE];
    bool has_started = !json_is_null(json_object_get(task, "started_at"));
    fputs(seconds_text(json_object_get(task, has_started ? "exec_s" : "wait_s"), cell), out);
    return true;
}

/* When the task is expected to start, or the moment before which it does not. */
bool write_start(const json_t *task, FILE *out)
{
    char cell[CELL_SIZE];
    const json_t *start = json_object_get(task, START_MEMBER),
                 *expected = json_object_get(start, "expected_start"),
                 *earliest = json_object_get(start, "earliest_start");
    bool is_earliest = !json_is_number(expected) && json_is_number(earliest);
    fprintf(out, "%s%s", is_earliest ? "after " : "",
        moment_text(is_earliest ? earliest : expected, cell));
    return true;
}

/* ---- the user ---- */

static gid_t group_of(const json_t *task)
{
    const struct passwd *user = getpwuid((uid_t)member_number(task, "uid", 0));
    return user ? user->pw_gid : (gid_t)-1;
}

bool write_gid(const json_t *task, FILE *out)
{
    fprintf(out, "%u", group_of(task));
    return true;
}

bool write_group(const json_t *task, FILE *out)
{
    const struct group *group = getgrgid(group_of(task));
    if (!group)
        return write_gid(task, out);
    fputs(group->gr_name, out);
    return true;
}

/* ---- state and end ---- */

bool write_state(const json_t *task, FILE *out)
{
    fputs(slurm_state_long(task), out);
    return true;
}

bool write_state_letters(const json_t *task, FILE *out)
{
    fputs(slurm_state_short(task), out);
    return true;
}

/* sacct names the user that cancelled a job: tools look for the word before the blank. */
bool write_account_state(const json_t *task, FILE *out)
{
    const char *by = member_text(task, "cancelled_by", NULL);
    const struct passwd *user = by ? getpwnam(by) : NULL;
    const char *state = slurm_state_account(task);
    fputs(state, out);
    if (user && strcmp(state, "CANCELLED") == 0)
        fprintf(out, " by %u", user->pw_uid);
    return true;
}

bool write_exit(const json_t *task, FILE *out)
{
    if (!json_is_number(json_object_get(task, "exit_code")) &&
        !json_is_number(json_object_get(task, "signal")))
        return false;
    fprintf(
        out, "%.0f:%.0f", member_number(task, "exit_code", 0), member_number(task, "signal", 0));
    return true;
}

/* "2xOOM: " for GPU memory crashes, which a completed task may have had, too; then the reason. */
bool write_reason(const json_t *task, FILE *out)
{
    const char *word = member_text(task, "reason", "-"),
               *words = member_text(task, "reason_text", "");
    double crashes = member_number(task, "oom_count", 0);
    bool is_none = strcmp(word, "None") == 0 && !*words;
    if (crashes > 0)
        fprintf(out, "%.0fxOOM%s", crashes, is_none ? "" : ": ");
    if (!is_none)
        fputs(*words ? words : word, out);
    return true;
}

/* ---- GPUs and host ---- */

bool write_gpus(const json_t *task, FILE *out)
{
    char cell[CELL_SIZE];
    bool has_none = member_number(task, "gpus_requested", 1) < 1;
    fputs(has_none ? "no GPU" : list_text(task_gpus(task), cell), out);
    return true;
}

static bool write_place_text(const json_t *task, bool with_words, FILE *out)
{
    char *text = task_place_text(task, with_words);
    fputs(text ? text : "", out);
    free(text);
    return true;
}

bool write_place(const json_t *task, FILE *out)
{
    return write_place_text(task, false, out);
}

bool write_long_place(const json_t *task, FILE *out)
{
    return write_place_text(task, true, out);
}

bool write_host(const json_t *task, FILE *out)
{
    static char name[HOST_NAME_MAX + 1]; /* of this process's machine: it does not change */
    (void)task;
    bool is_known = *name || gethostname(name, sizeof name - 1) == 0;
    fputs(is_known ? name : "localhost", out);
    return true;
}

bool write_host_or_reason(const json_t *task, FILE *out)
{
    if (slurm_has_started(task))
        return write_host(task, out);
    fprintf(out, "(%s)", member_text(task, "reason", "None"));
    return true;
}

bool write_gres(const json_t *task, FILE *out)
{
    double gpus = member_number(task, "gpus_requested", 1);
    if (gpus > 0)
        fprintf(out, "gres:gpu:%.0f", gpus);
    return gpus > 0;
}

bool write_resources(const json_t *task, FILE *out)
{
    double gpus = member_number(task, "gpus_requested", 1);
    fprintf(out, "billing=1,cpu=%.0f", member_number(task, "cpus", 1));
    if (gpus > 0)
        fprintf(out, ",gres/gpu=%.0f", gpus);
    fputs(",node=1", out);
    return true;
}
