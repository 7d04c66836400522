/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decides the form: a "#!" or #COLLOC line means a script, `key: value` lines or eight to twelve
 * lines of the positional form a .rad file, anything else a script.
 */
#include "taskfile/taskfile.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/text.h"
#include "taskfile/command_line.h"
#include "taskfile/forms.h"
#include "taskfile/plain_text.h"
#include "taskfile/slurm_lines.h"

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

bool taskfile_is_script(const char *text, size_t size)
{
    struct span all = {text, size};
    return span_starts(all, "#!") || script_has_directive(all);
}

static int parse_form(const char *name, const char *text, size_t size, struct fault *fault,
    struct task_description *ret_description)
{
    struct span all = {text, size};
    if (span_starts(all, "\x7f"
                         "ELF"))
        return fault_set(fault, EILSEQ,
            "%s: is a program, not a script; run it with: colloc submit -- %s", name, name);
    int r = plain_text_check(name, all, fault);
    if (r < 0)
        return r;
    if (span_trim(all).size == 0)
        return fault_set(fault, EINVAL, "%s: is empty", name);
    if (taskfile_is_script(text, size))
        return script_parse(name, all, ret_description, fault);
    if (rad_keys_detect(all))
        return rad_keys_parse(name, all, ret_description, fault);
    if (rad_lines_detect(all))
        return rad_lines_parse(name, all, ret_description, fault);
    if (ends_with(name, ".rad"))
        return fault_set(fault, EINVAL,
            "%s: is not a .rad file: it has neither `key: value` lines nor the 8 to 12 lines "
            "of the positional form",
            name);
    return script_parse(name, all, ret_description, fault);
}

int taskfile_parse(const char *name, const char *text, size_t size, struct fault *fault,
    struct task_description *ret_description)
{
    int r = parse_form(name, text, size, fault, ret_description);
    return r < 0 ? r : slurm_lines_finish(name, ret_description, fault);
}

static int default_name(struct task_description *description, const char *name, struct fault *fault)
{
    struct option_value *value = &description->values[TASK_NAME];
    return value->set ? 0 : option_set_text(&task_options[TASK_NAME], "name", name, value, fault);
}

static int find_summary(const char *path, struct task_description *description, struct fault *fault)
{
    struct option_value *summary = &description->values[TASK_SUMMARY];
    size_t folder = (size_t)(path_name(path) - path);
    if (!summary->set || folder == 0 || summary->text[0] == '/')
        return 0;
    char *beside;
    if (asprintf(&beside, "%.*s%s", (int)folder, path, summary->text) < 0)
        return fault_set(fault, ENOMEM, "out of memory");
    if (access(beside, F_OK) < 0) {
        free(beside);
        return 0;
    }
    free(summary->text);
    summary->text = beside;
    return 0;
}

int taskfile_read(const char *path, struct fault *fault, struct task_description *ret_description)
{
    bool is_stdin = strcmp(path, "-") == 0;
    const char *name = is_stdin ? "stdin" : path;
    char *text;
    size_t size;
    int r = is_stdin ? file_read_fd(STDIN_FILENO, name, TASKFILE_MAX_BYTES, fault, &text, &size)
                     : file_read(path, TASKFILE_MAX_BYTES, fault, &text, &size);
    if (r < 0)
        return r;
    r = taskfile_parse(name, text, size, fault, ret_description);
    free(text);
    if (r == 0)
        r = default_name(ret_description, path_name(name), fault);
    if (r == 0 && !(ret_description->file = strdup(name)))
        r = fault_set(fault, ENOMEM, "out of memory");
    return r < 0 ? r : find_summary(path, ret_description, fault);
}

int taskfile_of_command(
    const char *const *words, struct fault *fault, struct task_description *ret_description)
{
    char name[COMMAND_NAME_SIZE];
    ret_description->script = strdup(TASKFILE_COMMAND_SCRIPT);
    if (!ret_description->script)
        return fault_set(fault, ENOMEM, "out of memory");
    int r = slurm_lines_finish(words[0], ret_description, fault);
    return r < 0 ? r : default_name(ret_description, command_line_name(words, name), fault);
}

int taskfile_read_summary(struct task_description *description, struct fault *fault)
{
    const struct option_value *summary = &description->values[TASK_SUMMARY];
    if (!summary->set)
        return 0;
    size_t size;
    free(description->summary);
    description->summary = NULL;
    int r = file_read(summary->text, SUMMARY_MAX_BYTES, fault, &description->summary, &size);
    if (r == 0)
        r = plain_text_check(summary->text, (struct span){description->summary, size}, fault);
    fault_prefix(r < 0 ? fault : NULL, r, "model summary");
    if (description->file && summary->line)
        fault_prefix(r < 0 ? fault : NULL, r, "%s:%d", description->file, summary->line);
    return r;
}
