/* SPDX-License-Identifier: Apache-2.0 */
/* Which clock a daemon goes on with after a restart. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "base/clock.h"
#include "daemon/time_base.h"

#define S    SECOND_US
#define YEAR (365 * 86400 * S)
#define WALL (56 * YEAR) /* in 2026 */

static const struct time_base kept = {"boot-1", WALL - 100 * S};

static int64_t choose(
    const struct time_base *base, const char *boot_id, int64_t boot_us, int64_t wall_us)
{
    struct time_now now = {.boot_us = boot_us, .wall_us = wall_us, .last_us = WALL};
    snprintf(now.boot_id, sizeof now.boot_id, "%s", boot_id);
    return boot_us + time_base_choose(base, &now).offset_us;
}

static void the_same_boot_goes_on_whatever_the_wall_clock_shows(void **state)
{
    assert_int_equal(choose(&kept, "boot-1", 110 * S, WALL + 10 * S), WALL + 10 * S);
    assert_int_equal(choose(&kept, "boot-1", 110 * S, WALL + 40 * YEAR), WALL + 10 * S);
    assert_int_equal(choose(&kept, "boot-1", 110 * S, 0), WALL + 10 * S);
}

static void a_new_boot_begins_at_the_wall_clock_or_the_last_event(void **state)
{
    assert_int_equal(choose(&kept, "boot-2", 5 * S, WALL + 60 * S), WALL + 60 * S);
    assert_int_equal(choose(&kept, "boot-2", 5 * S, 0), WALL);
    assert_int_equal(choose(NULL, "boot-1", 110 * S, WALL + 60 * S), WALL + 60 * S);
}

/* As before NTP has answered. */
static void a_leap_of_a_clock_that_nothing_has_set_is_not_believed(void **state)
{
    struct time_now now = {"boot-2", 5 * S, WALL + 40 * YEAR, WALL, false};
    assert_int_equal(5 * S + time_base_choose(&kept, &now).offset_us, WALL);
    now.wall_us = WALL + 86400 * S;
    assert_int_equal(5 * S + time_base_choose(&kept, &now).offset_us, WALL + 86400 * S);
    now.wall_us++;
    assert_int_equal(5 * S + time_base_choose(&kept, &now).offset_us, WALL);
    now.is_synchronised = true;
    assert_int_equal(5 * S + time_base_choose(&kept, &now).offset_us, now.wall_us);
    now = (struct time_now){"boot-2", 5 * S, WALL, 0, false}; /* a new log */
    assert_int_equal(5 * S + time_base_choose(NULL, &now).offset_us, WALL);
}

static void time_never_goes_back_behind_the_log(void **state)
{
    assert_int_equal(choose(&kept, "boot-1", 90 * S, WALL - 20 * S), WALL);
}

static void an_unknown_boot_is_no_boot(void **state)
{
    const struct time_base unknown = {"", WALL};
    assert_int_equal(choose(&unknown, "", 110 * S, WALL + 60 * S), WALL + 60 * S);
}

static void only_a_whole_file_is_read(void **state)
{
    struct time_base base;
    assert_true(time_base_parse("0c7b-11 -500\n", &base));
    assert_string_equal(base.boot_id, "0c7b-11");
    assert_int_equal(base.offset_us, -500);
    static const char *const bad[] = {"", "\n", "boot\n", "boot 5", "boot 5 6\n", "boot x\n",
        "boot 9223372036854775807\n", "boot 99999999999999999999999\n"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(time_base_parse(bad[i], &base));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_boot_goes_on_whatever_the_wall_clock_shows),
        cmocka_unit_test(a_new_boot_begins_at_the_wall_clock_or_the_last_event),
        cmocka_unit_test(a_leap_of_a_clock_that_nothing_has_set_is_not_believed),
        cmocka_unit_test(time_never_goes_back_behind_the_log),
        cmocka_unit_test(an_unknown_boot_is_no_boot),
        cmocka_unit_test(only_a_whole_file_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
