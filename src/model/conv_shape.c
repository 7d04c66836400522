/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the sizes of a convolution from an export. What is no number in range makes all unknown:
 * cuDNN is not asked with a guess. */
#include "model/conv_shape.h"

#include <string.h>

#include "base/json_member.h"

static bool read_numbers(
    const json_t *list, int32_t least, int32_t numbers[static CONV_RANK_MAX], size_t count)
{
    if (json_array_size(list) != count)
        return false;
    for (size_t i = 0; i < count; i++) {
        const json_t *number = json_array_get(list, i);
        json_int_t value = json_integer_value(number);
        if (!json_is_integer(number) || value < least || value > INT32_MAX)
            return false;
        numbers[i] = (int32_t)value;
    }
    return true;
}

static bool read_space(
    const json_t *list, int32_t least, int32_t numbers[static CONV_SPACE_MAX], size_t count)
{
    int32_t read[CONV_RANK_MAX] = {0};
    if (!read_numbers(list, least, read, count))
        return false;
    memcpy(numbers, read, CONV_SPACE_MAX * sizeof *numbers);
    return true;
}

/* The maps are written without the batch, which has the first place here. */
static bool read_map(const json_t *list, int32_t numbers[static CONV_RANK_MAX], size_t count)
{
    int32_t read[CONV_RANK_MAX] = {0};
    if (!read_numbers(list, 1, read, count))
        return false;
    memcpy(numbers + 1, read, (CONV_RANK_MAX - 1) * sizeof *numbers);
    return true;
}

void conv_shape_read(const json_t *row, struct conv_shape *ret_shape)
{
    const json_t *weight = json_object_get(row, "weight"), *batch = json_object_get(row, "batch"),
                 *groups = json_object_get(row, "groups");
    size_t rank = json_array_size(weight);
    struct conv_shape shape = {
        .batch = {json_integer_value(json_array_get(batch, 0)),
            json_integer_value(json_array_get(batch, 1))},
        .type = conv_type_of(member_text(row, "dtype", NULL)),
        .groups = json_is_integer(groups) ? json_integer_value(groups) : 1,
        .channels_last = json_is_true(json_object_get(row, "channels_last")),
        .transposed = json_is_true(json_object_get(row, "transposed")),
    };
    bool all = rank > 2 && rank <= CONV_RANK_MAX && shape.type != CONV_TYPES &&
               read_numbers(weight, 1, shape.weight, rank) &&
               read_map(json_object_get(row, "input"), shape.input, rank - 1) &&
               read_map(json_object_get(row, "output"), shape.output, rank - 1) &&
               read_space(json_object_get(row, "stride"), 1, shape.stride, rank - 2) &&
               read_space(json_object_get(row, "padding"), 0, shape.padding, rank - 2) &&
               read_space(json_object_get(row, "dilation"), 1, shape.dilation, rank - 2);
    shape.rank = all ? (int32_t)rank : 0;
    *ret_shape = shape;
}
