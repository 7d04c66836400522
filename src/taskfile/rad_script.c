/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the script of a .rad file. A conda line needs conda's shell functions: the script loads
 * them first. */
#include "taskfile/rad_script.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { VALUE_SIZE = 4097 };

int rad_script_begin(struct rad_script *script, struct fault *fault)
{
    *script = (struct rad_script){0};
    script->stream = open_memstream(&script->text, &script->size);
    if (!script->stream)
        return fault_set(fault, ENOMEM, "out of memory");
    fputs("#!/bin/bash\n", script->stream);
    return 0;
}

static bool is_conda(struct span line)
{
    return span_starts(line, "conda ") || span_starts(line, "source activate ");
}

void rad_script_line(struct rad_script *script, struct span line)
{
    struct span trimmed = span_trim(line);
    if (is_conda(trimmed))
        fputs("hook=$(\"${CONDA_EXE:-conda}\" shell.bash hook 2>/dev/null) && eval \"$hook\"\n",
            script->stream);
    else if (trimmed.size && trimmed.at[0] != '#')
        script->has_command = true;
    fwrite(line.at, 1, line.size, script->stream);
    fputc('\n', script->stream);
    if (is_conda(trimmed))
        fputs("[ $? -eq 0 ] || exit\n", script->stream);
}

int rad_script_end(
    struct rad_script *script, struct task_description *description, struct fault *fault)
{
    bool failed = ferror(script->stream);
    failed |= fclose(script->stream) != 0;
    if (failed || !script->has_command) {
        free(script->text);
        return failed ? fault_set(fault, ENOMEM, "out of memory")
                      : fault_set(fault, EINVAL, "has no command line to run");
    }
    description->script = script->text;
    return 0;
}

int rad_set(struct task_description *description, enum task_option option, const char *shown,
    struct span value, struct fault *fault)
{
    char text[VALUE_SIZE];
    if (!span_copy(span_trim(value), text, sizeof text))
        return fault_set(
            fault, E2BIG, "%s: value of %zu bytes; at most %d", shown, value.size, VALUE_SIZE - 1);
    if (!text[0])
        return fault_set(fault, EINVAL, "%s: needs a value", shown);
    return option_set_text(&task_options[option], shown, text, &description->values[option], fault);
}

int rad_set_policy(
    struct task_description *description, const char *shown, struct span value, struct fault *fault)
{
    struct span policy = span_trim(value);
    if (span_is(policy, "exclusive"))
        return rad_set(description, TASK_EXCLUSIVE, shown, span_of("yes"), fault);
    if (span_is(policy, "collocation") ||
        (span_starts(policy, "exclusive") && memchr(policy.at, '/', policy.size)))
        return 0;
    return rad_set(description, TASK_POLICY, shown, policy, fault);
}
