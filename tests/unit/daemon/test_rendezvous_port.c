/* SPDX-License-Identifier: Apache-2.0 */
/* Which port the ranks of a task get. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include "base/tcp_address.h"
#include "daemon/attempts/rendezvous_port.h"

enum { TASK = 4711, RUNNING_MAX = 500 };

static void candidates_are_outside_the_range_of_clients(void **state)
{
    const uint64_t tasks[] = {0, 1, TASK, UINT64_MAX};
    for (size_t i = 0; i < sizeof tasks / sizeof *tasks; i++)
        for (int try = 0; try < 100; try++)
            assert_in_range(rendezvous_port_candidate(tasks[i], try), RENDEZVOUS_PORT_FIRST, 32767);
}

static void tasks_with_near_numbers_begin_at_different_ports(void **state)
{
    for (int i = 1; i < RUNNING_MAX; i++)
        for (int try = 0; try < 2; try++)
            assert_int_not_equal(
                rendezvous_port_candidate(TASK, 0), rendezvous_port_candidate(TASK + i, try));
}

static int listen_at(int port)
{
    char text[TCP_ADDRESS_TEXT_SIZE];
    struct tcp_address address;
    struct fault fault;
    snprintf(text, sizeof text, "127.0.0.1:%d", port);
    assert_int_equal(tcp_address_parse(text, &address), 0);
    return tcp_address_listen(&address, &fault);
}

static void a_port_at_which_a_program_listens_is_passed_over(void **state)
{
    int port = rendezvous_port_find(TASK), fd = listen_at(port);
    assert_true(fd >= 0);
    assert_int_not_equal(rendezvous_port_find(TASK), port);
    close(fd);
    assert_int_equal(rendezvous_port_find(TASK), port);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(candidates_are_outside_the_range_of_clients),
        cmocka_unit_test(tasks_with_near_numbers_begin_at_different_ports),
        cmocka_unit_test(a_port_at_which_a_program_listens_is_passed_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
