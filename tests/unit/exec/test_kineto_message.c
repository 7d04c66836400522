/* SPDX-License-Identifier: Apache-2.0 */
/* The messages of libkineto, byte by byte, and orders as text. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/array.h"
#include "exec/kineto_message.h"

struct message {
    uint64_t size;
    char type[32];
    unsigned char body[64];
};

static struct message context(void)
{
    struct message message = {.size = 16, .type = "ctxt"};
    const int32_t gpu_and_pid[] = {0, 4711};
    memcpy(message.body, gpu_and_pid, sizeof gpu_and_pid);
    return message;
}

static struct message request(int32_t kinds, int32_t n_pids)
{
    struct message message = {.size = 16 + 4 * (uint64_t)n_pids, .type = "req"};
    const int32_t head[] = {kinds, n_pids};
    memcpy(message.body, head, sizeof head);
    return message;
}

static int read_message(const struct message *message, struct kineto_request *ret_request)
{
    return kineto_message_read(message, 40 + (size_t)message->size, ret_request);
}

static void requests_are_read(void **state)
{
    struct kineto_request found;
    struct message message = context();
    assert_int_equal(read_message(&message, &found), 0);
    assert_int_equal(found.kind, KINETO_CONTEXT);
    message = request(3, 2);
    assert_int_equal(read_message(&message, &found), 0);
    assert_int_equal(found.kind, KINETO_REQUEST);
    assert_true(found.wants_activities);
    message = request(1, 2);
    assert_int_equal(read_message(&message, &found), 0);
    assert_false(found.wants_activities);
}

static void other_bytes_are_refused(void **state)
{
    struct kineto_request found;
    struct message message = request(3, 2);
    for (size_t size = 0; size < 64; size++)
        if (size != 64)
            assert_int_equal(kineto_message_read(&message, size, &found), -EBADMSG);
    message.size = UINT64_MAX;
    assert_int_equal(kineto_message_read(&message, 64, &found), -EBADMSG);
    message = request(3, 2);
    const int32_t many = INT32_MAX, negative = -1;
    memcpy(message.body + 4, &many, sizeof many);
    assert_int_equal(read_message(&message, &found), -EBADMSG);
    memcpy(message.body + 4, &negative, sizeof negative);
    assert_int_equal(read_message(&message, &found), -EBADMSG);
    message = context();
    memset(message.type, 'x', sizeof message.type);
    assert_int_equal(read_message(&message, &found), -EBADMSG);
    message = context();
    message.size = 12;
    assert_int_equal(read_message(&message, &found), -EBADMSG);
}

static void answers_have_the_form(void **state)
{
    unsigned char answer[KINETO_MESSAGE_MAX];
    struct message message;
    assert_int_equal(kineto_message_config("A=1\n", answer), 44);
    memcpy(&message, answer, 44);
    assert_int_equal(message.size, 4);
    assert_string_equal(message.type, "req");
    assert_memory_equal(message.body, "A=1\n", 4);
    assert_int_equal(kineto_message_config("", answer), 40);
    assert_int_equal(kineto_message_count(2, answer), 44);
    memcpy(&message, answer, 44);
    assert_string_equal(message.type, "ctxt");
    assert_int_equal(message.body[0], 2);
    static char large[2 * KINETO_MESSAGE_MAX];
    memset(large, 'x', sizeof large - 1);
    assert_int_equal(kineto_message_config(large, answer), KINETO_MESSAGE_MAX);
}

static void configurations_are_libkinetos(void **state)
{
    char text[256];
    assert_string_equal(kineto_config_write(&(struct torch_order){.step = 100, .steps = 5},
                            "/w/colloc-7.torch.json", text, sizeof text),
        "PROFILE_START_ITERATION=100\nACTIVITIES_ITERATIONS=5\n"
        "ACTIVITIES_LOG_FILE=/w/colloc-7.torch.json\n");
    assert_string_equal(
        kineto_config_write(&(struct torch_order){.steps = 5}, "/w/a.json", text, sizeof text),
        "PROFILE_START_ITERATION=0\nPROFILE_START_ITERATION_ROUNDUP=1\nACTIVITIES_ITERATIONS=5\n"
        "ACTIVITIES_LOG_FILE=/w/a.json\n");
    assert_string_equal(kineto_config_write(&(struct torch_order){.duration_ms = 250}, "/w/a.json",
                            text, sizeof text),
        "PROFILE_START_TIME=0\nACTIVITIES_DURATION_MSECS=250\nACTIVITIES_LOG_FILE=/w/a.json\n");
    assert_null(kineto_config_write(
        &(struct torch_order){.steps = 5}, "/w/a\nSIGUSR2_ENABLED=YES", text, sizeof text));
    assert_null(kineto_config_write(&(struct torch_order){.steps = 5}, "/w/a.json", text, 60));
}

static void orders_survive_as_text(void **state)
{
    const struct torch_order order = {INT64_MAX, 100, 5, 0};
    struct torch_order found;
    char text[TORCH_ORDER_TEXT];
    size_t size = torch_order_format(&order, text);
    assert_int_equal(torch_order_parse((struct span){text, size}, &found), 0);
    assert_memory_equal(&order, &found, sizeof order);
    static const char *const wrong[] = {"", "1 2 3", "1 2 3 4 5", "1 2 3 x", "-1 2 3 4", "1  2 3"};
    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
        assert_int_equal(torch_order_parse(span_of(wrong[i]), &found), -EBADMSG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_are_read),
        cmocka_unit_test(other_bytes_are_refused),
        cmocka_unit_test(answers_have_the_form),
        cmocka_unit_test(configurations_are_libkinetos),
        cmocka_unit_test(orders_survive_as_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
