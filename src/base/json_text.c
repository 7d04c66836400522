/* SPDX-License-Identifier: Apache-2.0 */
/* Values of a JSON text are counted by what begins a list or object or separates its values. */
#include "base/json_text.h"

#include <stdbool.h>

size_t json_text_count_values(const char *text, size_t size)
{
    size_t values = 0;
    bool in_string = false;
    for (size_t i = 0; i < size; i++) {
        if (in_string && text[i] == '\\')
            i++;
        else if (text[i] == '"')
            in_string = !in_string;
        else if (!in_string && (text[i] == ',' || text[i] == '[' || text[i] == '{'))
            values++;
    }
    return values;
}
