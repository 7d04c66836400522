/* SPDX-License-Identifier: Apache-2.0 */
/* The frame of every decoder of the link: what is refused before a member is read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "nodelink/json_field.h"

/* Returns its member "answer", and counts its calls. */
static int read_answer(const json_t *object, struct fault *fault, void *ret_value)
{
    int *calls = ret_value;
    int64_t answer;
    (*calls)++;
    int r = json_field_integer(object, "answer", -200, 0, fault, &answer);
    return r < 0 ? r : (int)answer;
}

static const struct json_format format = {40, 2, read_answer};

static void members_are_read_of_the_right_version_only(void **state)
{
    static const struct {
        const char *text, *reason;
        int answer, calls;
    } cases[] = {
        {"{\"v\": 2, \"answer\": 0}", "", 0, 1},
        {"{\"v\": 2, \"answer\": -71}", "", -71, 1},
        {"{\"v\": 2, \"answer\": \"no\"}", "answer: not an integer", -EINVAL, 1},
        {"{\"v\": 1, \"answer\": 0}", "not in version 2", -EPROTO, 0},
        {"{\"v\": \"2\", \"answer\": 0}", "not in version 2", -EPROTO, 0},
        {"{\"answer\": 0}", "not in version 2", -EPROTO, 0},
        {"[2]", "not a JSON object", -EINVAL, 0},
        {"{\"v\": 2, \"v\": 2}", "not JSON", -EINVAL, 0},
        {"{\"v\": 2", "not JSON", -EINVAL, 0},
        {"", "not JSON", -EINVAL, 0},
        {"{\"v\": 2, \"answer\": 0, \"more\": \"0123456789\"}", "at most 40", -EMSGSIZE, 0},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct fault fault = {0};
        int calls = 0,
            r = json_field_decode(&format, cases[i].text, strlen(cases[i].text), &fault, &calls);
        assert_int_equal(r, cases[i].answer);
        assert_int_equal(calls, cases[i].calls);
        assert_non_null(strstr(fault.text, cases[i].reason));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_are_read_of_the_right_version_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
