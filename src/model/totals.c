#include <math.h>
#include <string.h>

#include "model/format.h"

bool line_is_rule(struct span line)
{
    line = span_trim(line);
    for (size_t i = 0; i < line.size; i++)
        if (!strchr("=-_+|~ ", line.at[i]) && (line.at[i] & 0x80) == 0)
            return false;
    return line.size >= 3;
}

/* What the unit in "Total params (M)", "(Units.MEGABYTES)" or behind "25.56 M" multiplies by. Units are decimal. */
static double unit_factor(struct span s)
{
    s = span_trim(s);
    if (span_starts(s, "("))
        s = span_skip(s, 1);
    if (span_starts(s, "Units."))
        s = span_skip(s, 6);
    switch (s.size ? s.at[0] : '\0') {
    case 'k':
    case 'K':
        return 1e3;
    case 'M':
        return 1e6;
    case 'G':
    case 'B':
        return 1e9;
    case 'T':
        return 1e12;
    default:
        return 1;
    }
}

/* A decimal number with thousands separators at the front of *s. NaN when there is none. */
static double take_decimal(struct span *s, int *ret_decimals)
{
    double value = 0, scale = 1;
    size_t i = 0;
    bool point = false, digit = false;
    *ret_decimals = 0;
    for (; i < s->size; i++) {
        char c = s->at[i];
        if (c == '.' && !point) {
            point = true;
        } else if (c >= '0' && c <= '9') {
            digit = true;
            value = value * 10 + (c - '0');
            scale *= point ? 10 : 1;
            *ret_decimals += point;
        } else if (c != ',') {
            break;
        }
    }
    *s = span_skip(*s, i);
    return digit ? value / scale : NAN;
}

/* A printed total; `*slack` grows by what its rounding may hide. */
static struct count total_value(struct span label, struct span rest, int64_t *slack)
{
    struct count total = {0};
    rest = span_trim(rest);
    size_t end = 0;
    while (end < rest.size && ((rest.at[end] >= '0' && rest.at[end] <= '9') || rest.at[end] == ','))
        end++;
    size_t unit_at = span_find(label, '(');
    double factor = unit_factor(span_skip(label, unit_at));
    bool whole =
        factor == 1 && (end == rest.size || rest.at[end] == ' ') && unit_factor(span_trim(span_skip(rest, end))) == 1;
    bool bytes_behind = end < rest.size && span_starts(span_trim(span_skip(rest, end)), "(");
    if (whole || (factor == 1 && bytes_behind)) {
        total.known = number_parse(span_first(rest, end), &total.value) == 0;
        return total;
    }
    int decimals;
    double value = take_decimal(&rest, &decimals);
    factor *= factor == 1 ? unit_factor(rest) : 1;
    value *= factor;
    if (!(value >= 0 && value < 9e18))
        return total;
    *slack += (int64_t)(factor / pow(10, decimals < 15 ? decimals : 15)) + 1;
    return (struct count){.value = llround(value), .known = true};
}

bool totals_begin(struct span line)
{
    return span_starts(span_trim(line), "Total params");
}

bool totals_take(struct parser *parser, struct span line)
{
    static const char *const others[] = {"Non-trainable params",  "Total mult-adds", "Input size",
                                         "Forward/backward pass", "Params size",     "Estimated Total Size",
                                         "Estimated Size"};
    struct model *model = parser->model;
    line = span_trim(line);
    size_t colon = span_find(line, ':');
    struct span label = span_first(line, colon), rest = span_skip(line, colon + 1);
    if (colon == line.size)
        return false;
    if (span_starts(label, "Total params")) {
        model->parameters_printed = total_value(label, rest, &parser->total_slack);
        return true;
    }
    if (span_starts(label, "Trainable params")) {
        int64_t unused = 0;
        model->trainable_printed = total_value(label, rest, &unused);
        return true;
    }
    if (span_starts(label, "Optimizer params")) { /* Keras 3 counts the optimizer's state in the total */
        struct count optimizer = total_value(label, rest, &parser->total_slack);
        if (optimizer.known && model->parameters_printed.known && optimizer.value <= model->parameters_printed.value)
            model->parameters_printed.value -= optimizer.value;
        return true;
    }
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (span_starts(label, others[i]))
            return true;
    return false;
}
