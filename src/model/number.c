/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "model/format.h"

int number_parse(struct span s, int64_t *ret_value)
{
    int64_t value = 0;
    bool digit = false;
    for (size_t i = 0; i < s.size; i++) {
        char c = s.at[i];
        if (c == ',' && digit)
            continue;
        if (c < '0' || c > '9')
            return -EINVAL;
        digit = true;
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, c - '0', &value))
            return -ERANGE;
    }
    if (!digit)
        return -EINVAL;
    *ret_value = value;
    return 0;
}

int parser_count(struct parser *parser, struct span cell, int64_t *ret_count)
{
    int r = number_parse(cell, ret_count);
    int shown = cell.size < 40 ? (int)cell.size : 40;
    if (r == -ERANGE)
        return parser_fault(
            parser, ERANGE, "a parameter count beyond 64 bits: %.*s", shown, cell.at);
    if (r < 0)
        return parser_fault(parser, EINVAL, "\"%.*s\" is no parameter count", shown, cell.at);
    return 0;
}
