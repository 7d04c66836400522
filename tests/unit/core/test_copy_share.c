/* SPDX-License-Identifier: Apache-2.0 */
/* The users' shares of the host memory for copies: the example of the header, and what holds for
 * any numbers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/copy_share.h"

enum { USERS_MAX = 5, MIXES = 200 * 1000 };

/* What the user may take more. */
static double left_for(const struct copy_user *users, int n, int of, double max)
{
    const struct copy_share share = copy_share_of(max, users, (size_t)n, users[of].uid);
    return copy_share_left(&share);
}

static void test_the_example(void **state)
{
    const struct copy_user users[] = {{7, 30, 40}, {3, 0, 25}, {9, 0, 8}};
    assert_float_equal(left_for(users, 3, 0, 60), 2, 0);
    assert_float_equal(left_for(users, 3, 1, 60), 30, 0);
    assert_float_equal(left_for(users, 3, 2, 60), 30, 0);
}

static void test_a_single_user_has_all(void **state)
{
    const struct copy_user user = {7, 30, 40};
    assert_float_equal(left_for(&user, 1, 0, 60), 30, 0);
}

/* For a user without tasks nothing is kept. */
static void test_users_who_need_nothing(void **state)
{
    const struct copy_user users[] = {{7, 30, 40}, {3, 0, 0}};
    assert_float_equal(left_for(users, 2, 0, 60), 30, 0);
}

static void test_users_who_need_nothing_have_no_share(void **state)
{
    const struct copy_user users[] = {{7, 30, 40}, {3, 0, 0}, {9, 0, 8}};
    const struct copy_share share = copy_share_of(60, users, 3, 7);
    assert_float_equal(share.share, 30, 0);
    assert_float_equal(share.taken, 30, 0);
    assert_float_equal(share.own, 30, 0);
    assert_float_equal(share.kept, 8, 0);
}

/* Of which nothing is known yet: it counts as one more. */
static void test_a_user_who_is_not_listed(void **state)
{
    const struct copy_user users[] = {{7, 30, 40}};
    const struct copy_share share = copy_share_of(60, users, 1, 3);
    assert_float_equal(share.share, 30, 0);
    assert_float_equal(share.own, 0, 0);
    assert_float_equal(copy_share_left(&share), 30, 0);
    const struct copy_share alone = copy_share_of(60, NULL, 0, 3);
    assert_float_equal(copy_share_left(&alone), 60, 0);
}

/* More is taken than the limit since it was lowered. */
static void test_a_limit_that_was_lowered(void **state)
{
    const struct copy_user users[] = {{7, 30, 40}, {3, 10, 10}};
    assert_float_equal(left_for(users, 2, 0, 20), 0, 0);
    assert_float_equal(left_for(users, 2, 1, 20), 0, 0);
}

/* Shares of five users are smaller than each of their tasks: one of each user may leave. */
static void test_tasks_that_are_larger_than_a_share(void **state)
{
    const struct copy_user users[] = {{1, 30, 30}, {2, 0, 30}, {3, 0, 30}, {4, 0, 30}, {5, 0, 30}};
    assert_float_equal(left_for(users, 5, 0, 100), 0, 0);
    assert_float_equal(left_for(users, 5, 1, 100), 70, 0);
}

static double claims_of_others(const struct copy_user *users, int n, int of, double max)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += i == of ? 0 : copy_share_claim(max / n, users[i].away, users[i].running);
    return sum;
}

/* In whatever order tasks leave: no user gets more than there is, and one that has had its share
 * leaves the others theirs. */
static void test_any_mix(void **state)
{
    srand(1);
    for (int mix = 0; mix < MIXES; mix++) {
        struct copy_user users[USERS_MAX] = {{0}};
        int n = 1 + rand() % USERS_MAX;
        double max = 1 + rand() % 100, taken = 0;
        for (int i = 0; i < n; i++)
            users[i] = (struct copy_user){.uid = (uint32_t)i, .running = 1 + rand() % 60};
        for (int k = 0; k < 20; k++) {
            int i = rand() % n;
            double bytes = rand() % 20;
            bool had_share = users[i].away >= max / n;
            if (bytes > left_for(users, n, i, max) || bytes >= users[i].running)
                continue;
            users[i].away += bytes;
            users[i].running -= bytes;
            taken += bytes;
            assert_true(taken <= max);
            assert_true(!had_share || bytes == 0 ||
                        max - taken >= claims_of_others(users, n, i, max) - 1e-9);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_example),
        cmocka_unit_test(test_a_single_user_has_all),
        cmocka_unit_test(test_users_who_need_nothing),
        cmocka_unit_test(test_users_who_need_nothing_have_no_share),
        cmocka_unit_test(test_a_user_who_is_not_listed),
        cmocka_unit_test(test_a_limit_that_was_lowered),
        cmocka_unit_test(test_tasks_that_are_larger_than_a_share),
        cmocka_unit_test(test_any_mix),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
