/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scripts: #COLLOC lines before the first command are options, split into words as by a shell. So
 * are #SBATCH lines (slurm_lines.c), which #COLLOC lines override.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "taskfile/forms.h"
#include "taskfile/option_words.h"
#include "taskfile/slurm_lines.h"
#include "taskfile/word_split.h"

static const char marker[] = "#COLLOC";

static bool is_directive(struct span line)
{
    return span_starts(line, marker) &&
           (line.size == strlen(marker) || strchr(" \t", line.at[strlen(marker)]));
}

bool script_has_directive(struct span text)
{
    struct span line;
    while (span_next_line(&text, &line))
        if (is_directive(line))
            return true;
    return false;
}

static int take_options(const char *const *words, int count, size_t number,
    struct task_description *description, struct fault *fault)
{
    struct option_value values[TASK_OPTION_MAX] = {0};
    const struct option_set set = {task_options, task_option_count, values};
    int r = options_take(&set, 1, words, count, fault);
    if (r >= 0 && r < count)
        r = fault_set(fault, EINVAL, "'%.80s' is not an option; write --name=value", words[r]);
    for (size_t i = 0; i < task_option_count; i++)
        values[i].line = (int)number;
    if (r >= 0 && option_values_overlay(description->values, values, TASK_OPTION_MAX) < 0)
        r = fault_set(fault, ENOMEM, "out of memory");
    option_values_fini(values, TASK_OPTION_MAX);
    return r < 0 ? r : 0;
}

static int read_directive(
    struct span line, size_t number, struct task_description *description, struct fault *fault)
{
    if (line.size > LINE_MAX_BYTES)
        return fault_set(fault, E2BIG, "line of %zu bytes; at most %d", line.size, LINE_MAX_BYTES);
    struct span rest = {line.at + strlen(marker), line.size - strlen(marker)};
    const char **words;
    int count = word_split(rest, fault, &words);
    if (count < 0)
        return count;
    int r = take_options(words, count, number, description, fault);
    free(words);
    return r;
}

/* With Windows line ends the kernel would search an interpreter named "bash\r". */
static bool has_windows_line_ends(struct span text)
{
    const char *end = memchr(text.at, '\n', text.size);
    return end && end > text.at && end[-1] == '\r';
}

static int read_lines(
    const char *name, struct span text, struct task_description *description, struct fault *fault)
{
    struct span rest = text, line;
    bool commands_began = false;
    for (size_t number = 1; span_next_line(&rest, &line); number++) {
        struct span trimmed = span_trim(line), options = slurm_line_options(line);
        int r = 0;
        if (is_directive(line))
            r = commands_began
                    ? fault_set(fault, EINVAL, "#COLLOC lines must stand before the first command")
                    : read_directive(line, number, description, fault);
        else if (options.size && !commands_began)
            r = slurm_line_read(options, number, description, fault);
        if (r < 0)
            return fault_prefix(fault, r, "%s:%zu", name, number);
        commands_began |= trimmed.size && trimmed.at[0] != '#';
    }
    return 0;
}

int script_parse(
    const char *name, struct span text, struct task_description *description, struct fault *fault)
{
    if (has_windows_line_ends(text))
        return fault_set(fault, EINVAL,
            "%s:1: has Windows line ends (CR LF); remove them: sed -i 's/\\r$//' %s", name, name);
    int r = read_lines(name, text, description, fault);
    if (r < 0)
        return r;
    description->script = strndup(text.at, text.size);
    return description->script ? 0 : fault_set(fault, ENOMEM, "%s: out of memory", name);
}
