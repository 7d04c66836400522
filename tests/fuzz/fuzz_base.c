/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes, durations, numbers and lines: any bytes are answered, and an answer keeps to its contract.
 */
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/units.h"
#include "fuzz.h"

static void require(int holds)
{
    if (!holds)
        abort();
}

static void parse_all(const char *text)
{
    int64_t value;
    double number;
    if (parse_size(text, &value) == 0)
        require(value >= 0);
    if (parse_duration(text, &value) == 0)
        require(value >= 0);
    if (parse_int64(text, -5, 5, &value) == 0)
        require(value >= -5 && value <= 5);
    if (parse_double(text, 0, 1, &number) == 0)
        require(number >= 0 && number <= 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span rest = {(const char *)data, size}, line;
    while (span_next_line(&rest, &line)) {
        char text[128];
        struct span trimmed = span_trim(line);
        require(trimmed.size <= line.size && !memchr(line.at, '\n', line.size));
        bool whole = span_copy(trimmed, text, sizeof text);
        require(strlen(text) < sizeof text && whole == (trimmed.size < sizeof text));
        parse_all(text);
    }
    return 0;
}
