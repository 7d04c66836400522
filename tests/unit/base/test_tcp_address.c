/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses as text, and which host names are a server's own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/tcp_address.h"

static struct tcp_address parsed(const char *text)
{
    struct tcp_address address;
    assert_int_equal(tcp_address_parse(text, &address), 0);
    return address;
}

static void addresses_are_read_and_written(void **state)
{
    static const char *const texts[] = {
        "127.0.0.1:7480", "0.0.0.0:1", "[::1]:80", "[fe80::2]:65535", "10.1.2.3:0"};
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        char text[TCP_ADDRESS_TEXT_SIZE];
        struct tcp_address address = parsed(texts[i]);
        assert_string_equal(tcp_address_format(&address, text), texts[i]);
    }
}

static void others_are_refused(void **state)
{
    static const char *const texts[] = {"", ":", ":80", "127.0.0.1", "127.0.0.1:", "localhost:80",
        "127.0.0.1:65536", "127.0.0.1:-1", "127.0.0.1:x", "::1:80", "[::1:80", "[]:80", "1.2.3:4",
        "[127.0.0.1]:80",
        "[1111:2222:3333:4444:5555:6666:7777:8888:9999:aaaa:bbbb:cccc:dddd:eeee:ffff]:80"};
    struct tcp_address address;
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
        assert_int_equal(tcp_address_parse(texts[i], &address), -EINVAL);
}

static void hosts_with_ports_are_known(void **state)
{
    static const char *const good[] = {
        "ctl1:7491", "ctl1.example.org:1", "10.0.0.1:65535", "[::1]:7491", "my_host-2:80"};
    static const char *const bad[] = {"", ":80", "ctl1", "ctl1:", "ctl1:0", "ctl1:65536", "a/b:80",
        "user@ctl1:80", "ctl1:80/x", "a b:80", "::1:80", "[::1:80", "[]x:80", "[ctl1]:80",
        "a\nb:80", "ctl1:+80"};
    for (size_t i = 0; i < ARRAY_SIZE(good); i++)
        assert_true(tcp_address_is_host_port(good[i]));
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        assert_false(tcp_address_is_host_port(bad[i]));
}

static void loopback_is_known(void **state)
{
    struct tcp_address own = parsed("127.0.0.1:80"), other = parsed("127.3.4.5:80"),
                       six = parsed("[::1]:80"), any = parsed("0.0.0.0:80"),
                       any6 = parsed("[::]:80");
    assert_true(tcp_address_is_loopback(&own) && tcp_address_is_loopback(&other));
    assert_true(tcp_address_is_loopback(&six));
    assert_false(tcp_address_is_loopback(&any) || tcp_address_is_loopback(&any6));
}

static void a_free_port_is_found(void **state)
{
    struct fault fault = {""};
    struct tcp_address address = parsed("127.0.0.1:0"), again;
    char text[TCP_ADDRESS_TEXT_SIZE];
    int fd = tcp_address_listen(&address, &fault);
    assert_true(fd >= 0);
    assert_null(strstr(tcp_address_format(&address, text), ":0"));
    again = address;
    assert_int_equal(tcp_address_listen(&again, &fault), -EADDRINUSE);
    assert_non_null(strstr(fault.text, text));
    close(fd);
}

static void networks_are_addresses_of_v4_and_halves_of_v6(void **state)
{
    static const struct {
        const char *one, *other;
        bool is_same;
    } cases[] = {
        {"10.1.2.3:1", "10.1.2.3:2", true},
        {"10.1.2.3:1", "10.1.2.4:1", false},
        {"[::ffff:10.1.2.3]:1", "10.1.2.3:1", true},
        {"[2001:db8:0:1::1]:1", "[2001:db8:0:1:ffff::2]:1", true},
        {"[2001:db8:0:1::1]:1", "[2001:db8:0:2::1]:1", false},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct tcp_address one = parsed(cases[i].one), other = parsed(cases[i].other);
        assert_int_equal(
            tcp_address_network(&one) == tcp_address_network(&other), cases[i].is_same);
    }
}

/* A page of evil.example whose name resolves to this address is another host. */
static void only_own_names_are_hosts(void **state)
{
    static const char *const good[] = {"localhost", "LOCALHOST:7480", "127.0.0.1", "127.0.0.1:9",
        "[::1]:7480", "10.1.2.3:7480", "10.1.2.3"};
    static const char *const bad[] = {"", "evil.example", "evil.example:7480",
        "localhost.evil.example", "127.0.0.1.evil.example", "localhost:80@evil.example",
        "localhost:80 evil", "10.1.2.4", "localhos", "127.0.0.2", "[::2]", "localhost:80x"};
    struct tcp_address address = parsed("10.1.2.3:7480");
    for (size_t i = 0; i < ARRAY_SIZE(good); i++)
        assert_true(tcp_address_is_host(&address, good[i]));
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        assert_false(tcp_address_is_host(&address, bad[i]));
    assert_false(tcp_address_is_host(&address, NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_are_read_and_written),
        cmocka_unit_test(others_are_refused),
        cmocka_unit_test(hosts_with_ports_are_known),
        cmocka_unit_test(loopback_is_known),
        cmocka_unit_test(a_free_port_is_found),
        cmocka_unit_test(networks_are_addresses_of_v4_and_halves_of_v6),
        cmocka_unit_test(only_own_names_are_hosts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
