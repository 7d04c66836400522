/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lines below the layers: "Total params: 25,557,032", "Params size (MB): 97.49".
 * summary_reader.c compares the printed totals with the layers, so each is stored with the error
 * that its rounding may have.
 */
#include <math.h>
#include <string.h>

#include "base/array.h"
#include "model/format.h"

bool line_is_rule(struct span line)
{
    line = span_trim(line);
    for (size_t i = 0; i < line.size; i++)
        if (!strchr("=-_+|~ ", line.at[i]) && (line.at[i] & 0x80) == 0)
            return false;
    return line.size >= 3;
}

/* Returns the factor of a unit: "M)", "Units.MEGABYTES)", "G". Units are decimal; 1 for another
 * text. */
static double unit_factor(struct span s)
{
    s = span_trim(s);
    if (span_starts(s, "Units."))
        s = span_skip(s, strlen("Units."));
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

/* Removes a decimal number with thousands separators from the front of *s. Returns NaN when there
 * is none. */
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

/*
 * Parses a printed total: "25,557,032", "25.56 M" or, with the unit in its label, "25.56". *slack
 * is increased by the largest rounding error.
 */
static struct count total_value(struct span label, struct span text, int64_t *slack)
{
    struct count total = {0};
    struct span rest = text = span_trim(text);
    int decimals;
    double value = take_decimal(&rest, &decimals);
    size_t bracket = span_find(label, '(');
    double factor = unit_factor(bracket < label.size ? span_skip(label, bracket + 1) : rest);
    if (factor == 1 && decimals == 0) {
        total.known = number_parse(span_first(text, text.size - rest.size), &total.value) == 0;
        return total;
    }
    value *= factor;
    if (!(value >= 0 && value < 9e18))
        return total;
    *slack += (int64_t)(factor / pow(10, decimals)) + 1;
    return (struct count){.value = llround(value), .known = true};
}

/* "Params size (MB): 97.49": torchsummary's are of 2^20 bytes, torchinfo's of 10^6. */
static bool take_size(struct model *model, struct span label, struct span text)
{
    const struct {
        const char *label;
        struct reading *bytes;
    } sizes[] = {{"Input size", &model->printed.input_bytes},
        {"Forward/backward pass size", &model->printed.pass_bytes},
        {"Params size", &model->printed.params_bytes}};
    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        if (!span_starts(label, sizes[i].label))
            continue;
        int decimals;
        size_t bracket = span_find(label, '(');
        double factor = unit_factor(span_skip(label, bracket + 1));
        text = span_trim(text);
        double value = take_decimal(&text, &decimals) * factor;
        if (factor == 1e6 && model->format == SUMMARY_TORCHSUMMARY)
            value *= 0x1p20 / 1e6;
        if (value >= 0 && value < 1e18)
            *sizes[i].bytes = reading_of(value);
        return true;
    }
    return false;
}

bool totals_begin(struct span line)
{
    return span_starts(span_trim(line), "Total params");
}

bool totals_take(struct parser *parser, struct span line)
{
    static const char *const others[] = {
        "Non-trainable params", "Total mult-adds", "Estimated Total Size", "Estimated Size"};
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
    if (span_starts(
            label, "Optimizer params")) { /* Keras 3 counts the optimizer's state in the total */
        struct count optimizer = total_value(label, rest, &parser->total_slack);
        if (optimizer.known && model->parameters_printed.known &&
            optimizer.value <= model->parameters_printed.value)
            model->parameters_printed.value -= optimizer.value;
        return true;
    }
    if (take_size(model, label, rest))
        return true;
    for (size_t i = 0; i < ARRAY_SIZE(others); i++)
        if (span_starts(label, others[i]))
            return true;
    return false;
}
