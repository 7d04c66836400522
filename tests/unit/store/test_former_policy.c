/* SPDX-License-Identifier: Apache-2.0 */
/* Event logs that name the policy predictive by its former name are read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "policy/policies.h"
#include "store/event_json.h"

static const struct policy former = {.name = "foresee"}; /* check-words: alias */

static void a_submit_with_the_former_name_is_decoded(void **state)
{
    struct event event = {.kind = EVENT_SUBMIT, .task = 7, .submit.request = {.gpus = 1}};
    struct fault fault = {0};
    json_t *body;
    event.submit.request.policy = &former;
    assert_int_equal(event_encode(&event, &fault, &body), 0);
    struct event read = {.kind = EVENT_SUBMIT, .task = 7};
    assert_int_equal(event_decode(body, policy_find, &fault, &read), 0);
    assert_ptr_equal(read.submit.request.policy, &policy_predictive);
    event_release(&read);
    json_decref(body);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_submit_with_the_former_name_is_decoded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
