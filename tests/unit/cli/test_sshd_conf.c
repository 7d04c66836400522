/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration of a task's sshd: who may log in, and which variables a login gets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/sshd_conf.h"

static char *make(const char *const *environment, const char *keys)
{
    const struct sshd_order order = {"ada", "/home/ada/key", keys, environment};
    char *text = sshd_conf_make(&order);
    assert_non_null(text);
    return text;
}

static void only_the_user_logs_in_by_a_key(void **state)
{
    static const char *const none[] = {NULL};
    char *text = make(none, NULL);
    assert_non_null(strstr(text, "\nAllowUsers ada\n"));
    assert_non_null(strstr(text, "\nPasswordAuthentication no\n"));
    assert_non_null(strstr(text, "\nKbdInteractiveAuthentication no\n"));
    assert_null(strstr(text, "AuthorizedKeysFile"));
    free(text);
    text = make(none, "/home/ada/keys");
    assert_non_null(strstr(text, "\nAuthorizedKeysFile \"/home/ada/keys\"\n"));
    free(text);
}

static void a_login_gets_the_tasks_variables(void **state)
{
    static const char *const environment[] = {"CUDA_VISIBLE_DEVICES=0,1", "A=with blank # and $x",
        "EMPTY=", "QUOTE=a\"b", "LINE=a\nAllowUsers *", "BACK=a\\", "HOME=/x", "SSH_AUTH_SOCK=/y",
        "=z", "NOVALUE", NULL};
    char *text = make(environment, NULL);
    assert_non_null(strstr(text, "SetEnv \"CUDA_VISIBLE_DEVICES=0,1\" \"A=with blank # and $x\" "
                                 "\"EMPTY=\" COLLOC_SSH=1\n"));
    const char *line = strstr(text, "SetEnv");
    assert_null(strstr(line + 1, "SetEnv"));       /* sshd takes the first only */
    assert_string_equal(strchr(line, '\n'), "\n"); /* nothing follows it */
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_the_user_logs_in_by_a_key),
        cmocka_unit_test(a_login_gets_the_tasks_variables),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
