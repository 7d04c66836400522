/* SPDX-License-Identifier: Apache-2.0 */
/* Records as PyTorch's SummaryWriter (simple_value) and TensorFlow 2's (a tensor with the metadata
 * of the plug-in "scalars") encode them by summary.proto and tensor.proto. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/array.h"
#include "cli/event_records.h"

static const char simple[] = "1e00000000000000d9dc1232090000104032c3da4110032a110a0f0a086c6f73732f"
                             "76616c150000003f3612b84b";
static const char tensor[] = "3200000000000000241956ec090000604032c3da4110092a250a230a086c6f73732f"
                             "76616c420a0801120022040000803e4a0b0a090a077363616c617273bd80c232";

struct seen {
    int n;
    struct event_scalar last;
};

static void on_scalar(void *context, const struct event_scalar *scalar)
{
    struct seen *seen = context;
    seen->n++;
    seen->last = *scalar;
}

static size_t from_hex(const char *text, unsigned char *ret_bytes)
{
    size_t n = strlen(text) / 2;
    for (size_t i = 0; i < n; i++) {
        const char digits[] = {text[2 * i], text[2 * i + 1], '\0'};
        ret_bytes[i] = (unsigned char)strtoul(digits, NULL, 16);
    }
    return n;
}

/* Returns 0 or -EBADMSG of the head or the event. */
static int read_record(const unsigned char *data, size_t size, const char *tag, struct seen *seen)
{
    const struct event_visitor visitor = {seen, on_scalar};
    uint64_t event_size;
    *seen = (struct seen){0};
    int r = event_head_read(data, &event_size);
    if (r < 0)
        return r;
    assert_int_equal(event_size, size - EVENT_HEAD_SIZE - EVENT_TAIL_SIZE);
    return event_read(data + EVENT_HEAD_SIZE, (size_t)event_size, tag, &visitor);
}

static void test_both_forms(void **state)
{
    static const struct {
        const char *text;
        struct event_scalar scalar;
    } rows[] = {{simple, {1796000000.25, 3, 0.5}}, {tensor, {1796000001.5, 9, 0.25}}};
    unsigned char data[128];
    struct seen seen;
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        size_t size = from_hex(rows[i].text, data);
        assert_int_equal(read_record(data, size, "loss/val", &seen), 0);
        assert_int_equal(seen.n, 1);
        assert_true(seen.last.time_s == rows[i].scalar.time_s);
        assert_int_equal(seen.last.step, rows[i].scalar.step);
        assert_true(seen.last.value == rows[i].scalar.value);
        assert_int_equal(read_record(data, size, "loss", &seen), 0);
        assert_int_equal(seen.n, 0);
    }
}

static void test_each_changed_byte_is_found(void **state)
{
    unsigned char data[128];
    struct seen seen;
    (void)state;
    size_t size = from_hex(tensor, data);
    for (size_t i = 0; i < size; i++) {
        data[i] ^= 0x10;
        assert_int_equal(read_record(data, size, "loss/val", &seen), -EBADMSG);
        data[i] ^= 0x10;
    }
}

/* The walk over the fields, behind the checksums: any bytes end it, within them. */
static void test_any_bytes(void **state)
{
    unsigned char record[128];
    struct seen seen;
    const struct event_visitor visitor = {&seen, on_scalar};
    (void)state;
    size_t size = from_hex(tensor, record) - EVENT_HEAD_SIZE;
    srand(1);
    for (int i = 0; i < 20000; i++) {
        size_t n = (size_t)rand() % size;
        unsigned char *data = malloc(n + 1); /* of that size: sanitizers see its end */
        assert_non_null(data);
        memcpy(data, record + EVENT_HEAD_SIZE, n);
        for (int k = rand() % 4; k > 0 && n; k--)
            data[(size_t)rand() % n] = (unsigned char)rand();
        event_fields_read(data, n, "loss/val", &visitor);
        free(data);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_both_forms),
        cmocka_unit_test(test_each_changed_byte_is_found),
        cmocka_unit_test(test_any_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
