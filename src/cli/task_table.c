/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The columns of `colloc queue` and `colloc history`. In a table a value has the form that people
 * read, "1:35"; in CSV it is the member of the TASK object, 95.2, under the member's key.
 */
#include "cli/task_table.h"

#include <stdlib.h>
#include <string.h>

#include "cli/print.h"
#include "cli/table.h"

/* ---- the table ---- */

int task_table_columns(const char *chosen, const char *usual, struct fault *fault,
    struct task_name ret_names[TASK_NAMES_MAX])
{
    int count = task_names_parse(chosen ? chosen : usual, fault, ret_names);
    for (int i = 0; chosen && i < count; i++)
        ret_names[i].flags &= ~(TABLE_WIDE | TABLE_WIDEST);
    return count;
}

/* A name writes to a stream; here the stream is the text of a cell. */
static void add_cell(struct table *table, const struct task_name *name, const json_t *task)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return;
    task_name_write(name, task, out);
    fclose(out);
    bool is_state = strcmp(name->header, "STATE") == 0;
    table_cell(table, is_state ? task_colour(task) : NULL, "%s", text ? text : "");
    free(text);
}

void task_table_print(
    const struct task_name *names, int count, const json_t *tasks, const char *none)
{
    struct table_column columns[TASK_NAMES_MAX];
    for (int i = 0; i < count; i++) {
        columns[i] = (struct table_column){names[i].header, names[i].flags};
        if (i + 1 < count && columns[i].flags & (TABLE_REST | TABLE_BELOW))
            columns[i].flags = TABLE_CUT;
    }
    struct table *table = table_create(columns, (size_t)count);
    size_t k;
    json_t *task;
    json_array_foreach(tasks, k, task) {
        table_row(table);
        for (int i = 0; i < count; i++)
            add_cell(table, &names[i], task);
    }
    table_print(table, none);
    table_destroy(table);
}

/* ---- CSV ---- */

/* A value made of several members has the text of the table, and the name of its column. */
static bool is_member(const struct task_name *name)
{
    return name->form->format;
}

static void print_csv_text(const struct task_name *name, const json_t *task)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return;
    task_name_write(name, task, out);
    fclose(out);
    json_t *value = text && strcmp(text, "-") != 0 ? json_string(text) : NULL;
    print_csv_cell(value);
    json_decref(value);
    free(text);
}

void task_table_print_csv(const struct task_name *names, int count, const json_t *tasks)
{
    size_t k;
    json_t *task;
    for (int i = 0; i < count; i++)
        printf("%s%s", i ? "," : "", is_member(&names[i]) ? names[i].field->key : names[i].name);
    putchar('\n');
    json_array_foreach(tasks, k, task) {
        for (int i = 0; i < count; i++) {
            if (i)
                putchar(',');
            if (is_member(&names[i]))
                print_csv_cell(json_object_get(task, names[i].field->key));
            else
                print_csv_text(&names[i], task);
        }
        putchar('\n');
    }
}
