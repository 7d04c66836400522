/* SPDX-License-Identifier: Apache-2.0 */
/* How many values a JSON text has, whatever its bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/json_text.h"

static size_t count(const char *text)
{
    return json_text_count_values(text, strlen(text));
}

static void test_values_are_counted(void **state)
{
    assert_int_equal(count(""), 0);
    assert_int_equal(count("[1, 2, 3]"), 3);
    assert_int_equal(count("{\"a\": [[], [], {}]}"), 7);
    assert_int_equal(count("[\"a, [b], \\\", {c\", 2]"), 2);
    assert_int_equal(count("\"\\"), 0); /* cut off in a string, behind a backslash */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_values_are_counted)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
