/* SPDX-License-Identifier: Apache-2.0 */
/* Bounds how many values a JSON text has, before it is parsed: it counts the characters that begin
 * a list or an object or separate values. */
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
