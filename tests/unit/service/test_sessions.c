/* SPDX-License-Identifier: Apache-2.0 */
/* Logins: bound to their user, good once or for a time, and bounded in number. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "service/sessions.h"

typedef char secret[SESSION_SECRET_SIZE];

static int set_up(void **state)
{
    *state = sessions_create();
    return *state ? 0 : -1;
}

static int tear_down(void **state)
{
    sessions_destroy(*state);
    return 0;
}

static void login(struct sessions *sessions, uid_t uid, int64_t now_us, secret session)
{
    secret token;
    assert_int_equal(sessions_make_token(sessions, uid, 100, now_us, token), 0);
    assert_int_equal(sessions_redeem(sessions, token, now_us, session), 0);
}

static bool is_of(struct sessions *sessions, const char *session, uid_t uid, int64_t now_us)
{
    uid_t found = 12345;
    gid_t gid;
    return sessions_find(sessions, session, now_us, &found, &gid) && found == uid && gid == 100;
}

static void test_a_token_is_good_once(void **state)
{
    secret token, session, again;
    assert_int_equal(sessions_make_token(*state, 1000, 100, 0, token), 0);
    assert_int_equal(strspn(token, "0123456789abcdef"), SESSION_SECRET_SIZE - 1);
    assert_false(is_of(*state, token, 1000, 0)); /* it is no session */
    assert_int_equal(sessions_redeem(*state, token, 0, session), 0);
    assert_int_equal(sessions_redeem(*state, token, 0, again), -EACCES);
    assert_int_equal(sessions_redeem(*state, session, 0, again), -EACCES); /* and that no token */
    assert_true(is_of(*state, session, 1000, 0));
    assert_string_not_equal(token, session);
}

static void test_other_texts_are_nothing(void **state)
{
    static const char *const texts[] = {"", "0", "' OR 1=1",
        "0000000000000000000000000000000000000000000000000000000000000000",
        "00000000000000000000000000000000000000000000000000000000000000000000"};
    secret session;
    login(*state, 1000, 0, session);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        secret unused;
        assert_int_equal(sessions_redeem(*state, texts[i], 0, unused), -EACCES);
        assert_false(is_of(*state, texts[i], 0, 0) || is_of(*state, texts[i], 1000, 0));
    }
    session[10] ^= 1;
    assert_false(is_of(*state, session, 1000, 0));
}

static void test_they_expire(void **state)
{
    secret token, session, unused;
    login(*state, 1000, 0, session);
    assert_true(is_of(*state, session, 1000, SESSION_LIFE_S * SECOND_US - 1));
    assert_false(is_of(*state, session, 1000, SESSION_LIFE_S * SECOND_US));
    assert_int_equal(sessions_make_token(*state, 1000, 100, 0, token), 0);
    assert_int_equal(sessions_redeem(*state, token, SESSION_TOKEN_S * SECOND_US, unused), -EACCES);
}

static void test_a_session_can_be_ended(void **state)
{
    secret session, other;
    login(*state, 1000, 0, session);
    login(*state, 1000, 0, other);
    sessions_end(*state, "0", 0);
    sessions_end(*state, session, 0);
    assert_false(is_of(*state, session, 1000, 0));
    assert_true(is_of(*state, other, 1000, 0));
}

static void test_a_user_has_only_some(void **state)
{
    secret first, other, last;
    login(*state, 1001, 0, other);
    login(*state, 1000, 0, first);
    for (int i = 1; i <= SESSIONS_PER_USER; i++)
        login(*state, 1000, i, last);
    assert_false(is_of(*state, first, 1000, SECOND_US)); /* the oldest made room */
    assert_true(is_of(*state, last, 1000, SECOND_US));
    assert_true(is_of(*state, other, 1001, SECOND_US));
}

static void test_all_users_have_only_some(void **state)
{
    secret token;
    int r = 0;
    uid_t uid = 5000;
    while (r == 0 && uid < 5000 + 2 * SESSIONS_MAX)
        r = sessions_make_token(*state, uid++, 100, 0, token);
    assert_int_equal(r, -EAGAIN);
    assert_int_equal(uid - 5001, SESSIONS_MAX);
    assert_int_equal(sessions_make_token(*state, 1, 100, SESSION_TOKEN_S * SECOND_US, token), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        TEST(test_a_token_is_good_once),
        TEST(test_other_texts_are_nothing),
        TEST(test_they_expire),
        TEST(test_a_session_can_be_ended),
        TEST(test_a_user_has_only_some),
        TEST(test_all_users_have_only_some),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
