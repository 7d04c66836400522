/* SPDX-License-Identifier: Apache-2.0 */
/* Writes and reads what PyTorch's profiler is to record: "3 100 5 0", the order's members as
 * numbers. */
#include "exec/torch_order.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/units.h"

size_t torch_order_format(const struct torch_order *order, char text[TORCH_ORDER_TEXT])
{
    int n = snprintf(text, TORCH_ORDER_TEXT, "%" PRId64 " %" PRId64 " %" PRId64 " %" PRId64,
        order->number, order->step, order->steps, order->duration_ms);
    return (size_t)n;
}

int torch_order_parse(struct span text, struct torch_order *ret_order)
{
    char copy[TORCH_ORDER_TEXT], *rest = copy;
    int64_t *const fields[] = {
        &ret_order->number, &ret_order->step, &ret_order->steps, &ret_order->duration_ms};
    if (memchr(text.at, '\0', text.size) || !span_copy(text, copy, sizeof copy))
        return -EBADMSG;
    for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
        const char *word = strsep(&rest, " ");
        if (!word || parse_int64(word, 0, INT64_MAX, fields[i]) < 0)
            return -EBADMSG;
    }
    return rest ? -EBADMSG : 0;
}
