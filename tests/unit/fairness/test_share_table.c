/* SPDX-License-Identifier: Apache-2.0 */
/* The file of projects, users and shares: what it means, and each mistake by its line. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/array.h"
#include "fairness/share_table.h"

static struct share_table table;
static struct fault fault;

static int find_user(void *context, const char *name, uint32_t *ret_uid)
{
    static const char *const names[] = {"root", "ada", "bob", "carl"};
    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        if (strcmp(names[i], name) == 0) {
            *ret_uid = (uint32_t)i;
            return 0;
        }
    return strcmp(name, "slow") == 0 ? -ETIMEDOUT : -ENOENT;
}

static int parse(const char *text)
{
    fault.text[0] = '\0';
    return share_table_parse(text, strlen(text), "shares", find_user, NULL, &fault, &table);
}

static void check_user(uint32_t uid, const char *project, int shares)
{
    struct user_shares user = share_table_find(&table, uid);
    assert_int_equal(user.uid, uid);
    assert_string_equal(table.projects[user.project].name, project);
    assert_int_equal(user.shares, shares);
}

static void a_file_is_read(void **state)
{
    assert_int_equal(
        parse("# shares\nproject vision 3\r\nproject speech\n\n"
              "user carl vision 2 # half as much again\n user ada speech\nproject default 5"),
        0);
    assert_int_equal(table.n_projects, 3);
    assert_int_equal(table.projects[0].shares, 5);
    assert_int_equal(table.projects[1].shares, 3);
    assert_int_equal(table.projects[2].shares, 1);
    check_user(3, "vision", 2);
    check_user(1, "speech", 1);
    check_user(2, "default", 1);
    check_user(4000000000u, "default", 1);
}

static double promise_of(uint32_t uid)
{
    return reading_or(share_table_promise(&table, uid), 0);
}

static void a_promise_is_the_users_or_the_projects(void **state)
{
    struct share_table before;
    assert_int_equal(parse("project vision 3 max-slowdown=1.5\nproject speech\n"
                           "user ada vision\nuser bob vision 2 max-slowdown=1.2\n"
                           "user carl vision max-slowdown=none\nuser root speech"),
        0);
    assert_float_equal(promise_of(1), 1.5, 1e-9);
    assert_float_equal(promise_of(2), 1.2, 1e-9);
    assert_false(share_table_promise(&table, 3).valid);
    assert_false(share_table_promise(&table, 0).valid);
    assert_false(share_table_promise(&table, 77).valid); /* of the project default */
    check_user(2, "vision", 2);
    before = table;
    assert_int_equal(parse("project default max-slowdown=3"), 0);
    assert_float_equal(promise_of(77), 3, 1e-9);
    assert_false(share_table_equal(&before, &table));
    table = before;
    table.users[2].promise.slowdown_max = 2;
    assert_false(share_table_equal(&before, &table));
    table = before;
    table.projects[1].promise.slowdown_max = 2;
    assert_false(share_table_equal(&before, &table));
}

static void without_a_file_all_are_equal(void **state)
{
    struct share_table empty;
    share_table_init(&table);
    check_user(1, "default", 1);
    assert_int_equal(share_table_parse("", 0, "shares", find_user, NULL, &fault, &empty), 0);
    assert_true(share_table_equal(&table, &empty));
}

static void each_mistake_names_its_line(void **state)
{
    static const struct {
        const char *text;
        int error;
        const char *says;
    } mistakes[] = {
        {"project a -1", EINVAL, "shares:1: '-1': shares are a whole number from 1 to 1000000"},
        {"project a 0", EINVAL, "'0': shares"},
        {"project a 1000001", EINVAL, "'1000001': shares"},
        {"project a 0.5", EINVAL, "'0.5': shares"},
        {"project a 99999999999999999999", EINVAL, "shares are a whole number"},
        {"project", EINVAL, "expected 'project NAME [SHARES] [max-slowdown=TIMES]'"},
        {"project a 1 2", EINVAL, "expected 'project NAME [SHARES]"},
        {"project a/b 1", EINVAL, "a project's name has letters"},
        {"project a123456789012345678901234567890123 1", EINVAL, "at most 31"},
        {"project a 1\nproject a 2", EINVAL, "shares:2: project a: named twice"},
        {"user ada", EINVAL, "expected 'user NAME PROJECT [SHARES]"},
        {"user ada vision", EINVAL, "'vision': no such project"},
        {"user unknown-user default", ENOENT, "'unknown-user': there is no such user"},
        {"user slow default", ETIMEDOUT, "'slow': the user cannot be looked up"},
        {"user ada default -1", EINVAL, "'-1': shares"},
        {"user ada default\nuser ada default 2", EINVAL, "shares:2: user ada: named twice"},
        {"user ada default 1 1", EINVAL, "expected 'user NAME PROJECT [SHARES]"},
        {"user ada default 1 1 1", EINVAL, "more words than expected"},
        {"project a max-slowdown=0.9", EINVAL,
            "shares:1: 'max-slowdown=0.9': a promise of speed is a number from 1 to 100"},
        {"project a max-slowdown=101", EINVAL, "a promise of speed is a number"},
        {"project a max-slowdown=nan", EINVAL, "a promise of speed is a number"},
        {"project a max-slowdown=", EINVAL, "a promise of speed is a number"},
        {"project a max-slowdown=2 3", EINVAL, "expected 'project NAME [SHARES]"},
        {"project max-slowdown=2", EINVAL, "expected 'project NAME"},
        {"max-slowdown=2", EINVAL, "'max-slowdown=2': a line begins with 'project' or 'user'"},
        {"group a", EINVAL, "'group': a line begins with 'project' or 'user'"},
        {"vision:\n  share: 2\n", EINVAL,
            "'vision:': a line begins with 'project' or 'user': the file is not YAML, but has lines "
            "such as 'project vision 2' and 'user ada vision'"},
        {"- ada\n", EINVAL, "the file is not YAML"},
        {"user a1234567890123456789012345678901234567890123456789012345678901234567890 default",
            EINVAL, "a word has at most 63 bytes"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(mistakes); i++) {
        assert_int_equal(parse(mistakes[i].text), -mistakes[i].error);
        if (!strstr(fault.text, mistakes[i].says))
            fail_msg("'%s' says '%s'", mistakes[i].text, fault.text);
    }
    assert_int_equal(
        share_table_parse("user\0ada", 8, "shares", find_user, NULL, &fault, &table), -EINVAL);
}

static void there_is_a_limit_of_projects(void **state)
{
    char text[PROJECTS_MAX * 16] = "";
    for (int i = 1; i < PROJECTS_MAX; i++)
        sprintf(text + strlen(text), "project p%d\n", i);
    assert_int_equal(parse(text), 0);
    strcat(text, "project last\n");
    assert_int_equal(parse(text), -EINVAL);
}

static int find_any_user(void *context, const char *name, uint32_t *ret_uid)
{
    return sscanf(name, "u%u", ret_uid) == 1 ? 0 : -ENOENT;
}

static void there_is_a_limit_of_users(void **state)
{
    static char text[(SHARE_USERS_MAX + 1) * 24];
    size_t n = 0;
    for (int i = SHARE_USERS_MAX; i > 0; i--) /* backwards: they are sorted */
        n += (size_t)sprintf(text + n, "user u%d default %d\n", i, i);
    assert_int_equal(share_table_parse(text, n, "shares", find_any_user, NULL, &fault, &table), 0);
    for (uint32_t uid = 1; uid <= SHARE_USERS_MAX; uid++)
        check_user(uid, "default", (int)uid);
    n += (size_t)sprintf(text + n, "user u0 default\n");
    assert_int_equal(
        share_table_parse(text, n, "shares", find_any_user, NULL, &fault, &table), -EINVAL);
}

static void tables_are_compared(void **state)
{
    struct share_table first;
    assert_int_equal(parse("project a 2\nuser ada a 3"), 0);
    first = table;
    assert_true(share_table_equal(&first, &table));
    static const char *const others[] = {"project a 1\nuser ada a 3", "project b 2\nuser ada b 3",
        "project a 2\nuser ada a 4", "project a 2\nuser bob a 3", "project a 2",
        "project a 2\nproject c\nuser ada a 3"};
    for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
        assert_int_equal(parse(others[i]), 0);
        assert_false(share_table_equal(&first, &table));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_is_read),
        cmocka_unit_test(a_promise_is_the_users_or_the_projects),
        cmocka_unit_test(without_a_file_all_are_equal),
        cmocka_unit_test(each_mistake_names_its_line),
        cmocka_unit_test(there_is_a_limit_of_projects),
        cmocka_unit_test(there_is_a_limit_of_users),
        cmocka_unit_test(tables_are_compared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
