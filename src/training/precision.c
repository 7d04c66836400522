/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The numeric precisions of a training: a table and its parser. The estimators calculate the memory
 * of each; this table only has whether autocast is on, and weights in 16 bit.
 */
#include "training/precision.h"

#include <errno.h>
#include <strings.h>

#include "training/name_list.h"

const char *const precision_names[PRECISIONS] = {
    "fp32", "tf32", "bf16", "fp16", "amp", "fp8", "bf16-true", "fp16-true", NULL};

static const struct {
    const char *aliases[3];
    bool is_autocast, has_half_weights;
    const char *note;
} table[PRECISIONS] = {
    [PRECISION_FP32] = {.aliases = {"float32", "32"}},
    [PRECISION_TF32] = {.aliases = {"tensorfloat32"}},
    [PRECISION_BF16] = {.aliases = {"bfloat16", "bf16-mixed"},
        .is_autocast = true,
        .note = "bf16: taken as autocast (weights in fp32)"},
    [PRECISION_FP16] = {.aliases = {"float16", "half", "16-mixed"},
        .is_autocast = true,
        .note = "fp16: taken as autocast (weights in fp32)"},
    [PRECISION_BF16_TRUE] = {.aliases = {"pure-bf16", "bfloat16-true"}, .has_half_weights = true},
    [PRECISION_FP16_TRUE] = {.aliases = {"16-true", "pure-fp16", "float16-true"},
        .has_half_weights = true},
    [PRECISION_AMP] = {.aliases = {"mixed", "autocast"}, .is_autocast = true},
    [PRECISION_FP8] = {.aliases = {"float8"},
        .is_autocast = true,
        .note =
            "fp8: taken as autocast in 16 bit (weights in fp32); its scales and copies are not known"},
};

static bool is_called(enum precision precision, const char *text)
{
    if (strcasecmp(text, precision_name(precision)) == 0)
        return true;
    for (size_t i = 0; i < 3 && table[precision].aliases[i]; i++)
        if (strcasecmp(text, table[precision].aliases[i]) == 0)
            return true;
    return false;
}

int precision_parse(
    const char *field, const char *text, struct fault *fault, enum precision *ret_precision)
{
    char all[NAME_LIST_MAX_SIZE];
    *ret_precision = PRECISION_NOT_GIVEN;
    if (!text || !*text)
        return 0;
    for (enum precision p = PRECISION_FP32; p < PRECISIONS; p++)
        if (is_called(p, text)) {
            *ret_precision = p;
            return 0;
        }
    return fault_set(fault, EINVAL, "%s=%.40s: must be one of %s", field, text,
        name_list_join(precision_names, all));
}

const char *precision_name(enum precision precision)
{
    return precision == PRECISION_NOT_GIVEN ? "" : precision_names[precision - 1];
}

const char *precision_canonical(const char *text)
{
    enum precision precision;
    return precision_parse("", text, NULL, &precision) == 0 && precision != PRECISION_NOT_GIVEN
               ? precision_name(precision)
               : NULL;
}

bool precision_is_autocast(enum precision precision)
{
    return table[precision].is_autocast;
}

bool precision_has_half_weights(enum precision precision)
{
    return table[precision].has_half_weights;
}

const char *precision_note(enum precision precision)
{
    return table[precision].note;
}
