/* SPDX-License-Identifier: Apache-2.0 */
/* Splitting a line into arguments as a shell does. */
#include <errno.h>
#include <stdlib.h>

#include "../assert_has.h"
#include "taskfile/word_split.h"

static void assert_words(const char *line, const char *const *want)
{
    const char **words;
    int count = word_split(span_of(line), NULL, &words);
    assert_true(count >= 0);
    for (int i = 0; i < count; i++) {
        assert_non_null(want[i]);
        assert_string_equal(words[i], want[i]);
    }
    assert_null(want[count]);
    assert_null(words[count]);
    free(words);
}

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

static void test_blanks_part_words(void **state)
{
    assert_words("", (const char *const[]){NULL});
    assert_words("  a\tbc  d ", WORDS("a", "bc", "d"));
    assert_words("a", WORDS("a"));
}

static void test_quotes_join(void **state)
{
    assert_words("--name='a  b'c", WORDS("--name=a  bc"));
    assert_words("\"it's\" ''", WORDS("it's", ""));
    assert_words("'a\\b' \"a\\\"b\\n\"", WORDS("a\\b", "a\"b\\n"));
    assert_words("a\\ b \\#x", WORDS("a b", "#x"));
}

static void test_nothing_is_expanded(void **state)
{
    assert_words("$HOME `id` $(id) ~ *", WORDS("$HOME", "`id`", "$(id)", "~", "*"));
}

static void test_comment_ends_line(void **state)
{
    assert_words("a # b 'c", WORDS("a"));
    assert_words("a#b", WORDS("a#b"));
}

static void test_faults(void **state)
{
    struct fault fault = {0};
    const char **words;
    assert_int_equal(word_split(span_of("a 'b"), &fault, &words), -EINVAL);
    assert_has(fault.text, "quote '");
    assert_int_equal(word_split(span_of("a \"b\\\""), &fault, &words), -EINVAL);
    assert_has(fault.text, "quote \"");
    assert_int_equal(word_split(span_of("a b\\"), &fault, &words), -EINVAL);
    assert_has(fault.text, "backslash");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blanks_part_words),
        cmocka_unit_test(test_quotes_join),
        cmocka_unit_test(test_nothing_is_expanded),
        cmocka_unit_test(test_comment_ends_line),
        cmocka_unit_test(test_faults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
