/* SPDX-License-Identifier: Apache-2.0 */
/* The text of a signed request: what goes in comes out, and for which request and which controller
 * it is good. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "nodelink/signed_request.h"

static struct signed_request made_for(const char *controller)
{
    struct signed_request request;
    assert_int_equal(signed_request_make(controller, "GET", "/v1/info", "", 0, NULL, &request), 0);
    return request;
}

static void what_goes_in_comes_out(void **state)
{
    struct signed_request request = made_for("ctl1:7491"), read;
    char *text;
    assert_int_equal(signed_request_encode(&request, &text), 0);
    assert_int_equal(signed_request_decode(text, strlen(text), NULL, &read), 0);
    assert_memory_equal(&request, &read, sizeof read);
    assert_true(signed_request_matches(&read, "GET", "/v1/info", "", 0));
    assert_false(signed_request_matches(&read, "GET", "/v1/gpus", "", 0));
    free(text);
}

static void a_text_without_a_controller_is_for_none(void **state)
{
    static const char key[] = "5f1c000000000000000000000000000000000000000000000000000000000000";
    struct signed_request read;
    struct fault fault = {0};
    char text[256];
    snprintf(text, sizeof text, "{\"v\":1,\"for\":\"colloc-slurm\",\"key\":\"%s\"}", key);
    assert_int_equal(signed_request_decode(text, strlen(text), &fault, &read), 0);
    assert_false(signed_request_is_for(&read, "none", 7491));
    assert_false(signed_request_is_for(&read, "ctl1:7491", 7491));
    snprintf(text, sizeof text, "{\"v\":1,\"for\":\"colloc-slurm\",\"to\":7491}");
    assert_int_equal(signed_request_decode(text, strlen(text), &fault, &read), -EINVAL);
    assert_non_null(strstr(fault.text, "to: not a text"));
}

static void it_is_for_one_controller(void **state)
{
    static const struct {
        const char *meant, *name;
        bool is_for;
    } cases[] = {
        {"ctl1:7491", "none", true},
        {"[::1]:7491", "none", true},
        {"ctl1:7492", "none", false},
        {"ctl1", "none", false},
        {"", "none", false},
        {"ctl1:", "none", false},
        {"ctl1:7491x", "none", false},
        {"ctl1:7491", "ctl1:7491", true},
        {"CTL1:7491", "ctl1:7491", true},
        {"ctl1:7400", "ctl1:7400", true}, /* as a tunnel or a proxy forwards it */
        {"ctl2:7491", "ctl1:7491", false},
        {"ctl1:7492", "ctl1:7491", false},
        {"ctl1.example.org:7491", "ctl1:7491", false},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct signed_request request = made_for(cases[i].meant);
        assert_int_equal(signed_request_is_for(&request, cases[i].name, 7491), cases[i].is_for);
    }
}

static void a_long_name_is_refused(void **state)
{
    char name[SIGNED_PLACE_SIZE + 1];
    struct signed_request request;
    memset(name, 'x', SIGNED_PLACE_SIZE);
    name[SIGNED_PLACE_SIZE] = '\0';
    assert_int_equal(signed_request_make(name, "GET", "/", "", 0, NULL, &request), -ENAMETOOLONG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_goes_in_comes_out),
        cmocka_unit_test(a_text_without_a_controller_is_for_none),
        cmocka_unit_test(it_is_for_one_controller),
        cmocka_unit_test(a_long_name_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
