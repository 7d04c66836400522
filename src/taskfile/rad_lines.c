/* SPDX-License-Identifier: Apache-2.0 */
/*
 * .rad files with fixed positions: eight to twelve lines. The first three are the script; each
 * other line is a value, whose meaning follows from its position.
 */
#include <ctype.h>
#include <errno.h>

#include "base/units.h"
#include "taskfile/forms.h"
#include "taskfile/rad_script.h"

enum {
    LINE_COMMENT,
    LINE_CONDA,
    LINE_COMMAND,
    LINE_SUMMARY,
    LINE_DATASET,
    LINE_BATCH,
    LINE_POLICY,
    LINE_GPUS,
    LINE_MEASURED_MIB,
    LINE_GPUMEMNET = 11,
    LINES,
    LINES_NEEDED = LINE_GPUS + 1,
};

/* The form's value for "no estimate". */
static const double no_estimate_mib = 40000;

/* Splits the text into trimmed lines without empty ones at the end. Returns their number, LINES + 1
 * for more than the form has.
 */
static int split_lines(struct span text, struct span lines[LINES])
{
    struct span line;
    int n = 0, count = 0;
    while (span_next_line(&text, &line)) {
        line = span_trim(line);
        if (n < LINES)
            lines[n] = line;
        n++;
        if (line.size)
            count = n;
    }
    return count > LINES ? LINES + 1 : count;
}

static bool looks_numeric(struct span s)
{
    return s.size && (isdigit((unsigned char)s.at[0]) ||
                         (s.size > 1 && s.at[0] == '-' && isdigit((unsigned char)s.at[1])));
}

static bool is_one_word(struct span s)
{
    for (size_t i = 0; i < s.size; i++)
        if (isspace((unsigned char)s.at[i]))
            return false;
    return s.size > 0;
}

bool rad_lines_detect(struct span text)
{
    struct span lines[LINES];
    int count = split_lines(text, lines);
    return count >= LINES_NEEDED && count <= LINES && is_one_word(lines[LINE_POLICY]) &&
           (looks_numeric(lines[LINE_BATCH]) || looks_numeric(lines[LINE_GPUS]));
}

static int read_measured(
    struct span line, struct task_description *description, struct fault *fault)
{
    char text[32];
    double mib;
    if (!span_copy(line, text, sizeof text) || parse_double(text, 0, 1e9, &mib) < 0)
        return fault_set(fault, EINVAL, "measured memory: not a number of MiB");
    if (mib == 0 || mib == no_estimate_mib)
        return 0;
    return rad_set(description, TASK_MEMORY, "measured memory", line, fault);
}

static int check_estimate(struct span line, struct fault *fault)
{
    char text[32];
    double mb;
    if (!span_copy(line, text, sizeof text) || parse_double(text, 0, 1e9, &mb) < 0)
        return fault_set(fault, EINVAL, "estimate: not a number of MB");
    return 0;
}

static int read_value(
    int i, struct span line, struct task_description *description, struct fault *fault)
{
    switch (i) {
    case LINE_SUMMARY:
        return rad_set(description, TASK_SUMMARY, "summary", line, fault);
    case LINE_BATCH:
        return rad_set(description, TASK_BATCH, "batch size", line, fault);
    case LINE_POLICY:
        return rad_set_policy(description, "policy", line, fault);
    case LINE_GPUS:
        return rad_set(description, TASK_GPUS, "GPUs", line, fault);
    case LINE_MEASURED_MIB:
        return read_measured(line, description, fault);
    default:
        return i > LINE_MEASURED_MIB ? check_estimate(line, fault) : 0;
    }
}

int rad_lines_parse(
    const char *name, struct span text, struct task_description *description, struct fault *fault)
{
    struct span lines[LINES];
    int count = split_lines(text, lines);
    for (int i = 0; i < count; i++) {
        int r = read_value(i, lines[i], description, fault);
        if (r < 0)
            return fault_prefix(fault, r, "%s:%d", name, i + 1);
    }
    description->values[TASK_SUMMARY].line = LINE_SUMMARY + 1;
    struct rad_script script;
    int r = rad_script_begin(&script, fault);
    if (r < 0)
        return fault_prefix(fault, r, "%s", name);
    for (int i = LINE_COMMENT; i <= LINE_COMMAND; i++)
        rad_script_line(&script, lines[i]);
    r = rad_script_end(&script, description, fault);
    return fault_prefix(r < 0 ? fault : NULL, r, "%s", name);
}
