/* SPDX-License-Identifier: Apache-2.0 */
/* The helper's lines: what is written is read back, and nothing else is read. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "checkpoint/helper_line.h"

#define GPU0 "GPU-8f3a1c00-e4a7-4a1e-9b00-000000000000"
#define GPU1 "GPU-8f3a1c00-e4a7-4a1e-9b00-000000000001"

static void same_request(const char *text)
{
    struct helper_request request;
    char line[HELPER_LINE_MAX], wanted[HELPER_LINE_MAX];
    assert_int_equal(helper_request_read(span_of(text), &request), 0);
    assert_true(helper_request_write(&request, line, sizeof line) > 0);
    snprintf(wanted, sizeof wanted, "%s\n", text);
    assert_string_equal(line, wanted);
}

static void test_requests(void **state)
{
    same_request("gpus");
    same_request("inspect 4711 0");
    same_request("state 4711 88123");
    same_request("lock 4711 88123 10000");
    same_request("checkpoint 1 0");
    same_request("reserve 4711 88123 " GPU0 " 7841251328");
    same_request("restore 4711 88123");
    same_request("restore 4711 88123 " GPU0 ">" GPU1);
    same_request("restore 4711 88123 " GPU0 ">" GPU1 "," GPU1 ">" GPU0);
    same_request("release 4711 88123");
    same_request("unlock 4711 88123");
}

static void test_wrong_requests(void **state)
{
    static const char *const wrong[] = {"", "quit", "gpus 1", "state", "state 0 1", "state -1 1",
        "state 4711", "state 4711 -1", "state 4711 1 2", "state 4711x 1", "state 99999999999 1",
        "lock 4711 1", "lock 4711 1 -5", "reserve 1 1 " GPU0, "reserve 1 1 GPU-x 5",
        "reserve 1 1 " GPU0 " 0", "restore 1 1 " GPU0, "restore 1 1 " GPU0 ">" GPU1 ",",
        "restore 1 1 " GPU0 "<" GPU1, "restore 1 1 " GPU0 ">" GPU1 " " GPU0, "STATE 1 1"};
    struct helper_request request;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(helper_request_read(span_of(wrong[i]), &request), -EINVAL);
}

static void test_as_many_moves_as_a_machine_has_gpus(void **state)
{
    struct helper_request request = {.call = HELPER_RESUME, .pid = 1, .n_moves = HELPER_MOVES_MAX};
    char line[HELPER_LINE_MAX + 128];
    for (int i = 0; i < HELPER_MOVES_MAX; i++)
        request.moves[i] = (struct gpu_move){GPU0, GPU1};
    size_t n = helper_request_write(&request, line, HELPER_LINE_MAX);
    assert_true(n > 0);
    assert_int_equal(helper_request_read((struct span){line, n - 1}, &request), 0);
    assert_int_equal(request.n_moves, HELPER_MOVES_MAX);
    snprintf(line + n - 1, sizeof line - n, "," GPU0 ">" GPU1);
    assert_int_equal(helper_request_read(span_of(line), &request), -EINVAL);
}

static void test_replies(void **state)
{
    struct helper_reply reply;
    assert_int_equal(helper_reply_read(span_of("801 310 - CUDA_ERROR X"), &reply), 0);
    assert_int_equal(reply.result, 801);
    assert_int_equal(reply.took_us, 310);
    assert_int_equal(reply.state, PROCESS_UNKNOWN);
    assert_string_equal(reply.text, "CUDA_ERROR X");
    char line[64];
    assert_int_equal(helper_reply_write(&reply, line, sizeof line), 23);
    assert_string_equal(line, "801 310 - CUDA_ERROR X\n");
    assert_int_equal(helper_reply_read(span_of("0 2 suspended"), &reply), 0);
    assert_int_equal(reply.state, PROCESS_SUSPENDED);
    assert_string_equal(reply.text, "");
    assert_int_equal(helper_reply_write(&reply, line, 5), 0);
}

static void test_gpus(void **state)
{
    static const char *const wrong[] = {"", "13000", "13000 ", "-1 " GPU0, "0 " GPU0,
        "99999999999999999999 " GPU0, "2147483648 " GPU0, "nan " GPU0, "13000  " GPU0, "13000 ,,,,",
        "13000 " GPU0 ",,", "13000 " GPU0 "," GPU1 " x"};
    int version = 7;
    size_t n = 7;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(helper_gpus_read(span_of(wrong[i]), &version, &n), -EINVAL);
    assert_true(version == 7 && n == 7);
    assert_int_equal(helper_gpus_read(span_of("13000 " GPU0 "," GPU1), &version, &n), 0);
    assert_true(version == 13000 && n == 2);
}

static void test_wrong_replies(void **state)
{
    static const char *const wrong[] = {
        "", "0", "0 1", "0 1 asleep", "x 1 running", "0 -1 running", "0  1 running"};
    struct helper_reply reply;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(helper_reply_read(span_of(wrong[i]), &reply), -EINVAL);
    assert_int_equal(helper_reply_read((struct span){"0 1 - a\0b", 9}, &reply), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_requests),
        cmocka_unit_test(test_wrong_requests),
        cmocka_unit_test(test_as_many_moves_as_a_machine_has_gpus),
        cmocka_unit_test(test_replies),
        cmocka_unit_test(test_gpus),
        cmocka_unit_test(test_wrong_replies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
