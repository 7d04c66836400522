/* SPDX-License-Identifier: Apache-2.0 */
/* Moments as people type them, in a zone with summer time. */
#include "base/array.h"
#include "base/moment.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

enum { HOUR = 3600, DAY = 24 * HOUR };

/* 2026-11-22 13:30:00 in Copenhagen, which is UTC + 1 h then. */
static const int64_t NOW = 1795350600;
static const int64_t TODAY = 1795350600 - 13 * HOUR - 1800;

static int set_zone(void **state)
{
    setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1);
    tzset();
    return 0;
}

static void test_moments(void **state)
{
    const struct {
        const char *text;
        int64_t moment;
    } good[] = {
        {"now", NOW}, {"today", TODAY}, {"yesterday", TODAY - DAY}, {"2026-11-20", TODAY - 2 * DAY},
        {"2026-11-20 16:05", TODAY - 2 * DAY + 16 * HOUR + 300},
        {"2026-11-20T16:05:07", TODAY - 2 * DAY + 16 * HOUR + 307},
        {"08:15", TODAY + 8 * HOUR + 900}, {"23:59:59", TODAY + DAY - 1}, {"2h", NOW - 2 * HOUR},
        {"7d", NOW - 7 * DAY}, {"1h30m", NOW - 5400}, {"90min", NOW - 5400},
        {"now-1day", NOW - DAY}, {"now-2hours", NOW - 2 * HOUR}, {"now-60", NOW - 60},
        {"midnight", TODAY}, {"@1700000000", 1700000000},
        {"2026-07-01", TODAY - 144 * DAY - HOUR}, /* summer time */
    };
    for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
        int64_t moment = -1;
        if (moment_parse(good[i].text, NOW, &moment) != 0 || moment != good[i].moment)
            fail_msg(
                "%s: %lld, not %lld", good[i].text, (long long)moment, (long long)good[i].moment);
    }
}

static void test_refuses(void **state)
{
    static const char *const bad[] = {"", "2", "soon", "Yesterday", "2026-13-01", "2026-11",
        "2026-11-20x", "2026-11-20 25:00", "25:00", "12:60", "-2h", "h", "2 h", "@", "@x", "@-1",
        "2h ago", "n", "now-", "now-x", "now-1dayx", "1:2:3:4"};
    int64_t moment = 7;
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        if (moment_parse(bad[i], NOW, &moment) >= 0)
            fail_msg("'%s' was taken for a moment", bad[i]);
    assert_int_equal(moment_parse("2026-02-30", NOW, &moment), -ERANGE);
    assert_int_equal(moment_parse("@99999999999999999999", NOW, &moment), -ERANGE);
}

static void test_moments_to_come(void **state)
{
    const struct {
        const char *text;
        int64_t moment;
    } good[] = {
        {"now", NOW},
        {"now+2h", NOW + 2 * HOUR},
        {"2h", NOW + 2 * HOUR},
        {"now+60", NOW + 60},
        {"now+2hours", NOW + 2 * HOUR},
        {"now+1day", NOW + DAY},
        {"now+90min", NOW + 5400},
        {"now+1week", NOW + 7 * DAY},
        {"16:00", TODAY + 16 * HOUR},
        {"13:00", TODAY + DAY + 13 * HOUR},
        {"tomorrow", TODAY + DAY},
        {"2026-11-23", TODAY + DAY},
        {"2026-11-23T08:30", TODAY + DAY + 8 * HOUR + 1800},
        {"2026-11-20", TODAY - 2 * DAY},
        {"@1800000000", 1800000000},
    };
    static const char *const bad[] = {"", "2", "now+", "now+x", "now+2hoursx", "now+-2h", "25:00",
        "now+99999999999999999999", "later", "+2h", "yesterday"};
    int64_t moment;
    for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
        moment = -1;
        if (moment_parse_ahead(good[i].text, NOW, &moment) != 0 || moment != good[i].moment)
            fail_msg(
                "%s: %lld, not %lld", good[i].text, (long long)moment, (long long)good[i].moment);
    }
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        if (moment_parse_ahead(bad[i], NOW, &moment) >= 0)
            fail_msg("'%s' was taken for a moment", bad[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_moments, set_zone),
        cmocka_unit_test_setup(test_refuses, set_zone),
        cmocka_unit_test_setup(test_moments_to_come, set_zone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
