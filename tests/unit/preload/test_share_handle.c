/* SPDX-License-Identifier: Apache-2.0 */
/* The form of a handle by which processes share a block, and of its socket's name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "preload/share_handle.h"

static const struct share_key key = {
    0x0123456789abcdef, {UINT64_C(0x1111111111111111), UINT64_C(0x2222222222222222)}};

static CUipcMemHandle as_drivers(const struct share_handle *handle)
{
    CUipcMemHandle bytes;
    memcpy(&bytes, handle, sizeof bytes);
    return bytes;
}

static void a_handle_is_read_back(void **state)
{
    struct share_handle made = share_handle_of(&key, 7), read;
    CUipcMemHandle bytes = as_drivers(&made);
    assert_true(share_handle_read(&bytes, &read));
    assert_true(share_handle_is(&made, &read));
    assert_int_equal(read.serial, 7);
    struct share_handle other = share_handle_of(&key, 8);
    assert_false(share_handle_is(&made, &other));
}

/* Each byte of the magic counts: all others are the driver's. */
static void the_drivers_handles_are_others(void **state)
{
    struct share_handle made = share_handle_of(&key, 7), read;
    for (size_t i = 0; i < sizeof made.magic; i++) {
        CUipcMemHandle bytes = as_drivers(&made);
        bytes.bytes[i] ^= 1;
        assert_false(share_handle_read(&bytes, &read));
    }
    CUipcMemHandle zero = {{0}};
    assert_false(share_handle_read(&zero, &read));
}

static void the_socket_has_an_abstract_name(void **state)
{
    static const char name[] = "\0colloc-share-0123456789abcdef";
    struct sockaddr_un address;
    socklen_t length = share_socket_address(&key, &address);
    assert_int_equal(length, offsetof(struct sockaddr_un, sun_path) + sizeof name - 1);
    assert_memory_equal(address.sun_path, name, sizeof name - 1);
}

static void the_other_end_is_of_this_user(void **state)
{
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
    assert_true(share_peer_is_own_user(pair[0]));
    assert_false(share_peer_is_own_user(-1));
    close(pair[0]);
    close(pair[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_handle_is_read_back),
        cmocka_unit_test(the_drivers_handles_are_others),
        cmocka_unit_test(the_socket_has_an_abstract_name),
        cmocka_unit_test(the_other_end_is_of_this_user),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
