/* SPDX-License-Identifier: Apache-2.0 */
/* The forms of --signal, and any other text. */
#include "taskfile/signal_spec.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/array.h"
#include "base/clock.h"

static void forms_are_read(void **state)
{
    static const struct {
        const char *text;
        int signal;
        int64_t before_s;
        bool script_only;
    } good[] = {
        {"USR1@120", SIGUSR1, 120, false},
        {"SIGUSR2", SIGUSR2, 60, false},
        {"B:TERM@1", SIGTERM, 1, true},
        {"10@30", 10, 30, false},
    };
    for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
        struct signal_spec spec;
        struct fault fault = {0};
        assert_int_equal(signal_spec_parse(good[i].text, &fault, &spec), 0);
        assert_int_equal(spec.signal, good[i].signal);
        assert_int_equal(spec.before_us, good[i].before_s * SECOND_US);
        assert_int_equal(spec.script_only, good[i].script_only);
    }
}

static void other_texts_are_refused(void **state)
{
    static const char *const bad[] = {"", "@", "@60", "USR1@", "USR1@0", "USR1@-5", "USR1@1h",
        "USR3@60", "usr1@60", "0@60", "32@60", "KILL@60", "9@60", "SIGSTOP", "B:", "B:@60",
        "R:USR1", "USR1@99999999999999999999", "SIGSIGUSR1", "AVERYLONGNAMEOFASIGNAL@1"};
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct signal_spec spec;
        struct fault fault = {0};
        if (signal_spec_parse(bad[i], &fault, &spec) != -EINVAL)
            fail_msg("'%s' was read", bad[i]);
        assert_non_null(strstr(fault.text, "signal="));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forms_are_read),
        cmocka_unit_test(other_texts_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
