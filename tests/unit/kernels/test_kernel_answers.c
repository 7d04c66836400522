/* SPDX-License-Identifier: Apache-2.0 */
/* The table of answers and its file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "kernels/kernel_file.h"

static struct conv_question question_of(int32_t batch)
{
    return (struct conv_question){.rank = 4,
        .input = {batch, 3, 8, 8},
        .weight = {16, 3, 3, 3},
        .output = {batch, 16, 8, 8},
        .stride = {1, 1},
        .padding = {1, 1},
        .dilation = {1, 1}};
}

static void put(struct kernel_answers *answers, int32_t batch, int64_t bytes)
{
    struct conv_question question = question_of(batch);
    assert_int_equal(kernel_answers_put(answers, &question, bytes), 0);
}

static int64_t find(const struct kernel_answers *answers, int32_t batch)
{
    struct conv_question question = question_of(batch);
    int64_t bytes;
    return kernel_answers_find(answers, &question, &bytes) ? bytes : -100;
}

static void test_found(void **state)
{
    struct kernel_answers answers = {0};
    assert_int_equal(find(NULL, 1), -100);
    assert_int_equal(find(&answers, 1), -100);
    for (int32_t i = 1; i <= 1000; i++)
        put(&answers, i, 10 * i);
    put(&answers, 5, KERNEL_NONE);
    assert_int_equal(answers.count, 1000);
    for (int32_t i = 1; i <= 1000; i++)
        assert_int_equal(find(&answers, i), i == 5 ? KERNEL_NONE : 10 * i);
    assert_int_equal(find(&answers, 1001), -100);
    kernel_answers_clear(&answers);
    assert_int_equal(find(&answers, 1), -100);
}

static void test_the_older_half_goes(void **state)
{
    struct kernel_answers answers = {0};
    for (int32_t i = 1; i <= KERNEL_ANSWERS_MAX; i++)
        put(&answers, i, i);
    assert_int_equal(answers.count, KERNEL_ANSWERS_MAX);
    put(&answers, KERNEL_ANSWERS_MAX + 1, 7);
    assert_int_equal(answers.count, KERNEL_ANSWERS_MAX / 2 + 1);
    assert_int_equal(find(&answers, KERNEL_ANSWERS_MAX / 2), -100);
    assert_int_equal(find(&answers, KERNEL_ANSWERS_MAX / 2 + 1), KERNEL_ANSWERS_MAX / 2 + 1);
    assert_int_equal(find(&answers, KERNEL_ANSWERS_MAX + 1), 7);
    kernel_answers_clear(&answers);
}

static void test_versions(void **state)
{
    static const struct {
        int64_t cudnn;
        const char *text;
    } cases[] = {{91900, "cuDNN 9.19.0 on NVIDIA H200, driver 580.1"},
        {90201, "cuDNN 9.2.1 on NVIDIA H200, driver 580.1"},
        {8907, "cuDNN 8.9.7 on NVIDIA H200, driver 580.1"}};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct kernel_origin origin = {"NVIDIA H200", "580.1", cases[i].cudnn};
        char text[100];
        kernel_origin_text(&origin, text, sizeof text);
        assert_string_equal(text, cases[i].text);
    }
}

static char *text_of(const struct kernel_answers *answers, size_t *ret_size)
{
    char *text = NULL;
    FILE *file = open_memstream(&text, ret_size);
    assert_non_null(file);
    kernel_file_write_head(file, &answers->origin);
    kernel_file_write(file, answers, 0);
    assert_int_equal(fclose(file), 0);
    return text;
}

static void test_file(void **state)
{
    struct kernel_answers answers = {.origin = {"NVIDIA H200", "580.159.04", 91900}}, again = {0};
    put(&answers, 1, 0);
    put(&answers, 2, INT64_C(1) << 50);
    put(&answers, 3, KERNEL_NONE);
    size_t size;
    char *text = text_of(&answers, &size);
    assert_int_equal(kernel_file_parse(text, size, &again), 0);
    assert_true(kernel_origin_equal(&again.origin, &answers.origin));
    assert_int_equal(again.count, 3);
    assert_int_equal(find(&again, 1), 0);
    assert_int_equal(find(&again, 2), INT64_C(1) << 50);
    assert_int_equal(find(&again, 3), KERNEL_NONE);
    kernel_answers_clear(&again);
    /* Cut off anywhere: no answer that was not given. */
    for (size_t cut = 0; cut < size; cut++) {
        again = (struct kernel_answers){0};
        int r = kernel_file_parse(text, cut, &again);
        assert_true(r == 0 || r == -EINVAL);
        assert_true(again.count < 3);
        for (size_t i = 0; i < again.count; i++)
            assert_int_equal(again.answers[i].bytes, answers.answers[i].bytes);
        kernel_answers_clear(&again);
    }
    kernel_answers_clear(&answers);
    free(text);
}

static void test_lines_that_are_none(void **state)
{
#define GOOD_HEAD "colloc-kernels 1\ngpu NVIDIA A100\ndriver 1\ncudnn 8907\n"
#define ASKED     "forward float32 nchw 1 0 1,3,8,8 16,3,3,3 1,16,8,8 1,1 1,1 1,1\n"
    static const struct {
        const char *text;
        int result;
        size_t count;
    } cases[] = {{"", -EINVAL, 0}, {"colloc-kernels 2\n", -EINVAL, 0},
        {"colloc-kernels 1\ngpu \ndriver 1\ncudnn 1\n", -EINVAL, 0},
        {"colloc-kernels 1\ngpu x\ndriver 1\ncudnn -1\n", -EINVAL, 0},
        {"colloc-kernels 1\ngpu x\ndriver 1\ncudnn 99999999999999999999\n", -EINVAL, 0},
        {GOOD_HEAD, 0, 0}, {GOOD_HEAD "7 " ASKED, 0, 1}, {GOOD_HEAD "\n\n7 " ASKED, 0, 1},
        {GOOD_HEAD "-7 " ASKED, 0, 0}, {GOOD_HEAD "7x " ASKED, 0, 0}, {GOOD_HEAD " " ASKED, 0, 0},
        {GOOD_HEAD "7\n7 \n7 forward\nnone " ASKED, 0, 1},
        {GOOD_HEAD "99999999999999999999 " ASKED "8 " ASKED, 0, 1}};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct kernel_answers answers = {0};
        assert_int_equal(
            kernel_file_parse(cases[i].text, strlen(cases[i].text), &answers), cases[i].result);
        assert_int_equal(answers.count, cases[i].count);
        kernel_answers_clear(&answers);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_found),
        cmocka_unit_test(test_the_older_half_goes), cmocka_unit_test(test_versions),
        cmocka_unit_test(test_file), cmocka_unit_test(test_lines_that_are_none)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
