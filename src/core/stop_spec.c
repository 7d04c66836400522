/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses --stop: the rule, a colon, and its parts in any order.
 *
 *     asha:metric=val_loss,min,rung=3            at steps 3, 9, 27 ...; the best third goes on
 *     asha:metric=val/acc,max,rung=1,factor=4    at steps 1, 4, 16 ...; the best quarter
 */
#include "core/stop_spec.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "base/units.h"

enum { FACTOR_DEFAULT = 3 }; /* chosen: a third of a small sweep goes on */

static int refuse_rule(const char *text, struct fault *fault)
{
    return fault_set(fault, EINVAL,
        "stop=%.80s: must be asha:metric=NAME,min|max,rung=STEP[,factor=N], such as "
        "asha:metric=val_loss,min,rung=3",
        text);
}

/* "rung=3" is the number behind the key. */
static bool read_number(struct span part, const char *key, int64_t min, int64_t max, int64_t *ret)
{
    char digits[24];
    size_t skipped = strlen(key);
    struct span number = {part.at + skipped, part.size - skipped};
    return span_copy(number, digits, sizeof digits) && parse_int64(digits, min, max, ret) == 0;
}

/* Names as TensorBoard's and MLflow's, without what would have to be quoted. */
static bool read_metric(struct span name, struct halving_rule *rule)
{
    for (size_t i = 0; i < name.size; i++)
        if ((unsigned char)name.at[i] <= ' ' || (unsigned char)name.at[i] >= 0x7f)
            return false;
    return name.size > 0 && span_copy(name, rule->metric, sizeof rule->metric);
}

/* Which parts were given. */
enum { HAS_METRIC = 1, HAS_SENSE = 2, HAS_RUNG = 4, HAS_FACTOR = 8 };

/* Returns the bit of the part; 0: it is none. */
static int read_part(struct span part, struct halving_rule *rule)
{
    int64_t number;
    if (span_is(part, "min") || span_is(part, "max")) {
        rule->is_max = span_is(part, "max");
        return HAS_SENSE;
    }
    if (span_starts(part, "metric="))
        return read_metric((struct span){part.at + 7, part.size - 7}, rule) ? HAS_METRIC : 0;
    if (span_starts(part, "rung=") && read_number(part, "rung=", 1, STOP_STEP_MAX, &number)) {
        rule->first_step = number;
        return HAS_RUNG;
    }
    if (span_starts(part, "factor=") && read_number(part, "factor=", 2, STOP_FACTOR_MAX, &number)) {
        rule->factor = (int)number;
        return HAS_FACTOR;
    }
    return 0;
}

int stop_spec_parse(const char *text, struct fault *fault, struct halving_rule *ret_rule)
{
    struct halving_rule rule = {.factor = FACTOR_DEFAULT};
    int given = 0, needed = HAS_METRIC | HAS_SENSE | HAS_RUNG;
    if (strncmp(text, "asha:", 5) != 0)
        return refuse_rule(text, fault);
    for (const char *at = text + 5, *end; at; at = *end ? end + 1 : NULL) {
        end = at + strcspn(at, ",");
        int bit = read_part((struct span){at, (size_t)(end - at)}, &rule);
        if (!bit || given & bit)
            return refuse_rule(text, fault);
        given |= bit;
    }
    if ((given & needed) != needed)
        return refuse_rule(text, fault);
    *ret_rule = rule;
    return 0;
}
