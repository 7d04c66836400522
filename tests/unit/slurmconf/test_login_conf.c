/* SPDX-License-Identifier: Apache-2.0 */
/* colloc.conf: what is written is read back, and what an administrator may make of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "slurmconf/login_conf.h"

static int read_text(const char *text, struct login_conf *conf)
{
    return login_conf_read(span_of(text), NULL, conf);
}

static void what_is_written_is_read(void **state)
{
    const struct login_conf written = {"ctl1:7491", "slurm", "/run/munge/other"};
    struct login_conf conf;
    char *text = login_conf_text(&written);
    assert_non_null(text);
    assert_int_equal(read_text(text, &conf), 0);
    assert_string_equal(conf.controller, "ctl1:7491");
    assert_string_equal(conf.user, "slurm");
    assert_string_equal(conf.munge_socket, "/run/munge/other");
    free(text);
}

static void lines_may_be_missing(void **state)
{
    struct login_conf conf;
    assert_int_equal(read_text("", &conf), 0);
    assert_string_equal(conf.controller, "");
    assert_string_equal(conf.user, "root");
    assert_int_equal(read_text("# x\ncontroller = [::1]:1  # here\nLater=1\n", &conf), 0);
    assert_string_equal(conf.controller, "[::1]:1");
    assert_string_equal(conf.munge_socket, "");
}

static void too_long_a_value_is_refused(void **state)
{
    struct login_conf conf;
    struct fault fault = {""};
    char text[600] = "ControllerUser=";
    memset(text + strlen(text), 'x', 500);
    assert_int_equal(login_conf_read(span_of(text), &fault, &conf), -EINVAL);
    assert_non_null(strstr(fault.text, "ControllerUser: not a text of less than 64 bytes"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(lines_may_be_missing),
        cmocka_unit_test(too_long_a_value_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
