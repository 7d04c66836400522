/* SPDX-License-Identifier: Apache-2.0 */
/* Logical lines of slurm.conf, and their pairs. */
#include "../assert_has.h"
#include "slurmconf/conf_text.h"

static void assert_lines(const char *text, const char *const *want)
{
    struct conf_text conf;
    size_t bytes = 0;
    assert_int_equal(conf_text_parse(span_of(text), &conf), 0);
    for (size_t i = 0; i < conf.count; i++) {
        assert_non_null(want[i]);
        assert_string_equal(conf.lines[i].text, want[i]);
        assert_ptr_equal(conf.lines[i].bytes.at, text + bytes);
        bytes += conf.lines[i].bytes.size;
    }
    assert_null(want[conf.count]);
    assert_int_equal(bytes, strlen(text));
    conf_text_fini(&conf);
}

#define LINES(...) ((const char *const[]){__VA_ARGS__, NULL})

static void test_comments_and_continuations(void **state)
{
    assert_lines("", (const char *const[]){NULL});
    assert_lines("A=1\n\nB=2", LINES("A=1", "", "B=2"));
    assert_lines("A=1 # x\nB=a\\#b\n", LINES("A=1", "B=a\\#b"));
    assert_lines("A=1 \\\n B=2\nC=3\n", LINES("A=1  B=2", "C=3"));
    assert_lines("A=1 \\ \r\nB=2\r\n", LINES("A=1 B=2"));
    assert_lines("# A=1 \\\nB=2\n", LINES("", "B=2"));
    assert_lines("A=1 \\ # x\nB=2\n", LINES("A=1 B=2"));
    assert_lines("A=1 \\\\\nB=2\n", LINES("A=1 \\\\", "B=2"));
    assert_lines("A=1 \\", LINES("A=1"));
}

static void assert_value(const char *line, const char *key, const char *want)
{
    struct span value = {"before", 6};
    if (!want) {
        assert_false(conf_find(line, key, &value));
        assert_true(span_is(value, "before"));
        return;
    }
    assert_true(conf_find(line, key, &value));
    assert_true(span_is(value, want));
}

static void test_pairs(void **state)
{
    assert_value("NodeName=a Gres=gpu:4", "gres", "gpu:4");
    assert_value("A = \"x y\" B= z", "A", "x y");
    assert_value("A = \"x y\" B= z", "B", "z");
    assert_value("A=\"x", "A", "\"x");
    assert_value("A= ", "A", "");
    assert_value("Gres", "Gres", NULL);
    assert_value("MyGres=1", "Gres", NULL);
    assert_value("A=Gres=2", "Gres", NULL);
    assert_value("/dev/x:y Gres=1", "Gres", "1");
}

static void test_first_key_and_includes(void **state)
{
    struct span value;
    assert_true(conf_begins_with("nodename=x CPUs=1", "NodeName", &value));
    assert_false(conf_begins_with("NodeAddr=1 NodeName=x", "NodeName", &value));
    assert_true(span_is(value, "x"));
    assert_true(conf_included("include \t a b.conf ", &value));
    assert_true(span_is(value, "a b.conf"));
    assert_false(conf_included("Include", &value));
    assert_true(span_is(value, "a b.conf"));
    assert_false(conf_included("Includes a", &value));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_comments_and_continuations),
        cmocka_unit_test(test_pairs),
        cmocka_unit_test(test_first_key_and_includes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
