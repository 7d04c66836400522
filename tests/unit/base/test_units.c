/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers, sizes and durations as text, in both directions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>

#include "base/array.h"
#include "base/clamp.h"
#include "base/clock.h"
#include "base/units.h"

static void test_int64(void **state)
{
    int64_t value = 7;
    assert_int_equal(parse_int64("-12", -20, 20, &value), 0);
    assert_int_equal(value, -12);
    assert_int_equal(parse_int64("9223372036854775807", INT64_MIN, INT64_MAX, &value), 0);
    assert_int_equal(value, INT64_MAX);
    assert_int_equal(parse_int64("-9223372036854775808", INT64_MIN, INT64_MAX, &value), 0);
    assert_int_equal(value, INT64_MIN);
}

static void test_int64_refuses(void **state)
{
    static const char *const not_numbers[] = {
        "", "-", " 1", "1 ", "+1", "1.0", "0x10", "1e3", "--1", "ten"};
    int64_t value = 7;
    for (size_t i = 0; i < ARRAY_SIZE(not_numbers); i++)
        assert_int_equal(parse_int64(not_numbers[i], INT64_MIN, INT64_MAX, &value), -EINVAL);
    assert_int_equal(parse_int64("0", 1, 8, &value), -ERANGE);
    assert_int_equal(parse_int64("9", 1, 8, &value), -ERANGE);
    assert_int_equal(parse_int64("9223372036854775808", INT64_MIN, INT64_MAX, &value), -ERANGE);
    assert_int_equal(value, 7);
}

static void test_double(void **state)
{
    static const struct {
        const char *text;
        double value;
    } good[] = {{"0.80", 0.80}, {"1", 1}, {".5", 0.5}, {"-.5", -0.5}, {"-2.5", -2.5},
        {"1e-3", 1e-3}, {"5.", 5}};
    double value;
    for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
        assert_int_equal(parse_double(good[i].text, -10, 10, &value), 0);
        assert_true(value == good[i].value);
    }
}

static void test_double_refuses(void **state)
{
    static const char *const not_numbers[] = {"", ".", "-", "-.", "nan", "inf", "-inf", "0x10",
        "0x1p3", "-0x1", "1 ", " 1", "+1", "1..2", "1e", "80%"};
    double value = 7;
    for (size_t i = 0; i < ARRAY_SIZE(not_numbers); i++)
        assert_int_equal(parse_double(not_numbers[i], -100, 100, &value), -EINVAL);
    assert_int_equal(parse_double("1.01", 0, 1, &value), -ERANGE);
    assert_int_equal(parse_double("-0.01", 0, 1, &value), -ERANGE);
    assert_int_equal(parse_double("1e400", 0, 1, &value), -ERANGE);
    assert_true(value == 7);
}

static void test_size(void **state)
{
    static const struct {
        const char *text;
        int64_t bytes;
    } good[] = {
        {"5GiB", 5 * GIB},
        {"5G", 5 * GIB},
        {"5g", 5 * GIB},
        {"512M", 512 * MIB},
        {"512 MiB", 512 * MIB},
        {"2T", 2048 * GIB},
        {"4096KiB", 4 * MIB},
        {"100B", 100},
        {"12GB", 12000000000},
        {"12gb", 12000000000},
        {"500MB", 500000000},
        {"64kB", 64000},
        {"1.5TB", 1500000000000},
        {"0", 0},
        {"40536", 40536 * MIB},
        {"1.5GiB", 3 * GIB / 2},
        {".5K", 512},
        {"8000000T", 8000000 * (int64_t)1024 * GIB},
    };
    int64_t bytes;
    for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
        assert_int_equal(parse_size(good[i].text, &bytes), 0);
        assert_int_equal(bytes, good[i].bytes);
    }
}

static void test_size_refuses(void **state)
{
    static const char *const bad[] = {"", "GiB", "-5G", "+5G", " 5G", "5G ", "5GX", "5 G iB",
        "1.2.3G", "infG", "0x5G", ".", "..5G", "1e3M", "five", "5%", "5,5G"};
    int64_t bytes = 7;
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        assert_int_equal(parse_size(bad[i], &bytes), -EINVAL);
    assert_int_equal(parse_size("8388608T", &bytes), -ERANGE);
    assert_int_equal(parse_size("1000000000000000000", &bytes), -ERANGE);
    assert_int_equal(bytes, 7);
}

static void test_duration(void **state)
{
    static const struct {
        const char *text;
        int64_t us;
    } good[] = {
        {"90s", 90 * SECOND_US},
        {"20ms", 20 * MS_US},
        {"5us", 5},
        {"5m", 300 * SECOND_US},
        {"5min", 300 * SECOND_US},
        {"2h", 7200 * SECOND_US},
        {"7d", 7 * DAY_US},
        {"1.5s", 1500 * MS_US},
        {"8h30m", 30600 * SECOND_US},
        {"1d2h3m4s5ms", 93784 * SECOND_US + 5 * MS_US},
        {"0", 0},
        {"90", 5400 * SECOND_US},
        {"12:34", (12 * 60 + 34) * SECOND_US},
        {"3:12:34", (3 * 3600 + 12 * 60 + 34) * SECOND_US},
        {"2-03", (2 * 24 + 3) * HOUR_US},
        {"2-03:12", ((2 * 24 + 3) * 3600 + 12 * 60) * SECOND_US},
        {"2-03:12:34", ((2 * 24 + 3) * 3600 + 12 * 60 + 34) * SECOND_US},
    };
    int64_t us;
    for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
        assert_int_equal(parse_duration(good[i].text, &us), 0);
        assert_int_equal(us, good[i].us);
    }
}

static void test_duration_refuses(void **state)
{
    static const char *const bad[] = {"", "s", "-5s", "-5", "1.5", "5 s", "5S", "1:2:3:4", ":30",
        "30:", "1::2", "5-", "-5-10", "+5-10", " 5-10", "5-1-1", "5-1:2:3:4", "5--10", "5- 10",
        "1:-5", "never", "1.2.3s", "1:2s", "8h30", "30m8h", "5m5m", "5min2m", "8h 30m", "8h30x"};
    int64_t us = 7;
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        assert_int_equal(parse_duration(bad[i], &us), -EINVAL);
    assert_int_equal(parse_duration("1000000000000000d", &us), -ERANGE);
    assert_int_equal(parse_duration("10000000000", &us), -ERANGE);
    assert_int_equal(parse_duration("999999999-00", &us), -ERANGE);
    assert_int_equal(us, 7);
}

static void test_format_size(void **state)
{
    char buffer[32];
    assert_string_equal(format_size(512 * MIB, buffer, sizeof buffer), "512.0 MiB");
    assert_string_equal(format_size(0, buffer, sizeof buffer), "0.0 MiB");
    assert_string_equal(format_size(GIB * 123 / 10, buffer, sizeof buffer), "12.3 GiB");
    assert_string_equal(format_size(-2 * GIB, buffer, sizeof buffer), "-2.0 GiB");
    assert_string_equal(format_size(INT64_MIN, buffer, sizeof buffer), "-8589934592.0 GiB");
    assert_string_equal(format_size(GIB, buffer, 4), "1.0");
}

static void test_format_elapsed(void **state)
{
    char buffer[32];
    assert_string_equal(format_elapsed(7 * SECOND_US, buffer, sizeof buffer), "0:07");
    assert_string_equal(format_elapsed(754 * SECOND_US + 999999, buffer, sizeof buffer), "12:34");
    assert_string_equal(format_elapsed(11554 * SECOND_US, buffer, sizeof buffer), "3:12:34");
    assert_string_equal(format_elapsed(184354 * SECOND_US, buffer, sizeof buffer), "2-03:12:34");
    assert_string_equal(format_elapsed(-5, buffer, sizeof buffer), "0:00");
    assert_string_equal(format_elapsed(INT64_MAX, buffer, sizeof buffer), "106751991-04:00:54");
}

static void test_clamp(void **state)
{
    assert_int_equal(clamp_int(5, 1, 9), 5);
    assert_int_equal(clamp_int(-5, 1, 9), 1);
    assert_int_equal(clamp_int(50, 1, 9), 9);
    assert_int_equal(clamp_int64(INT64_MAX, 0, INT64_MAX - 1), INT64_MAX - 1);
    assert_int_equal(clamp_int64(3, 4, 2), 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_clamp),
        cmocka_unit_test(test_int64),
        cmocka_unit_test(test_int64_refuses),
        cmocka_unit_test(test_double),
        cmocka_unit_test(test_double_refuses),
        cmocka_unit_test(test_size),
        cmocka_unit_test(test_size_refuses),
        cmocka_unit_test(test_duration),
        cmocka_unit_test(test_duration_refuses),
        cmocka_unit_test(test_format_size),
        cmocka_unit_test(test_format_elapsed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
