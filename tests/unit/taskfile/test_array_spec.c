/* SPDX-License-Identifier: Apache-2.0 */
/* The indices of arrays: what is read and written, and what is refused without costing anything. */
#include "taskfile/array_spec.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/array.h"

static char *written(const struct array_spec *spec)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    array_indices_write(out, spec->indices, spec->count);
    fclose(out);
    return text;
}

static void lists_and_ranges_are_read(void **state)
{
    static const struct {
        const char *text;
        int count, limit;
        const char *written;
    } good[] = {
        {"7", 1, 0, "7"},
        {"0-99", 100, 0, "0-99"},
        {"0-99%8", 100, 8, "0-99"},
        {"1,3,7", 3, 0, "1,3,7"},
        {"0-10:2", 6, 0, "0-10:2"},
        {"0-9:4", 3, 0, "0-8:4"},
        {"7,0-4:2,3,4%2", 5, 2, "0,2-4,7"},
        {"5-5", 1, 0, "5"},
        {"999999999", 1, 0, "999999999"},
        {"3,1,2,3", 3, 0, "1-3"},
        {"1-10000%9999", 10000, 9999, "1-10000"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
        struct array_spec spec;
        struct fault fault = {0};
        assert_int_equal(array_spec_parse(good[i].text, &fault, &spec), 0);
        assert_int_equal(spec.count, good[i].count);
        assert_int_equal(spec.limit, good[i].limit);
        char *text = written(&spec);
        assert_string_equal(text, good[i].written);
        free(text);
        array_spec_fini(&spec);
    }
}

static void other_texts_are_refused(void **state)
{
    static const char *const bad[] = {"", ",", "x", "1,", ",1", "1-", "-1", "3-1", "1-3:", "1-3:0",
        "1:2", "1-3%", "1-3%0", "%3", "1 ", " 1", "1-3%2%2", "1;2", "0x1", "\xff", "1-2-3"};
    struct array_spec spec;
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct fault fault = {0};
        if (array_spec_parse(bad[i], &fault, &spec) != -EINVAL)
            fail_msg("'%s' was read", bad[i]);
    }
}

static void limits_are_named(void **state)
{
    static const struct {
        const char *text, *named;
    } large[] = {
        {"0-999999999", "at most 10000 tasks"},
        {"0-10000", "at most 10000 tasks"},
        {"1-9999,20000-20002", "at most 10000 tasks"},
        {"1000000000", "at most 999999999"},
        {"0-99999999999999999999", "at most 999999999"},
    };
    struct array_spec spec;
    for (size_t i = 0; i < ARRAY_SIZE(large); i++) {
        struct fault fault = {0};
        assert_int_equal(array_spec_parse(large[i].text, &fault, &spec), -ERANGE);
        assert_non_null(strstr(fault.text, large[i].named));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_and_ranges_are_read),
        cmocka_unit_test(other_texts_are_refused),
        cmocka_unit_test(limits_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
