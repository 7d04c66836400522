/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The match of a shell's glob, with numbers: each piece is taken where it stands, and where one
 * does not fit, the text of the last '*' grows by a byte. The pattern has one before its start. A
 * later '*' takes over from an earlier one, so the time is the product of both lengths at most.
 *
 *     epoch {step}: *loss={value}        [12:01] epoch  3: acc=0.9 loss=0.41 (best)
 */
#include "taskfile/metric_pattern.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define STEP  "{step}"
#define VALUE "{value}"

static int count_of(const char *pattern, const char *piece)
{
    int n = 0;
    for (const char *at = pattern; (at = strstr(at, piece)); at += strlen(piece))
        n++;
    return n;
}

int metric_pattern_check(const char *pattern, struct fault *fault)
{
    if (count_of(pattern, VALUE) == 1 && count_of(pattern, STEP) <= 1)
        return 0;
    return fault_set(fault, EINVAL,
        "metric-from=output:%.100s: the pattern of a line has " VALUE " once, and " STEP
        " at most once, such as 'epoch " STEP ": val_loss=" VALUE "'",
        pattern);
}

int step_pattern_check(const char *pattern, struct fault *fault)
{
    bool has_text = pattern[strspn(pattern, "* \t")];
    if (has_text && count_of(pattern, STEP) <= 1 && count_of(pattern, VALUE) <= 1)
        return 0;
    return fault_set(fault, EINVAL,
        "step-pattern=%.100s: the pattern of a line has some text, and " STEP " and " VALUE
        " at most once, such as 'step " STEP ":'",
        pattern);
}

/* strtol and strtod also skip blanks, which are pieces of their own here. */
static bool starts_number(const char *text)
{
    return *text && !isspace((unsigned char)*text);
}

static const char *read_step(const char *text, struct metric_report *report)
{
    char *end;
    errno = 0;
    report->step = isdigit((unsigned char)*text) ? strtoll(text, &end, 10) : -1;
    report->has_step = report->step >= 0 && errno == 0;
    return report->has_step ? end : NULL;
}

static const char *read_value(const char *text, struct metric_report *report)
{
    char *end;
    report->value = starts_number(text) ? strtod(text, &end) : 0;
    return starts_number(text) && end > text ? end : NULL;
}

static const char *read_blanks(const char *text)
{
    return text + strspn(text, " \t");
}

/* Takes the pattern's next piece off both. Returns false where the text is another one. */
static bool take_piece(const char **pattern, const char **text, struct metric_report *report)
{
    const char *rest;
    if (strncmp(*pattern, STEP, strlen(STEP)) == 0) {
        rest = read_step(*text, report);
        *pattern += strlen(STEP);
    } else if (strncmp(*pattern, VALUE, strlen(VALUE)) == 0) {
        rest = read_value(*text, report);
        *pattern += strlen(VALUE);
    } else if (**pattern == ' ') {
        rest = read_blanks(*text);
        rest = rest > *text ? rest : NULL;
        *pattern = read_blanks(*pattern);
    } else {
        rest = **pattern == **text ? *text + 1 : NULL;
        *pattern += 1;
    }
    *text = rest ? rest : *text;
    return rest != NULL;
}

/* A number is not cut in front: "loss={value}" may follow any text, "{value} s" not a digit. */
static bool may_start(const char *line, const char *at, const char *pattern)
{
    bool is_number = *pattern == '{';
    return !is_number || at == line || !(isalnum((unsigned char)at[-1]) || strchr(".+-", at[-1]));
}

static bool match_text(const char *pattern, const char *line, struct metric_report *report)
{
    const char *resume = pattern, *from = line, *text = line;
    *report = (struct metric_report){0};
    while (*pattern) {
        if (*pattern == '*') {
            resume = ++pattern;
            from = text;
            continue;
        }
        bool is_begun = pattern == resume && !may_start(line, text, pattern);
        if (!is_begun && take_piece(&pattern, &text, report))
            continue;
        if (!*from)
            return false;
        pattern = resume;
        text = ++from;
    }
    return true;
}

bool metric_pattern_match(const char *pattern, struct span line, struct metric_report *ret_report)
{
    char text[METRIC_LINE_MAX];
    span_copy(line, text, sizeof text); /* of a longer line: its start */
    return match_text(pattern, text, ret_report);
}

int64_t step_count_line(struct step_count *count, const char *pattern, struct span line)
{
    struct metric_report report;
    if (!metric_pattern_match(pattern, line, &report))
        return 0;
    if (!report.has_step)
        return 1;
    int64_t steps = count->has_last && report.step > count->last ? report.step - count->last : 0;
    *count = (struct step_count){true, report.step};
    return steps <= LINE_STEPS_MAX ? steps : 0;
}
