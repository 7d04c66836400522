/* SPDX-License-Identifier: Apache-2.0 */
/* The fast parser of JSON against jansson's: equal, or the text is left to that. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/array.h"
#include "store/plain_json.h"

static json_t *load_by_jansson(const char *text, size_t size)
{
    return json_loadb(text, size, JSON_ALLOW_NUL, NULL);
}

/* What it parses jansson parses as well, and to the same. Returns whether it parses the text. */
static bool check(const char *text, size_t size)
{
    json_t *plain = plain_json_load(text, size);
    json_t *other = plain ? load_by_jansson(text, size) : NULL;
    bool is_plain = plain != NULL;
    if (is_plain && !json_equal(plain, other))
        fail_msg("not as jansson: %.*s", (int)size, text);
    json_decref(plain);
    json_decref(other);
    return is_plain;
}

static void rows_of_the_log_are_plain(void **state)
{
    static const char *const texts[] = {
        "{\"uid\":0,\"held\":false,\"gpus\":1,\"sharing\":\"streams\",\"need_bytes\":-5}",
        "{\"name\":\"train.sh\",\"output\":\"colloc-%j.out\",\"is\":true,\"no\":null,\"a\":[]}",
        "{}", "[]", "[1,[2,[\"\"]],{\"\":{}}]", "[999999999999999999,-999999999999999999,0]",
        "{\"twice\":1,\"other\":2,\"twice\":3}"};
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
        assert_true(check(texts[i], strlen(texts[i])));
}

/* Right or wrong, jansson has to say. */
static void everything_else_is_left_to_jansson(void **state)
{
    static const char *const texts[] = {"", " {}", "{} ", "{ }", "1", "\"text\"", "true", "[1.5]",
        "[1e3]", "[01]", "[-0]", "[-]", "[1000000000000000000]", "[\"a\\n\"]", "[\"\xc3\xa9\"]",
        "[\"\x7f\"]", "[\"\x01\"]", "[1,]", "[,1]", "[1 ,2]", "{\"a\"}", "{\"a\":}", "{\"a\":1,}",
        "{a:1}", "[1", "{\"a\":1", "[\"a", "[tru]", "[nulll]", "[}", "{]", "[1]]",
        "{\"a key of more than 63 bytes is none of ours: it is left to jansson, too\":1}"};
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
        assert_null(plain_json_load(texts[i], strlen(texts[i])));
}

static void a_deep_text_is_left_to_jansson(void **state)
{
    static char text[200000];
    memset(text, '[', sizeof text);
    assert_null(plain_json_load(text, sizeof text));
    memset(text, ']', sizeof text);
    memset(text, '[', 32);
    assert_true(check(text, 64));
    memset(text, '[', 33);
    assert_null(plain_json_load(text, 66));
}

static json_t *random_value(int depth)
{
    static const char *const strings[] = {"", "a", "a longer text, with blanks", "\"", "\xc3\xa9"};
    json_t *list;
    switch (rand() % (depth < 4 ? 7 : 5)) {
    case 0:
        return json_string(strings[rand() % 5]);
    case 1:
        return json_integer((json_int_t)rand() * rand() * (rand() % 2 ? 1 : -1));
    case 2:
        return rand() % 2 ? json_true() : json_null();
    case 3:
        return json_real(rand() / 7.0);
    case 4:
        return json_integer(rand() % 10);
    case 5:
        list = json_array();
        for (int i = rand() % 4; i > 0; i--)
            json_array_append_new(list, random_value(depth + 1));
        return list;
    default:
        list = json_object();
        for (int i = rand() % 5; i > 0; i--)
            json_object_set_new(list, strings[rand() % 3], random_value(depth + 1));
        return list;
    }
}

/* Whole, cut off, and with a byte changed. */
static void random_texts_are_parsed_as_by_jansson(void **state)
{
    enum { TEXTS = 2000, CHANGES = 20 };
    static const char bytes[] = "{}[]\",:0123456789-.eEtfn \\\x7f\xc3";
    int n_plain = 0, n_changed = 0;
    srand(1);
    for (int i = 0; i < TEXTS; i++) {
        json_t *value = json_pack("[o]", random_value(0));
        char *text = json_dumps(value, JSON_COMPACT);
        size_t size = strlen(text);
        n_plain += check(text, size);
        for (size_t cut = 0; cut < size; cut++)
            assert_false(check(text, cut));
        for (int k = 0; k < CHANGES; k++) {
            size_t at = (size_t)rand() % size;
            char was = text[at];
            text[at] = bytes[(size_t)rand() % (sizeof bytes - 1)];
            n_changed += check(text, size);
            text[at] = was;
        }
        free(text);
        json_decref(value);
    }
    assert_true(n_plain > TEXTS / 4 && n_changed > TEXTS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_of_the_log_are_plain),
        cmocka_unit_test(everything_else_is_left_to_jansson),
        cmocka_unit_test(a_deep_text_is_left_to_jansson),
        cmocka_unit_test(random_texts_are_parsed_as_by_jansson),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
