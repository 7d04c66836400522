/* SPDX-License-Identifier: Apache-2.0 */
/* Prints checks: what `colloc doctor` and `colloc slurm check` found, a row each. */
#include "cli/check_table.h"

#include <string.h>

#include "base/array.h"
#include "cli/print.h"
#include "cli/table.h"

static const struct table_column columns[] = {
    {"CHECK", 0},
    {"RESULT", 0},
    {"DETAIL", TABLE_WRAP},
};

static json_t *checks_json(const struct doctor_check *checks, size_t count)
{
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(
            list, json_pack("{s:s, s:b, s:s, s:s}", "name", checks[i].name, "ok", checks[i].is_ok,
                      "detail", checks[i].detail, "advice", checks[i].advice));
    return json_pack("{s:o}", "checks", list);
}

/* Advice that an earlier check gave is named by that, so that one cause is read once. */
static void add_detail(struct table *table, const struct doctor_check *checks, size_t i)
{
    const char *advice = checks[i].advice;
    size_t first = 0;
    while (strcmp(checks[first].advice, advice) != 0)
        first++;
    if (!*advice)
        table_cell(table, NULL, "%s", checks[i].detail);
    else if (first < i)
        table_cell(table, NULL, "%s. Advice: as for %s", checks[i].detail, checks[first].name);
    else
        table_cell(table, NULL, "%s. Advice: %s", checks[i].detail, advice);
}

static void print_rows(const struct doctor_check *checks, size_t count)
{
    struct table *table = table_create(columns, ARRAY_SIZE(columns));
    for (size_t i = 0; table && i < count; i++) {
        table_row(table);
        table_cell(table, NULL, "%s", checks[i].name);
        table_cell(table, checks[i].is_ok ? "green" : "red", checks[i].is_ok ? "ok" : "failed");
        add_detail(table, checks, i);
    }
    if (table)
        table_print(table, "");
    table_destroy(table);
}

bool check_table_print(const struct doctor_check *checks, size_t count, bool as_json)
{
    bool is_ok = true;
    for (size_t i = 0; i < count; i++)
        is_ok &= checks[i].is_ok;
    if (as_json) {
        json_t *object = checks_json(checks, count);
        print_json(object);
        json_decref(object);
    } else {
        print_rows(checks, count);
    }
    return is_ok;
}
