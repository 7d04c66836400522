/* SPDX-License-Identifier: Apache-2.0 */
/* A file of kept answers of any bytes: what was read is written, and is the same when it is read
 * again. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "kernels/kernel_file.h"

static void require(int holds)
{
    if (!holds)
        abort();
}

static void check_again(const struct kernel_answers *answers)
{
    struct kernel_answers again = {0};
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    require(file != NULL);
    kernel_file_write_head(file, &answers->origin);
    kernel_file_write(file, answers, 0);
    require(fclose(file) == 0);
    require(kernel_file_parse(text, size, &again) == 0 && again.count == answers->count);
    require(kernel_origin_equal(&again.origin, &answers->origin));
    for (size_t i = 0; i < answers->count; i++)
        require(again.answers[i].bytes == answers->answers[i].bytes &&
                conv_question_equal(&again.answers[i].question, &answers->answers[i].question));
    kernel_answers_clear(&again);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kernel_answers answers = {0};
    if (kernel_file_parse((const char *)data, size, &answers) == 0)
        check_again(&answers);
    kernel_answers_clear(&answers);
    return 0;
}
