/* SPDX-License-Identifier: Apache-2.0 */
/* Dates and times of cluster logs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>

#include "base/array.h"
#include "base/clock.h"
#include "trace/civil_time.h"

static void test_parse(void **state)
{
    const struct {
        const char *text;
        int64_t seconds;
    } cases[] = {
        {"1970-01-01", 0},
        {"1970-01-01 00:00:01", 1},
        {"2000-02-29T12:00:00", 951825600},
        {"2017-10-07 01:11:39", 1507338699},
        {"2017-10-07T01:11", 1507338660},
        {"2100-03-01 00:00:00", 4107542400},
        {"2023-05-17 11:00:58+00:00", 1684321258},
        {"2023-05-17 13:00:58+02:00", 1684321258},
        {"2023-05-17T06:30:58.25-0430", 1684321258},
        {"2023-05-17T11:00:58Z", 1684321258},
        {"2023-05-17T11:00Z", 1684321200},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        int64_t us;
        assert_int_equal(civil_time_parse(cases[i].text, &us), 0);
        assert_int_equal(us, cases[i].seconds * SECOND_US);
    }
}

static void test_no_dates(void **state)
{
    const char *const texts[] = {"", "None", "Unknown", "2017", "2017-13-01", "2017-00-01",
        "2017-02-29", "2100-02-29", "1969-12-31", "2200-01-01", "2017-10-07 24:00:00",
        "2017-10-07 01:60:00", "2017-10-07 01:11:39 PDT", "2017-10-07 01", "2017/10/07",
        "2017-10-07Z", "2017-10-07 01:11:39+15", "2017-10-07 01:11:39+0",
        "2017-10-07 01:11:39+01:00x", "1970-01-01 00:00:00+01:00", "2017-10-7", "-017-10-07"};
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        int64_t us;
        if (civil_time_parse(texts[i], &us) != -EINVAL)
            fail_msg("%s is taken for a date", texts[i]);
    }
}

static void test_there_and_back(void **state)
{
    char text[40];
    for (int64_t s = 0; s < INT64_C(7258118400); s += 86400 * 7 + 12345) {
        int64_t us;
        assert_int_equal(
            civil_time_parse(civil_time_format(s * SECOND_US, text, sizeof text), &us), 0);
        assert_int_equal(us, s * SECOND_US);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse),
        cmocka_unit_test(test_no_dates),
        cmocka_unit_test(test_there_and_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
