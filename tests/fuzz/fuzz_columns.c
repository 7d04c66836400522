/* SPDX-License-Identifier: Apache-2.0 */
/* Tables in text files: any bytes are answered; a number is within its bounds. */
#include <stdlib.h>

#include "base/columns.h"
#include "fuzz.h"

static void read_numbers(const struct columns *columns)
{
    double value;
    for (int i = 0; i < columns->n; i++)
        if (columns_number(columns, i, 0, 1e9, NULL, &value) == 1 && !(value >= 0 && value <= 1e9))
            abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct columns columns;
    FILE *file = size ? fmemopen((void *)data, size, "r") : NULL;
    if (!file)
        return 0;
    if (columns_open_file(&columns, file, "table", NULL) == 0)
        while (columns_next(&columns, NULL) == 1)
            read_numbers(&columns);
    columns_close(&columns);
    fclose(file);
    return 0;
}
