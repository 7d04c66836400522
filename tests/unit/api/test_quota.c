/* SPDX-License-Identifier: Apache-2.0 */
/* Quotas of connections and bytes: each user's, all users', root's reserve, unlisted users'. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "api/quota.h"

enum { ADA = 1000, BEN = 1001, UNLISTED = 100000 };

static struct quota quota_of(void)
{
    const struct quota_limits limits = {.connections = 10,
        .connections_reserved = 2,
        .connections_per_user = 4,
        .connections_unproven = 6,
        .bytes = 1000,
        .bytes_reserved = 100,
        .bytes_per_user = 500};
    struct quota quota;
    assert_int_equal(quota_init(&quota, &limits), 0);
    return quota;
}

static void test_a_user_has_so_many_connections(void **state)
{
    struct quota quota = quota_of();
    struct quota_user *user = NULL;
    for (int i = 0; i < 4; i++)
        assert_non_null(user = quota_connect(&quota, ADA, false));
    assert_null(quota_connect(&quota, ADA, false));
    assert_non_null(quota_connect(&quota, BEN, false));
    quota_disconnect(&quota, user);
    assert_non_null(quota_connect(&quota, ADA, false));
    quota_fini(&quota);
}

static void test_connections_without_a_user_have_their_own_limit(void **state)
{
    struct quota quota = quota_of();
    for (int i = 0; i < 6; i++)
        assert_non_null(quota_connect(&quota, QUOTA_UNPROVEN_UID, false));
    assert_null(quota_connect(&quota, QUOTA_UNPROVEN_UID, false));
    assert_non_null(quota_connect(&quota, ADA, false));
    quota_fini(&quota);
}

static void test_root_has_a_reserve_of_connections_and_no_limit_of_its_own(void **state)
{
    struct quota quota = quota_of();
    for (uid_t uid = ADA; uid < ADA + 8; uid++)
        assert_non_null(quota_connect(&quota, uid, false));
    assert_null(quota_connect(&quota, ADA + 8, false));
    assert_non_null(quota_connect(&quota, 0, false));
    assert_non_null(quota_connect(&quota, 0, false));
    assert_null(quota_connect(&quota, 0, false));
    quota_fini(&quota);

    quota = quota_of();
    for (int i = 0; i < 10; i++)
        assert_non_null(quota_connect(&quota, 0, false));
    quota_fini(&quota);
}

static void test_a_peer_without_credentials_is_refused(void **state)
{
    struct quota quota = quota_of();
    assert_null(quota_connect(&quota, (uid_t)-1, false));
    assert_int_equal(quota.connections, 0);
    quota_fini(&quota);
}

static void unlisted_users_count_together(void **state)
{
    struct quota quota = quota_of();
    for (uid_t uid = UNLISTED; uid < UNLISTED + 4; uid++) {
        assert_non_null(quota_connect(&quota, uid, true));
    }
    struct quota_user *late = quota_connect(&quota, UNLISTED + 4, false); /* not known to be one */
    assert_non_null(late);
    assert_true(quota_set_unlisted(&quota, UNLISTED + 4, true));
    assert_false(quota_set_unlisted(&quota, 0, true));
    assert_null(quota_connect(&quota, UNLISTED, true));
    assert_non_null(quota_connect(&quota, ADA, false));

    struct quota_user *first = quota.users;
    assert_int_equal(quota_take(&quota, first, 300), QUOTA_TAKEN);
    assert_int_equal(quota_take(&quota, late, 200), QUOTA_TAKEN);
    assert_int_equal(quota_take(&quota, late, 1), QUOTA_USER_FULL);
    quota_set_unlisted(&quota, UNLISTED, false);
    assert_int_equal(quota_take(&quota, first, 200), QUOTA_TAKEN);
    quota_fini(&quota);
}

static void a_reused_entry_is_not_unlisted(void **state)
{
    struct quota quota = quota_of();
    struct quota_user *user = quota_connect(&quota, UNLISTED, true);
    quota_disconnect(&quota, user);
    user = quota_connect(&quota, ADA, false);
    assert_false(user->is_unlisted);
    quota_fini(&quota);
}

static void test_bytes_have_limits_and_a_reserve(void **state)
{
    struct quota quota = quota_of();
    struct quota_user *ada = quota_connect(&quota, ADA, false),
                      *ben = quota_connect(&quota, BEN, false),
                      *root = quota_connect(&quota, 0, false);
    assert_int_equal(quota_take(&quota, ada, SIZE_MAX), QUOTA_ALL_FULL);
    assert_int_equal(quota_take(&quota, ada, 499), QUOTA_TAKEN);
    assert_int_equal(quota_take(&quota, ada, 2), QUOTA_TAKEN);
    assert_int_equal(quota_take(&quota, ada, 1), QUOTA_USER_FULL);
    quota_give_back(&quota, ada, 501);
    assert_int_equal(quota_take(&quota, ada, 500), QUOTA_TAKEN);
    assert_int_equal(quota_take(&quota, ada, 1), QUOTA_USER_FULL);
    assert_int_equal(quota_take(&quota, ben, 401), QUOTA_ALL_FULL);
    assert_int_equal(quota_take(&quota, ben, 400), QUOTA_TAKEN);
    assert_int_equal(quota_take(&quota, root, 101), QUOTA_ALL_FULL);
    assert_int_equal(quota_take(&quota, root, SIZE_MAX), QUOTA_ALL_FULL);
    assert_int_equal(quota_take(&quota, root, 100), QUOTA_TAKEN);
    quota_give_back(&quota, ada, 500);
    assert_int_equal(quota_take(&quota, root, 500), QUOTA_TAKEN);
    assert_int_equal(quota_take(&quota, ada, 1), QUOTA_ALL_FULL);
    quota_fini(&quota);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_user_has_so_many_connections),
        cmocka_unit_test(test_connections_without_a_user_have_their_own_limit),
        cmocka_unit_test(test_root_has_a_reserve_of_connections_and_no_limit_of_its_own),
        cmocka_unit_test(test_a_peer_without_credentials_is_refused),
        cmocka_unit_test(unlisted_users_count_together),
        cmocka_unit_test(a_reused_entry_is_not_unlisted),
        cmocka_unit_test(test_bytes_have_limits_and_a_reserve),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
