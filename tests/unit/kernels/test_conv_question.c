/* SPDX-License-Identifier: Apache-2.0 */
/* The line of a question: what is written is read again, and nothing else is a question. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/array.h"
#include "kernels/conv_question.h"

static const char image[] =
    "forward float32 nchw 1 0 64,3,224,224 64,3,7,7 64,64,112,112 2,2 3,3 1,1";

static void test_written_and_read(void **state)
{
    static const char *const lines[] = {image,
        "input bfloat16 nhwc 0 1 1,8,5,5 16,8,3,3 1,16,5,5 1,1 1,1 1,1",
        "weight float16 nchw 1 0 2,4,9,9,9 4,4,3,3,3 2,4,9,9,9 1,1,1 1,1,1 2,2,2",
        "weight float64 nchw 1 0 2,4,9 4,4,3 2,4,9 1 0 1"};
    for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
        struct conv_question question, again;
        char line[CONV_QUESTION_LINE_SIZE];
        assert_true(conv_question_read(lines[i], strlen(lines[i]), &question));
        conv_question_write(&question, line);
        assert_string_equal(line, lines[i]);
        assert_true(conv_question_read(line, strlen(line), &again));
        assert_true(conv_question_equal(&question, &again));
    }
}

static void test_the_longest_line_fits(void **state)
{
    struct conv_question question = {.type = CONV_BFLOAT16, .rank = CONV_RANK_MAX}, again;
    char line[CONV_QUESTION_LINE_SIZE];
    for (int i = 0; i < CONV_RANK_MAX; i++)
        question.input[i] = question.weight[i] = question.output[i] = INT32_MAX;
    for (int i = 0; i < CONV_SPACE_MAX; i++)
        question.stride[i] = question.padding[i] = question.dilation[i] = INT32_MAX;
    conv_question_write(&question, line);
    assert_true(conv_question_read(line, strlen(line), &again));
    assert_true(conv_question_equal(&question, &again));
}

static void test_what_is_no_question(void **state)
{
    static const char *const lines[] = {"", " ", "forward",
        "backward float32 nchw 1 0 64,3,8,8 64,3,7,7 64,64,8,8 2,2 3,3 1,1",
        "forward float8 nchw 1 0 64,3,8,8 64,3,7,7 64,64,8,8 2,2 3,3 1,1",
        "forward float32 nchw 2 0 64,3,8,8 64,3,7,7 64,64,8,8 2,2 3,3 1,1",
        "forward float32 nchw 1 0 64,3,8,8 64,3,7,7 64,64,8 2,2 3,3 1,1",
        "forward float32 nchw 1 0 64,3,8,8 64,3,7,7 64,64,8,8 2,2 3,3 1",
        "forward float32 nchw 1 0 64,3,8,8 64,3,7,7 64,64,8,8 2,2 3,3 1,1 ",
        "forward float32 nchw 1 0 64,3,8,8 64,3,7,7 64,64,8,8 2,2 3,3 1,1 7",
        "forward float32 nchw 1 0 64,3,8,-8 64,3,7,7 64,64,8,8 2,2 3,3 1,1",
        "forward float32 nchw 1 0 64,3,8,0 64,3,7,7 64,64,8,8 2,2 3,3 1,1",
        "forward float32 nchw 1 0 64,3,8,8 64,3,7,7 64,64,8,8 0,2 3,3 1,1",
        "forward float32 nchw 1 0 64,3,8,2147483648 64,3,7,7 64,64,8,8 2,2 3,3 1,1",
        "forward float32 nchw 1 0 64,,8,8 64,3,7,7 64,64,8,8 2,2 3,3 1,1",
        "forward float32 nchw 1 0 6,3,8,8,8,8 6,3,7,7,7,7 6,6,8,8,8,8 1,1,1,1 1,1,1,1 1,1,1,1",
        "forward float32 nchw 1 0 6,3 6,3 6,6   "};
    struct conv_question question;
    for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
        if (conv_question_read(lines[i], strlen(lines[i]), &question))
            fail_msg("taken: %s", lines[i]);
    for (size_t size = 0; size + 1 < sizeof image - 1; size++)
        assert_false(conv_question_read(image, size, &question));
}

/* What another process made may have any numbers. */
static void test_sane(void **state)
{
    struct conv_question good, bad;
    assert_true(conv_question_read(image, sizeof image - 1, &good));
    assert_true(conv_question_is_sane(&good));
    int32_t *const numbers[] = {&bad.pass, &bad.type, &bad.channels_last, &bad.tf32,
        &bad.deterministic, &bad.rank, &bad.input[3], &bad.weight[0], &bad.stride[1], &bad.input[4],
        &bad.padding[2]};
    for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
        bad = good;
        *numbers[i] = i < 9 ? -1 : 1;
        assert_false(conv_question_is_sane(&bad));
        bad = good;
        *numbers[i] = INT32_MIN;
        assert_false(conv_question_is_sane(&bad));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_written_and_read),
        cmocka_unit_test(test_the_longest_line_fits), cmocka_unit_test(test_what_is_no_question),
        cmocka_unit_test(test_sane)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
