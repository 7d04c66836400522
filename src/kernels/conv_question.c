/* SPDX-License-Identifier: Apache-2.0 */
/* The line of a question, written and parsed. A line comes from a file or another process, so a
 * number that is out of range, or a list of another length, makes it no question. */
#include "kernels/conv_question.h"

#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/text.h"

static const char *const passes[] = {"forward", "input", "weight"};
static const char *const types[] = {"float32", "float64", "float16", "bfloat16"};
static const char *const formats[] = {"nchw", "nhwc"};
static const char *const flags[] = {"0", "1"};

enum conv_type conv_type_of(const char *name)
{
    int place = span_place(span_of_optional(name), types, ARRAY_SIZE(types));
    return place < 0 ? CONV_TYPES : (enum conv_type)place;
}

/* ---- writing ---- */

struct line {
    char *at;
    size_t left;
};

static void append_text(struct line *line, const char *text)
{
    size_t size = strnlen(text, line->left - 1);
    memcpy(line->at, text, size);
    line->at += size;
    line->left -= size;
    *line->at = '\0';
}

static void append_list(struct line *line, const int32_t *numbers, int32_t count)
{
    for (int32_t i = 0; i < count; i++) {
        char number[16];
        snprintf(number, sizeof number, "%c%d", i ? ',' : ' ', numbers[i]);
        append_text(line, number);
    }
}

void conv_question_write(const struct conv_question *question, char text[CONV_QUESTION_LINE_SIZE])
{
    struct line line = {text, CONV_QUESTION_LINE_SIZE};
    const char *const words[] = {passes[question->pass], types[question->type],
        formats[question->channels_last], flags[question->tf32], flags[question->deterministic]};
    for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
        append_text(&line, i ? " " : "");
        append_text(&line, words[i]);
    }
    append_list(&line, question->input, question->rank);
    append_list(&line, question->weight, question->rank);
    append_list(&line, question->output, question->rank);
    append_list(&line, question->stride, question->rank - 2);
    append_list(&line, question->padding, question->rank - 2);
    append_list(&line, question->dilation, question->rank - 2);
}

/* ---- parsing ---- */

/* The rest of a line. */
struct reader {
    const char *at, *end;
};

/* Takes one of the words, and the blank behind it. */
static bool take_word(
    struct reader *reader, const char *const *words, size_t n_words, int32_t *ret_index)
{
    size_t left = (size_t)(reader->end - reader->at);
    const char *blank = memchr(reader->at, ' ', left);
    size_t size = blank ? (size_t)(blank - reader->at) : left;
    for (size_t i = 0; i < n_words; i++) {
        if (strlen(words[i]) != size || memcmp(words[i], reader->at, size) != 0)
            continue;
        reader->at += size + (blank ? 1 : 0);
        *ret_index = (int32_t)i;
        return true;
    }
    return false;
}

/* Takes digits that are a number of 31 bits. */
static bool take_number(struct reader *reader, int32_t *ret_number)
{
    const char *first = reader->at;
    int64_t number = 0;
    for (; reader->at < reader->end && *reader->at >= '0' && *reader->at <= '9'; reader->at++) {
        number = 10 * number + (*reader->at - '0');
        if (number > INT32_MAX)
            return false;
    }
    *ret_number = (int32_t)number;
    return reader->at > first;
}

/* Takes numbers with commas between them, and the blank behind them. Returns how many; 0: there is
 * no such list. */
static int32_t take_list(struct reader *reader, int32_t numbers[static CONV_RANK_MAX])
{
    int32_t count = 0;
    while (count < CONV_RANK_MAX && take_number(reader, &numbers[count])) {
        count++;
        if (reader->at == reader->end)
            return count;
        char next = *reader->at++;
        if (next == ' ')
            return count;
        if (next != ',')
            return 0;
    }
    return 0;
}

/* Takes a list of one number for each dimension of space. */
static bool take_space(struct reader *reader, int32_t rank, int32_t numbers[static CONV_SPACE_MAX])
{
    int32_t list[CONV_RANK_MAX] = {0};
    if (take_list(reader, list) != rank - 2)
        return false;
    memcpy(numbers, list, (size_t)(rank - 2) * sizeof *numbers);
    return true;
}

static bool is_flag(int32_t number)
{
    return number == 0 || number == 1;
}

/* Positive numbers up to `count`, and zeros behind them. */
static bool is_list(const int32_t *numbers, int32_t least, int32_t count, int32_t size)
{
    for (int32_t i = 0; i < size; i++)
        if (i < count ? numbers[i] < least : numbers[i] != 0)
            return false;
    return true;
}

static bool are_lists_sane(const struct conv_question *q, int32_t rank)
{
    int32_t space = rank - 2;
    return is_list(q->input, 1, rank, CONV_RANK_MAX) &&
           is_list(q->weight, 1, rank, CONV_RANK_MAX) &&
           is_list(q->output, 1, rank, CONV_RANK_MAX) &&
           is_list(q->stride, 1, space, CONV_SPACE_MAX) &&
           is_list(q->padding, 0, space, CONV_SPACE_MAX) &&
           is_list(q->dilation, 1, space, CONV_SPACE_MAX);
}

bool conv_question_is_sane(const struct conv_question *question)
{
    const struct conv_question *q = question;
    return q->pass >= 0 && q->pass < (int32_t)ARRAY_SIZE(passes) && q->type >= 0 &&
           q->type < CONV_TYPES && is_flag(q->channels_last) && is_flag(q->tf32) &&
           is_flag(q->deterministic) && q->rank > 2 && q->rank <= CONV_RANK_MAX &&
           are_lists_sane(q, q->rank);
}

bool conv_question_read(const char *line, size_t size, struct conv_question *ret_question)
{
    struct reader reader = {line, line + size};
    struct conv_question *question = ret_question;
    *question = (struct conv_question){0};
    if (size == 0 || line[size - 1] == ' ' ||
        !take_word(&reader, passes, ARRAY_SIZE(passes), &question->pass) ||
        !take_word(&reader, types, ARRAY_SIZE(types), &question->type) ||
        !take_word(&reader, formats, ARRAY_SIZE(formats), &question->channels_last) ||
        !take_word(&reader, flags, ARRAY_SIZE(flags), &question->tf32) ||
        !take_word(&reader, flags, ARRAY_SIZE(flags), &question->deterministic))
        return false;
    question->rank = take_list(&reader, question->input);
    return question->rank > 2 && take_list(&reader, question->weight) == question->rank &&
           take_list(&reader, question->output) == question->rank &&
           take_space(&reader, question->rank, question->stride) &&
           take_space(&reader, question->rank, question->padding) &&
           take_space(&reader, question->rank, question->dilation) && reader.at == reader.end &&
           conv_question_is_sane(question);
}

bool conv_question_equal(const struct conv_question *a, const struct conv_question *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}
