/* SPDX-License-Identifier: Apache-2.0 */
/* Whole numbers as summaries print them, with thousands separators: "25,557,032". */
#include <errno.h>

#include "model/format.h"

/* "25,557,032", as summaries print counts. */
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
