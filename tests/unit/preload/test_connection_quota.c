/* SPDX-License-Identifier: Apache-2.0 */
/* How many connections each user may have. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "preload/connection_quota.h"

/* As many as the user gets. */
static int take_all(struct connection_quota *quota, uid_t uid)
{
    int n = 0;
    for (; connection_quota_check(quota, uid) == CONNECTION_ADMITTED; n++)
        assert_int_equal(connection_quota_add(quota, uid), 0);
    return n;
}

static void test_a_large_sweep(void **state)
{
    struct connection_quota quota;
    connection_quota_init(&quota, 4096);
    assert_int_equal(take_all(&quota, 1000), 32 + 512);
    assert_int_equal(connection_quota_check(&quota, 1000), CONNECTION_USER_FULL);
    connection_quota_remove(&quota, 1000);
    assert_int_equal(take_all(&quota, 1000), 1);
    connection_quota_fini(&quota);
}

static void test_users_who_take_all_keep_none_out(void **state)
{
    struct connection_quota quota;
    connection_quota_init(&quota, 4096);
    for (uid_t uid = 1; uid <= 4; uid++)
        assert_int_equal(take_all(&quota, uid), 544);
    for (uid_t uid = 5; uid <= 64; uid++) {
        assert_int_equal(take_all(&quota, uid), 32);
        assert_int_equal(connection_quota_check(&quota, uid), CONNECTION_ALL_FULL);
    }
    assert_int_equal(take_all(&quota, 65), 0);
    assert_int_equal(quota.count, 4096);
    connection_quota_fini(&quota);
}

static void test_what_is_given_back_is_shared_again(void **state)
{
    struct connection_quota quota;
    connection_quota_init(&quota, 4096);
    for (uid_t uid = 1; uid <= 4; uid++)
        take_all(&quota, uid);
    assert_int_equal(take_all(&quota, 5), 32);
    for (int i = 0; i < 544; i++)
        connection_quota_remove(&quota, 1);
    assert_int_equal(connection_quota_count(&quota, 1), 0);
    connection_quota_remove(&quota, 1); /* has none */
    assert_int_equal(take_all(&quota, 5), 512);
    assert_false(connection_quota_is_beyond(&quota, 1));
    assert_true(connection_quota_is_beyond(&quota, 5));
    connection_quota_fini(&quota);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_large_sweep),
        cmocka_unit_test(test_users_who_take_all_keep_none_out),
        cmocka_unit_test(test_what_is_given_back_is_shared_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
