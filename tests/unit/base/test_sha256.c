/* SPDX-License-Identifier: Apache-2.0 */
/* Digests of texts that come in parts, and codes by a key. Whole texts: test_blob.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/array.h"
#include "base/sha256.h"

/* However a text is divided, around the edges of blocks too. */
static void parts_are_the_whole(void **state)
{
    char text[300];
    uint8_t whole[SHA256_SIZE], digest[SHA256_SIZE];
    struct sha256 hash;
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (char)(i * 7);
    sha256_begin(&hash);
    for (size_t i = 0; i < sizeof text; i++)
        sha256_add(&hash, &text[i], 1);
    sha256_end(&hash, whole);
    for (size_t first = 0; first <= sizeof text; first++) {
        size_t second = (sizeof text - first) / 3;
        sha256_begin(&hash);
        sha256_add(&hash, text, first);
        sha256_add(&hash, text + first, second);
        sha256_add(&hash, text + first + second, sizeof text - first - second);
        sha256_end(&hash, digest);
        assert_memory_equal(digest, whole, sizeof digest);
    }
}

/* RFC 4231, test cases 1 to 3, whose shorter keys end in zeros as HMAC fills them. */
static void codes_are_hmac(void **state)
{
    static const struct {
        const char *key, *text;
        uint8_t fill;
        size_t n_fill, key_size;
        uint8_t code[4]; /* the first bytes */
    } cases[] = {
        {"\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b",
            "Hi There", 0, 0, 20, {0xb0, 0x34, 0x4c, 0x61}},
        {"Jefe", "what do ya want for nothing?", 0, 0, 4, {0x5b, 0xdc, 0xc1, 0x46}},
        {"\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa", NULL,
            0xdd, 50, 20, {0x77, 0x3e, 0xa9, 0x1e}},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        uint8_t key[SHA256_SIZE] = {0}, code[SHA256_SIZE], fill[64];
        memcpy(key, cases[i].key, cases[i].key_size);
        memset(fill, cases[i].fill, sizeof fill);
        const void *text = cases[i].text ? (const void *)cases[i].text : fill;
        sha256_hmac(key, text, cases[i].text ? strlen(cases[i].text) : cases[i].n_fill, code);
        assert_memory_equal(code, cases[i].code, sizeof cases[i].code);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_are_the_whole),
        cmocka_unit_test(codes_are_hmac),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
