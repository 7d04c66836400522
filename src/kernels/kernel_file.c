/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of text, since an administrator may want to read what a GPU answered. */
#include "kernels/kernel_file.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

static const char head[] = "colloc-kernels 1", none[] = "none";

/* A line of the text, without its end. */
struct row {
    const char *at;
    size_t size;
};

/* Takes the next line. Returns false after the last; what has no line end was cut off, and is none.
 */
static bool next_row(const char **text, const char *end, struct row *ret_row)
{
    const char *newline = memchr(*text, '\n', (size_t)(end - *text));
    if (!newline)
        return false;
    *ret_row = (struct row){*text, (size_t)(newline - *text)};
    *text = newline + 1;
    return true;
}

/* Copies what follows the word and a blank. Returns whether the line is that and fits. */
static bool copy_after(const struct row *row, const char *word, char *text, size_t size)
{
    size_t skipped = strlen(word) + 1;
    if (row->size <= skipped || row->size - skipped >= size ||
        memcmp(row->at, word, skipped - 1) != 0 || row->at[skipped - 1] != ' ' ||
        memchr(row->at, '\0', row->size))
        return false;
    memcpy(text, row->at + skipped, row->size - skipped);
    text[row->size - skipped] = '\0';
    return true;
}

/* Digits only: a number of 62 bits. */
static bool parse_number(const char *text, size_t size, int64_t *ret_number)
{
    *ret_number = 0;
    for (size_t i = 0; i < size; i++) {
        if (text[i] < '0' || text[i] > '9' || *ret_number > INT64_MAX / 20)
            return false;
        *ret_number = 10 * *ret_number + (text[i] - '0');
    }
    return size > 0;
}

static bool parse_answer(
    const struct row *row, struct conv_question *ret_question, int64_t *ret_bytes)
{
    const char *blank = memchr(row->at, ' ', row->size);
    size_t size = blank ? (size_t)(blank - row->at) : 0;
    if (size == sizeof none - 1 && memcmp(row->at, none, size) == 0)
        *ret_bytes = KERNEL_NONE;
    else if (!parse_number(row->at, size, ret_bytes))
        return false;
    return conv_question_read(blank + 1, row->size - size - 1, ret_question);
}

static bool parse_head(const char **text, const char *end, struct kernel_origin *ret_origin)
{
    struct row row;
    char version[32];
    return next_row(text, end, &row) && row.size == sizeof head - 1 &&
           memcmp(row.at, head, row.size) == 0 && next_row(text, end, &row) &&
           copy_after(&row, "gpu", ret_origin->gpu, sizeof ret_origin->gpu) &&
           next_row(text, end, &row) &&
           copy_after(&row, "driver", ret_origin->driver, sizeof ret_origin->driver) &&
           next_row(text, end, &row) && copy_after(&row, "cudnn", version, sizeof version) &&
           parse_number(version, strlen(version), &ret_origin->cudnn);
}

int kernel_file_parse(const char *text, size_t size, struct kernel_answers *ret_answers)
{
    const char *end = text + size;
    struct row row;
    if (!parse_head(&text, end, &ret_answers->origin))
        return -EINVAL;
    while (next_row(&text, end, &row)) {
        struct conv_question question;
        int64_t bytes;
        if (parse_answer(&row, &question, &bytes) &&
            kernel_answers_put(ret_answers, &question, bytes) < 0)
            return -ENOMEM;
    }
    return 0;
}

void kernel_file_write_head(FILE *file, const struct kernel_origin *origin)
{
    fprintf(file, "%s\ngpu %s\ndriver %s\ncudnn %" PRId64 "\n", head, origin->gpu, origin->driver,
        origin->cudnn);
}

void kernel_file_write(FILE *file, const struct kernel_answers *answers, size_t first)
{
    for (size_t i = first; i < answers->count; i++) {
        const struct kernel_answer *answer = &answers->answers[i];
        char line[CONV_QUESTION_LINE_SIZE];
        conv_question_write(&answer->question, line);
        if (answer->bytes == KERNEL_NONE)
            fprintf(file, "%s %s\n", none, line);
        else
            fprintf(file, "%" PRId64 " %s\n", answer->bytes, line);
    }
}
