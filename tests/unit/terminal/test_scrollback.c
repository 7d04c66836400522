/* SPDX-License-Identifier: Apache-2.0 */
/* What of a terminal's output is kept, and what a reader sees of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "terminal/scrollback.h"

static struct scrollback ring;

static int clear(void **state)
{
    memset(&ring, 0, sizeof ring);
    return 0;
}

/* Reads all from a position on, piece by piece. Returns how much. */
static size_t read_all(uint64_t position, char *to)
{
    const char *bytes;
    size_t size, sum = 0;
    while ((size = scrollback_peek(&ring, &position, &bytes)) > 0) {
        memcpy(to + sum, bytes, size);
        sum += size;
        position += size;
    }
    return sum;
}

static void a_reader_sees_what_was_added(void **state)
{
    char text[16];
    uint64_t position = 3;
    const char *bytes;
    assert_int_equal(scrollback_peek(&ring, &position, &bytes), 0);
    scrollback_add(&ring, "hello ", 6);
    scrollback_add(&ring, "world", 5);
    assert_int_equal(read_all(0, text), 11);
    assert_memory_equal(text, "hello world", 11);
    assert_int_equal(read_all(6, text), 5);
    assert_memory_equal(text, "world", 5);
}

static void only_the_last_bytes_are_kept(void **state)
{
    static char text[3 * SCROLLBACK_SIZE], seen[SCROLLBACK_SIZE];
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (char)(i * 2654435761u >> 24);
    size_t all = 0;
    for (size_t piece = 1; all + piece <= sizeof text; all += piece, piece += 97)
        scrollback_add(&ring, text + all, piece);
    assert_int_equal(ring.written, all);
    assert_int_equal(scrollback_oldest(&ring), all - SCROLLBACK_SIZE);
    assert_int_equal(read_all(0, seen), SCROLLBACK_SIZE);
    assert_memory_equal(seen, text + all - SCROLLBACK_SIZE, SCROLLBACK_SIZE);
}

static void more_at_once_than_the_ring_holds(void **state)
{
    static char text[2 * SCROLLBACK_SIZE + 5], seen[SCROLLBACK_SIZE];
    memset(text, 'a', sizeof text);
    text[sizeof text - 1] = 'z';
    scrollback_add(&ring, text, sizeof text);
    assert_int_equal(read_all(0, seen), SCROLLBACK_SIZE);
    assert_memory_equal(seen, text + sizeof text - SCROLLBACK_SIZE, SCROLLBACK_SIZE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_reader_sees_what_was_added, clear),
        cmocka_unit_test_setup(only_the_last_bytes_are_kept, clear),
        cmocka_unit_test_setup(more_at_once_than_the_ring_holds, clear),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
