/* SPDX-License-Identifier: Apache-2.0 */
/* Values of settings by their kind: which texts are values, and what is printed of them. */
#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/setting.h"
#include "base/units.h"

/* What a value is printed as after it was read; NULL: it is refused. */
struct reading_back {
    const struct setting_kind *kind;
    const char *text, *printed;
};

static bool is_even(const char *text)
{
    return strlen(text) % 2 == 0;
}

static const char *const names[] = {[1] = "one", [3] = "three"};
static const struct setting_kind odd = {.type = SETTING_CHOICE, .names = names, .n_names = 4},
                                 even = {.type = SETTING_TEXT, .is_valid = is_even},
                                 large = {.type = SETTING_SIZE, .min = 64 * MIB};

static void texts_are_read_and_printed_by_kind(void **state)
{
    static const struct reading_back all[] = {
        {&setting_flag, "yes", "yes"}, {&setting_flag, "no", "no"}, {&setting_flag, "true", "yes"},
        {&setting_flag, "Off", "no"}, {&setting_flag, "1", NULL}, {&setting_flag, "", NULL},
        {&setting_count, "0", "0"}, {&setting_count, "1000000", "1000000"},
        {&setting_count, "1000001", NULL}, {&setting_count, "-1", NULL},
        {&setting_count, "1.5", NULL}, {&setting_percentage, "100", "100"},
        {&setting_percentage, "101", NULL}, {&setting_fraction, "0.125", "0.125"},
        {&setting_fraction, "1.01", NULL}, {&setting_fraction, "nan", NULL},
        {&setting_size, "0", "0"}, {&setting_size, "5GiB", "5GiB"},
        {&setting_size, "1536MiB", "1536MiB"}, {&setting_size, "12GB", "12000000000 bytes"},
        {&setting_size, "-1", NULL}, {&large, "64MiB", "64MiB"}, {&large, "63MiB", NULL},
        {&setting_duration, "0s", "0s"}, {&setting_duration, "120s", "120s"},
        {&setting_duration, "180s", "3m"}, {&setting_duration, "90m", "90m"},
        {&setting_duration, "48h", "2d"}, {&setting_duration, "25h", "25h"},
        {&setting_duration, "1500ms", "1500ms"}, {&setting_duration, "soon", NULL},
        {&setting_period, "1ms", "1ms"}, {&setting_period, "0s", NULL},
        {&setting_period, "1h", "1h"}, {&setting_period, "61m", NULL}, {&setting_hours, "36", "36"},
        {&setting_hours, "36h", NULL}, {&odd, "three", "three"}, {&odd, "two", NULL},
        {&even, "ab", "ab"}, {&even, "abc", NULL},
        {&setting_text, "0123456789abcde", "0123456789abcde"},
        {&setting_text, "0123456789abcdef", NULL}, /* no byte is left for its end */
    };
    for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
        union {
            char bytes[16];
            int64_t aligned;
        } member = {{0}}, before;
        char printed[64];
        memcpy(&before, &member, sizeof before);
        int r = setting_parse(all[i].kind, all[i].text, &member, sizeof member);
        assert_int_equal(r, all[i].printed ? 0 : -EINVAL);
        setting_format(all[i].kind, &member, printed, sizeof printed);
        if (r == 0)
            assert_string_equal(printed, all[i].printed);
        else
            assert_memory_equal(&member, &before, sizeof member);
    }
}

static void members_are_integers_of_their_own_width(void **state)
{
    struct {
        bool flag;
        char between[3];
        int count;
        int64_t size;
    } object = {0};
    setting_put_integer(&setting_flag, 7, &object.flag);
    setting_put_integer(&setting_count, INT_MAX, &object.count);
    setting_put_integer(&setting_size, INT64_MAX, &object.size);
    assert_true(object.flag);
    assert_memory_equal(object.between, "\0\0\0", 3);
    assert_int_equal(setting_integer(&setting_flag, &object.flag), 1);
    assert_int_equal(setting_integer(&setting_count, &object.count), INT_MAX);
    assert_true(setting_integer(&setting_size, &object.size) == INT64_MAX);
    assert_int_equal(setting_integer_max(&setting_flag), 1);
    assert_int_equal(setting_integer_max(&odd), 3);
    assert_int_equal(setting_integer_max(&setting_percentage), INT_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_are_read_and_printed_by_kind),
        cmocka_unit_test(members_are_integers_of_their_own_width),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
