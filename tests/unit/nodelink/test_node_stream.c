/* SPDX-License-Identifier: Apache-2.0 */
/* Which reports of a node are accepted: newer ones, not too many, whatever its clock shows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "nodelink/line_buffer.h"
#include "nodelink/node_stream.h"

static const int64_t wall_us = 1700000000 * SECOND_US;

static struct node_report report_of(const char *boot, int64_t sequence, int64_t time_us)
{
    struct node_report report = {.node = "n1", .sequence = sequence, .time_us = time_us};
    strcpy(report.boot, boot);
    return report;
}

static int accept_it(struct node_stream *stream, struct node_report report, int64_t now_us)
{
    struct fault fault = {0};
    int r = (int)node_stream_accept(stream, &report, now_us, wall_us, &fault);
    assert_int_equal(r != 0, *fault.text != '\0');
    return r;
}

static void test_sequence(void **state)
{
    struct node_stream stream = {0};
    assert_int_equal(accept_it(&stream, report_of("a", 5, wall_us), SECOND_US), STREAM_ACCEPTED);
    assert_int_equal(accept_it(&stream, report_of("a", 5, wall_us), 2 * SECOND_US), STREAM_OLD);
    assert_int_equal(accept_it(&stream, report_of("a", 4, wall_us + 9), 3 * SECOND_US), STREAM_OLD);
    assert_int_equal(
        accept_it(&stream, report_of("a", 6, wall_us - 9), 4 * SECOND_US), STREAM_ACCEPTED);
}

static void test_another_boot(void **state)
{
    struct node_stream stream = {0};
    accept_it(&stream, report_of("a", 500, wall_us), SECOND_US);
    assert_int_equal(accept_it(&stream, report_of("b", 1, wall_us), 2 * SECOND_US), STREAM_OLD);
    assert_int_equal(
        accept_it(&stream, report_of("b", 1, wall_us + 1), 3 * SECOND_US), STREAM_ACCEPTED);
    assert_int_equal(accept_it(&stream, report_of("a", 501, wall_us), 4 * SECOND_US), STREAM_OLD);
}

static void test_rate(void **state)
{
    struct node_stream stream = {0};
    int accepted = 0;
    for (int i = 0; i < 1000; i++) /* at 100 Hz, for 10 s */
        accepted += accept_it(&stream, report_of("a", i + 1, wall_us),
                        SECOND_US + i * 10 * MS_US) == STREAM_ACCEPTED;
    assert_in_range(accepted, 50 + REPORT_BURST_MAX - 1, 50 + REPORT_BURST_MAX + 1);
    for (int i = 0; i < 100; i++) /* at 1 Hz all */
        assert_int_equal(
            accept_it(&stream, report_of("a", 2000 + i, wall_us), (20 + i) * SECOND_US),
            STREAM_ACCEPTED);
}

static void test_clocks_apart(void **state)
{
    struct node_stream stream = {0};
    accept_it(&stream, report_of("a", 1, wall_us + 9 * SECOND_US), SECOND_US);
    assert_false(node_stream_is_clock_apart(&stream));
    accept_it(&stream, report_of("a", 2, wall_us - 11 * SECOND_US), 2 * SECOND_US);
    assert_true(node_stream_is_clock_apart(&stream));
}

/* ---- lines ---- */

/* As libuv asks for room. */
static uv_buf_t room_of(struct line_buffer *buffer)
{
    uv_handle_t handle = {.data = buffer};
    uv_buf_t room;
    line_buffer_on_room(&handle, 65536, &room);
    return room;
}

static char *add(struct line_buffer *buffer, const char *text)
{
    char *line = NULL;
    for (; *text; text++) { /* a byte at a time */
        uv_buf_t room = room_of(buffer);
        if (room.len == 0)
            return NULL;
        *room.base = *text;
        line = line_buffer_add(buffer, 1);
    }
    return line;
}

static void test_lines(void **state)
{
    struct line_buffer buffer = {.max = 16};
    assert_null(add(&buffer, "ab"));
    assert_string_equal(add(&buffer, "c\n"), "abc");
    assert_string_equal(add(&buffer, "d\ne"), "abc");
    assert_string_equal(line_buffer_next(&buffer), "d");
    assert_null(line_buffer_next(&buffer));
    assert_string_equal(add(&buffer, "f\n\n"), "ef");
    assert_string_equal(line_buffer_next(&buffer), "");
    assert_null(line_buffer_next(&buffer));
    line_buffer_fini(&buffer);
}

static void test_too_long(void **state)
{
    struct line_buffer buffer = {.max = 8};
    assert_null(add(&buffer, "12345678"));
    assert_int_equal(room_of(&buffer).len, 0);
    line_buffer_fini(&buffer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sequence),
        cmocka_unit_test(test_another_boot),
        cmocka_unit_test(test_rate),
        cmocka_unit_test(test_clocks_apart),
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_too_long),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
