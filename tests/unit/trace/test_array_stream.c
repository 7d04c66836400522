/* SPDX-License-Identifier: Apache-2.0 */
/* A list of objects is read one at a time, and where it breaks is named. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "trace/array_stream.h"

struct outcome {
    int objects, r;
    int64_t begins; /* the last object's line */
    char fault[512];
};

static struct outcome read_all(const char *text)
{
    struct outcome outcome = {0};
    struct array_stream stream;
    struct fault fault = {0};
    json_t *object;
    FILE *file = fmemopen((void *)text, strlen(text), "r");
    assert_non_null(file);
    outcome.r = array_stream_open(&stream, file, "log", &fault);
    if (outcome.r == 0)
        while ((outcome.r = array_stream_next(&stream, &fault, &object)) == 1) {
            assert_true(json_is_object(object));
            json_decref(object);
            outcome.objects++;
            outcome.begins = stream.begins;
        }
    strcpy(outcome.fault, fault.text);
    fclose(file);
    return outcome;
}

static void test_whole_lists(void **state)
{
    const struct {
        const char *text;
        int objects;
    } cases[] = {
        {"[]", 0},
        {" [ ] \n", 0},
        {"\xef\xbb\xbf[{}]", 1},
        {"[{\"a\":[1,{\"b\":2}]}\n,\n{\"c\":\"}]\\\"{[\"}]\n", 2},
        {"[{},{},{}]", 3},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct outcome outcome = read_all(cases[i].text);
        assert_string_equal(outcome.fault, "");
        assert_int_equal(outcome.r, 0);
        assert_int_equal(outcome.objects, cases[i].objects);
    }
    assert_int_equal(read_all("[\n{\n},\n\n{}]").begins, 5);
}

static void test_broken_lists(void **state)
{
    const struct {
        const char *text;
        int objects;
        const char *fault;
    } cases[] = {
        {"{}", 0, "log:1: the list of jobs must begin with \"[\""},
        {"[{},\n{\"a\":\n1", 1, "log:3: the log breaks off within job 2, which begins in line 2"},
        {"[{\"a\":\"un", 0, "log:1: the log breaks off within job 1, which begins in line 1"},
        {"[{},\n", 1, "log:2: the log breaks off: the list has no end"},
        {"[{}", 1, "log:1: the log breaks off: the list has no end"},
        {"[{}\n{}]", 1, "log:2: a comma or the list's \"]\" is missing behind a job"},
        {"[7]", 0, "log:1: a job must begin with \"{\""},
        {"[{}]\nmore", 1, "log:2: there is something behind the list of jobs"},
        {"[{},\n{\"a\"\n;}]", 1, "log:3: no JSON: ':' expected near ';'"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct outcome outcome = read_all(cases[i].text);
        assert_string_equal(outcome.fault, cases[i].fault);
        assert_int_equal(outcome.r, -EBADMSG);
        assert_int_equal(outcome.objects, cases[i].objects);
    }
}

static void test_an_object_without_end(void **state)
{
    size_t size = ARRAY_OBJECT_MAX + 100;
    char *text = malloc(size + 1);
    assert_non_null(text);
    memset(text, 'x', size);
    memcpy(text, "[\n{\"a\":\"", 8);
    text[size] = '\0';
    struct outcome outcome = read_all(text);
    assert_string_equal(outcome.fault, "log:2: one job of more than 16 MiB, from line 2 on");
    free(text);
}

static void test_depth(void **state)
{
    char text[100000] = "[{\"a\":";
    memset(text + 6, '[', sizeof text - 7);
    assert_int_equal(read_all(text).r, -EBADMSG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole_lists),
        cmocka_unit_test(test_broken_lists),
        cmocka_unit_test(test_an_object_without_end),
        cmocka_unit_test(test_depth),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
