/* SPDX-License-Identifier: Apache-2.0 */
/* Packets between two terminals, and packets that are none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "terminal/link.h"

static int ends[2];

static int open_ends(void **state)
{
    return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, ends);
}

static int close_ends(void **state)
{
    close(ends[0]);
    close(ends[1]);
    return 0;
}

static int receive(struct link_message *message)
{
    return link_receive(ends[1], message);
}

static void packets_arrive_as_they_were_sent(void **state)
{
    struct link_message message;
    const struct link_size size = {50, 132};
    assert_int_equal(receive(&message), -EAGAIN);
    assert_int_equal(link_send(ends[0], LINK_DATA, "abc", 3), 0);
    assert_int_equal(link_send(ends[0], LINK_SIZE, &size, sizeof size), 0);
    assert_int_equal(link_send(ends[0], LINK_DETACH, NULL, 0), 0);
    assert_int_equal(receive(&message), 1);
    assert_int_equal(message.packet, LINK_DATA);
    assert_int_equal(message.size, 3);
    assert_memory_equal(message.data, "abc", 3);
    assert_int_equal(receive(&message), 1);
    assert_int_equal(message.packet, LINK_SIZE);
    assert_memory_equal(message.data, &size, sizeof size);
    assert_int_equal(receive(&message), 1);
    assert_int_equal(message.packet, LINK_DETACH);
}

static void the_end_is_seen(void **state)
{
    struct link_message message;
    close(ends[0]);
    ends[0] = -1;
    assert_int_equal(receive(&message), 0);
}

static void packets_are_read_after_the_other_end_has_gone(void **state)
{
    struct link_message message;
    assert_int_equal(link_send(ends[1], LINK_DETACH, NULL, 0), 0); /* never read */
    assert_int_equal(link_send(ends[0], LINK_DATA, "last words", 10), 0);
    close(ends[0]);
    ends[0] = -1;
    assert_int_equal(receive(&message), 1);
    assert_memory_equal(message.data, "last words", 10);
    assert_int_equal(receive(&message), 0);
}

static void what_is_no_packet_is_refused(void **state)
{
    static char long_packet[2 + LINK_DATA_MAX] = "d";
    struct link_message message;
    const struct {
        const char *bytes;
        size_t size;
    } wrong[] = {{"?", 1}, {"s1", 2}, {"s12345", 6}, {"x", 1}, {"b1", 2}, {"t1", 2},
        {long_packet, sizeof long_packet}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(send(ends[0], wrong[i].bytes, wrong[i].size, 0), wrong[i].size);
        assert_int_equal(receive(&message), -EPROTO);
    }
    assert_int_equal(link_send(ends[0], LINK_DATA, long_packet, LINK_DATA_MAX + 1), -EMSGSIZE);
}

static void a_receiver_that_takes_nothing_is_said(void **state)
{
    static const char bytes[LINK_DATA_MAX];
    int r = 0;
    for (int i = 0; i < 10000 && r == 0; i++)
        r = link_send(ends[0], LINK_DATA, bytes, sizeof bytes);
    assert_int_equal(r, -EAGAIN);
}

static void names_are_random_and_checked(void **state)
{
    char first[LINK_NAME_SIZE], second[LINK_NAME_SIZE];
    assert_int_equal(link_make_name(first), 0);
    assert_int_equal(link_make_name(second), 0);
    assert_string_not_equal(first, second);
    assert_true(link_is_name(first));
    first[strlen(first) - 1] = '/';
    assert_false(link_is_name(first));
    assert_false(link_is_name(""));
    assert_false(link_is_name("colloc-terminal-"));
}

static void a_terminal_connects_by_name(void **state)
{
    struct fault fault;
    struct link_message message;
    char name[LINK_NAME_SIZE];
    assert_int_equal(link_make_name(name), 0);
    assert_int_equal(link_connect(name, &fault), -ECONNREFUSED);
    int listener = link_listen(name, &fault);
    assert_true(listener >= 0);
    assert_int_equal(link_listen(name, &fault), -EADDRINUSE);
    int user = link_connect(name, &fault), relay = link_accept(listener);
    assert_true(user >= 0 && relay >= 0);
    assert_int_equal(link_accept(listener), -EAGAIN);
    assert_int_equal(link_send(user, LINK_DATA, "ls\n", 3), 0);
    assert_int_equal(link_receive(relay, &message), 1);
    assert_memory_equal(message.data, "ls\n", 3);
    close(listener);
    close(user);
    close(relay);
}

static void another_user_is_turned_away(void **state)
{
    struct fault fault;
    char name[LINK_NAME_SIZE];
    if (geteuid() != 0)
        skip();
    assert_int_equal(link_make_name(name), 0);
    int listener = link_listen(name, &fault);
    assert_int_equal(seteuid(65534), 0);
    int user = link_connect(name, &fault);
    assert_int_equal(seteuid(0), 0);
    assert_int_equal(user, -EPERM); /* the listener is root's */
    assert_int_equal(link_accept(listener), -EPERM);
    close(listener);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(packets_arrive_as_they_were_sent, open_ends, close_ends),
        cmocka_unit_test_setup_teardown(the_end_is_seen, open_ends, close_ends),
        cmocka_unit_test_setup_teardown(
            packets_are_read_after_the_other_end_has_gone, open_ends, close_ends),
        cmocka_unit_test_setup_teardown(what_is_no_packet_is_refused, open_ends, close_ends),
        cmocka_unit_test_setup_teardown(
            a_receiver_that_takes_nothing_is_said, open_ends, close_ends),
        cmocka_unit_test(names_are_random_and_checked),
        cmocka_unit_test(a_terminal_connects_by_name),
        cmocka_unit_test(another_user_is_turned_away),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
