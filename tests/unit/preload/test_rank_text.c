/* SPDX-License-Identifier: Apache-2.0 */
/* The line of a rank in a log, by pages as ranks leave them and by a page of anything. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "preload/message_page.h"
#include "preload/rank_text.h"

/* The page, and what lies behind it. */
static union whole_page {
    struct preload_page page;
    char bytes[PRELOAD_PAGE_SIZE];
} whole;

static char text[RANK_TEXT_SIZE];

static int begin(void **state)
{
    memset(&whole, 0, sizeof whole);
    return 0;
}

static void test_no_rank(void **state)
{
    rank_text_write(&whole.page, text, sizeof text);
    assert_string_equal(text, "0 calls of NCCL; gate open, 0 calls within; memory in no block");
}

static void test_one_that_is_behind(void **state)
{
    struct preload_calls *calls = preload_page_calls(&whole.page);
    calls->counted = 38;
    calls->allowed = 39;
    calls->channels[0].communicator = whole.page.communicators[2].id = 0xabc7c1e;
    calls->channels[0].ends = message_ends(0, 1);
    calls->channels[0].launched = 11;
    whole.page.communicators[2].launched = 6;
    whole.page.communicators[2].allowed = 7;
    whole.page.communicators[2].n_ranks = 2;
    whole.page.communicators[2].place = 2;
    whole.page.carry_state = PRELOAD_CARRY_IS_HERE;
    rank_text_write(&whole.page, text, sizeof text);
    assert_string_equal(text,
        "38 calls of NCCL, let in to the next; gate open, 0 calls within; memory here; rank 1 of 2 "
        "of 7c1e: 6 of 7 collectives; 0 to 1 of 7c1e: 11");
}

static void test_one_that_waits_for_a_communicator(void **state)
{
    preload_page_calls(&whole.page)->joining = whole.page.collectives_under_way = 1;
    whole.page.gate = PRELOAD_GATE_CLOSED;
    whole.page.in_flight = 1;
    whole.page.communicators[0].id = 5; /* which rank of it is not known */
    rank_text_write(&whole.page, text, sizeof text);
    assert_string_equal(text,
        "0 calls of NCCL, 1 under way, which makes or ends a communicator; gate closed, 1 calls "
        "within; memory in no block; of 0005: 0 collectives");
}

static void test_a_page_of_anything_is_cut(void **state)
{
    memset(&whole, 0xff, sizeof whole);
    rank_text_write(&whole.page, text, sizeof text);
    assert_int_equal(strlen(text), sizeof text - 1);
    assert_non_null(strstr(text, "memory unknown"));
    rank_text_write(&whole.page, text, 1);
    assert_string_equal(text, "");
    rank_text_write(&whole.page, text, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_no_rank, begin),
        cmocka_unit_test_setup(test_one_that_is_behind, begin),
        cmocka_unit_test_setup(test_one_that_waits_for_a_communicator, begin),
        cmocka_unit_test_setup(test_a_page_of_anything_is_cut, begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
