/* SPDX-License-Identifier: Apache-2.0 */
/* Task files of any bytes: a description within the options' bounds, or a fault with words. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "taskfile/plain_text.h"
#include "taskfile/taskfile.h"

static void require(int holds)
{
    if (!holds)
        abort();
}

static void check_value(const struct option_spec *spec, const struct option_value *value)
{
    if (spec->kind == OPTION_TEXT || spec->kind == OPTION_CHOICE || spec->kind == OPTION_FILE)
        require(value->text && value->text[0] && is_plain_text(span_of(value->text)));
    else if (spec->kind == OPTION_SHARE)
        require(value->number >= 0 && value->number <= 1000000);
    else if (spec->kind != OPTION_FLAG)
        require(value->number >= spec->min && value->number <= spec->max);
}

static void parse_as(const char *name, const char *text, size_t size)
{
    struct task_description task = {0};
    struct fault fault = {0};
    int r = taskfile_parse(name, text, size, &fault, &task);
    require(r < 0 ? strstr(fault.text, name) != NULL
                  : task.script && is_plain_text(span_of(task.script)));
    for (size_t i = 0; i < task_option_count; i++)
        if (task.values[i].set)
            check_value(&task_options[i], &task.values[i]);
    task_description_fini(&task);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    if (!text)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    parse_as("fuzz.sh", text, size);
    parse_as("fuzz.rad", text, size);
    free(text);
    return 0;
}
