/* SPDX-License-Identifier: Apache-2.0 */
/* FNV-1a: known values, and feeding in parts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/hash.h"

/* From the test vectors of draft-eastlake-fnv. */
static void published_vectors(void **state)
{
    assert_true(hash_text(HASH_START, "") == UINT64_C(0xcbf29ce484222325));
    assert_true(hash_text(HASH_START, "a") == UINT64_C(0xaf63dc4c8601ec8c));
    assert_true(hash_text(HASH_START, "foobar") == UINT64_C(0x85944171f73967e8));
    assert_true(hash32_bytes(HASH32_START, "", 0) == UINT32_C(0x811c9dc5));
    assert_true(hash32_bytes(HASH32_START, "a", 1) == UINT32_C(0xe40c292c));
    assert_true(hash32_bytes(HASH32_START, "foobar", 6) == UINT32_C(0xbf9cf968));
}

static void bytes_above_127_are_unsigned(void **state)
{
    assert_true(hash_text(HASH_START, "\xff") == (HASH_START ^ 0xff) * UINT64_C(0x100000001b3));
}

static void parts_give_the_hash_of_the_whole(void **state)
{
    const char *text = "collocation";
    uint64_t whole = hash_text(HASH_START, text);
    for (size_t cut = 0; cut <= strlen(text); cut++) {
        uint64_t first = hash_bytes(HASH_START, text, cut);
        assert_true(hash_text(first, text + cut) == whole);
    }
    assert_true(hash_bytes(HASH_START, NULL, 0) == HASH_START);
}

static void order_matters(void **state)
{
    assert_true(hash_text(HASH_START, "ab") != hash_text(HASH_START, "ba"));
    assert_true(hash_bytes(HASH_START, "a\0b", 3) != hash_bytes(HASH_START, "a\0c", 3));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_vectors),
        cmocka_unit_test(bytes_above_127_are_unsigned),
        cmocka_unit_test(parts_give_the_hash_of_the_whole),
        cmocka_unit_test(order_matters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
