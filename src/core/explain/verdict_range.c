/* SPDX-License-Identifier: Apache-2.0 */
/* The range of the figures of several GPUs, for verdicts whose text is words around one figure. */
#include "core/explain/verdict_range.h"

#include <stdio.h>

#include "base/clamp.h"
#include "base/units.h"

enum figure { FIGURE_NONE, FIGURE_SHORT, FIGURE_COUNT, FIGURE_PERCENT, FIGURE_TIMES };

/* The words around the range; `after_limit` follows " over LIMIT". */
static const struct range_text {
    enum figure figure;
    const char *before, *after;
    bool names_limit;
    const char *after_limit;
} texts[VERDICT_KINDS] = {
    [VERDICT_MEMORY_SHORT] = {FIGURE_SHORT, "", " short", false, ""},
    [VERDICT_NOT_IDLE] = {FIGURE_COUNT, "", " tasks there, must be idle", false, ""},
    [VERDICT_FULL] = {FIGURE_COUNT, "", " tasks there already", false, ""},
    [VERDICT_SMACT_HIGH] = {FIGURE_PERCENT, "SMACT ", " %", true, ""},
    [VERDICT_SMACT_EXPECTED] = {FIGURE_PERCENT, "expected SMACT ", " %", true,
        " (a task is starting)"},
    [VERDICT_UTILISATION_HIGH] = {FIGURE_PERCENT, "utilisation ", " %", true,
        " (SMACT not reported)"},
    [VERDICT_SLOWDOWN] = {FIGURE_TIMES, "a task would take ", " times as long as alone", true, ""},
};

static double figure_of(const struct verdict *verdict)
{
    return texts[verdict->kind].figure == FIGURE_SHORT ? verdict->limit - verdict->have
                                                       : verdict->have;
}

void verdict_range_add(struct verdict_range *range, const struct verdict *verdict)
{
    const struct range_text *text = &texts[verdict->kind];
    double value = figure_of(verdict);
    bool is_other = text->names_limit && range->n_values && verdict->limit != range->limit;
    /* A count of 0 has words of its kind: an external process, or nothing is known. */
    bool is_uncounted = text->figure == FIGURE_COUNT && value <= 0;
    range->has_no_range |= text->figure == FIGURE_NONE || is_other || is_uncounted;
    if (range->n_values == 0) {
        range->least = range->most = value;
        range->limit = verdict->limit;
        range->n_values = 1;
        return;
    }
    bool is_known = value == range->least || value == range->most;
    if (!is_known && range->n_values < 3)
        range->n_values++;
    range->least = value < range->least ? value : range->least;
    range->most = value > range->most ? value : range->most;
}

bool verdict_range_is_wide(const struct verdict_range *range)
{
    return range->n_values > 2 && !range->has_no_range;
}

static const char *figure_text(enum figure figure, double value, char *text, size_t size)
{
    if (figure == FIGURE_SHORT)
        return format_size(clamp_bytes(value), text, size);
    if (figure == FIGURE_PERCENT)
        snprintf(text, size, "%.0f", 100 * value);
    else
        snprintf(text, size, "%.*f", figure == FIGURE_TIMES ? 2 : 0, value);
    return text;
}

void verdict_range_write(
    struct text_line *line, enum verdict_kind kind, const struct verdict_range *range)
{
    const struct range_text *text = &texts[kind];
    char least[32], most[32];
    text_line_add(line, "%s%s to %s%s", text->before,
        figure_text(text->figure, range->least, least, sizeof least),
        figure_text(text->figure, range->most, most, sizeof most), text->after);
    if (text->figure == FIGURE_TIMES)
        text_line_add(line, ", at most %.2f is allowed", range->limit);
    else if (text->names_limit)
        text_line_add(line, " over %.4g %%%s", 100 * range->limit, text->after_limit);
}
