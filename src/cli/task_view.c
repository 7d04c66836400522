/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How members of a TASK object (docs/protocol.md) are shown, so that all commands show them alike:
 *
 *     "exec_s": 184.2            3:04
 *     "need_mib": 11673.6        11.4 GiB
 *     "energy_j": 412000         114.4 Wh
 *     "gpus": [0, 2]             0,2
 *     "reason": "Resources"      (Resources) GPU 0: 3.1 GiB short
 *
 * A member that is null or missing is "-": an unknown value is never shown as 0.
 */
#include "cli/task_view.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/units.h"

#define JOULES_PER_WH 3600.0

/* Converts a number times `unit` to int64, for base/units.h. Returns false if it is no number. */
static bool scale_number(const json_t *number, double unit, int64_t *ret)
{
    double value = json_number_value(number) * unit;
    if (!json_is_number(number) || !(value > -9e18 && value < 9e18))
        return false;
    *ret = (int64_t)value;
    return true;
}

const char *scalar_text(const json_t *value, char cell[CELL_SIZE])
{
    if (json_is_string(value))
        return json_string_value(value);
    if (json_is_boolean(value))
        return json_is_true(value) ? "yes" : "no";
    if (!json_is_number(value))
        return "-";
    snprintf(cell, CELL_SIZE, "%.10g", json_number_value(value));
    return cell;
}

const char *seconds_text(const json_t *seconds, char cell[CELL_SIZE])
{
    int64_t us;
    return scale_number(seconds, (double)SECOND_US, &us) ? format_elapsed(us, cell, CELL_SIZE)
                                                         : "-";
}

const char *mib_text(const json_t *mib, char cell[CELL_SIZE])
{
    int64_t bytes;
    return scale_number(mib, (double)MIB, &bytes) ? format_size(bytes, cell, CELL_SIZE) : "-";
}

const char *moment_text(const json_t *moment, char cell[CELL_SIZE])
{
    int64_t seconds;
    struct tm local;
    if (!scale_number(moment, 1, &seconds) || !localtime_r(&(time_t){seconds}, &local))
        return "-";
    strftime(cell, CELL_SIZE, "%Y-%m-%d %H:%M:%S", &local);
    return cell;
}

const char *joules_text(const json_t *joules, char cell[CELL_SIZE])
{
    double value = json_number_value(joules);
    if (!json_is_number(joules))
        return "-";
    if (value < 10 * JOULES_PER_WH)
        snprintf(cell, CELL_SIZE, "%.2f Wh", value / JOULES_PER_WH);
    else if (value < 1000 * JOULES_PER_WH)
        snprintf(cell, CELL_SIZE, "%.1f Wh", value / JOULES_PER_WH);
    else
        snprintf(cell, CELL_SIZE, "%.2f kWh", value / (1000 * JOULES_PER_WH));
    return cell;
}

const char *rate_text(const json_t *rate, char cell[CELL_SIZE])
{
    if (!json_is_number(rate))
        return "-";
    double value = json_number_value(rate);
    snprintf(cell, CELL_SIZE, "%.*f", value < 10 ? 2 : value < 100 ? 1 : 0, value);
    return cell;
}

const char *fraction_text(const json_t *fraction, char cell[CELL_SIZE])
{
    if (!json_is_number(fraction))
        return "-";
    snprintf(cell, CELL_SIZE, "%.0f %%", json_number_value(fraction) * 100);
    return cell;
}

/* Numbers and names, comma-separated, and cut where the cell ends. */
const char *list_text(const json_t *array, char cell[CELL_SIZE])
{
    size_t i, used = 0;
    json_t *item;
    cell[0] = '\0';
    json_array_foreach(array, i, item) {
        const char *comma = i ? "," : "";
        if (json_is_string(item))
            used += (size_t)snprintf(
                cell + used, CELL_SIZE - used, "%s%s", comma, json_string_value(item));
        else
            used += (size_t)snprintf(
                cell + used, CELL_SIZE - used, "%s%.0f", comma, json_number_value(item));
        if (used >= CELL_SIZE)
            break;
    }
    return cell[0] ? cell : "-";
}

const char *task_gpus_text(const json_t *task, char cell[CELL_SIZE])
{
    if (member_number(task, "gpus_requested", 1) < 1)
        return "no GPU";
    return list_text(json_object_get(task, "gpus"), cell);
}

const json_t *task_gpus(const json_t *task)
{
    const json_t *gpus = json_object_get(task, "gpus"),
                 *attempts = json_object_get(task, "attempts");
    size_t count = json_array_size(attempts);
    if (json_array_size(gpus) || count == 0)
        return gpus;
    return json_object_get(json_array_get(attempts, count - 1), "gpus");
}

bool task_has_ended(const json_t *task)
{
    static const char *const live[] = {"PENDING", "RUNNING", "SUSPENDED", "PAUSED", "COMPLETING"};
    for (size_t i = 0; i < ARRAY_SIZE(live); i++)
        if (strcmp(member_text(task, "state", ""), live[i]) == 0)
            return false;
    return true;
}

const char *task_colour(const json_t *task)
{
    const char *state = member_text(task, "state", "");
    if (strcmp(state, "RUNNING") == 0 || strcmp(state, "COMPLETED") == 0)
        return "green";
    if (!task_has_ended(task))
        return "yellow";
    return strcmp(state, "CANCELLED") == 0 ? NULL : "red";
}

char *task_place_text(const json_t *task, bool with_words)
{
    char *text, cell[CELL_SIZE];
    const char *reason = member_text(task, "reason", "None"),
               *words = member_text(task, "reason_text", "");
    bool has_gpus = json_array_size(json_object_get(task, "gpus")) > 0;
    bool has_reason = strcmp(reason, "None") != 0 && !has_gpus;
    int n;
    if (!has_reason && strcmp(member_text(task, "state", ""), "PENDING") != 0)
        n = asprintf(&text, "%s", task_gpus_text(task, cell));
    else if (with_words && *words)
        n = asprintf(&text, "(%s) %s", reason, words);
    else
        n = asprintf(&text, "(%s)", reason);
    return n < 0 ? NULL : text;
}

const char *attempt_text(const json_t *attempt, char *text, size_t size)
{
    char gpus[CELL_SIZE], begin[CELL_SIZE], end[CELL_SIZE];
    const char *reason = member_text(attempt, "reason", NULL);
    bool ended = json_is_number(json_object_get(attempt, "ended_at"));
    bool failed = reason && strcmp(reason, "None") != 0;
    const json_t *list = json_object_get(attempt, "gpus");
    const char *where = json_array_size(list) ? list_text(list, gpus) : "";
    int n = snprintf(text, size, "%s%s, %s to %s", *where ? "GPU " : "no GPU", where,
        moment_text(json_object_get(attempt, "started_at"), begin),
        ended ? moment_text(json_object_get(attempt, "ended_at"), end) : "now");
    if (failed && n > 0 && (size_t)n < size)
        snprintf(text + n, size - (size_t)n, ": %s", reason);
    return text;
}
