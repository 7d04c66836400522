/* SPDX-License-Identifier: Apache-2.0 */
/* Texts kept once, and their keys. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/sha256.h"
#include "unit.h"

/* The examples of FIPS 180-4 and what lies around the edges of a block (from sha256sum). */
static void keys_are_sha256(void **state)
{
    static const struct {
        const char *text;
        int times;
        const char *hex;
    } cases[] = {
        {"", 1, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", 1, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 1,
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
        {"a", 55, "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318"},
        {"a", 64, "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb"},
        {"a", 1000000, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        size_t length = strlen(cases[i].text), size = length * (size_t)cases[i].times;
        char *data = malloc(size + 1), hex[65];
        for (size_t at = 0; at < size; at++)
            data[at] = cases[i].text[at % length];
        sha256_hex(data, size, hex);
        assert_string_equal(hex, cases[i].hex);
        free(data);
    }
}

static void put(struct store *store, uint64_t task, const char *text, size_t size, char key[65])
{
    struct fault fault = {""};
    if (store_put_blob(store, task, text, size, &fault, key) < 0)
        fail_msg("%s", fault.text);
}

static void assert_kept(struct store *store, const char *key, const char *text, size_t size)
{
    char *data;
    size_t found;
    assert_int_equal(store_get_blob(store, key, NULL, &data, &found), 0);
    assert_int_equal(found, size);
    assert_memory_equal(data, text, size);
    assert_int_equal(data[size], '\0');
    free(data);
}

static void texts_come_back_whatever_they_hold(void **state)
{
    static const char binary[] = "#!\0\xff\n";
    struct store *store = open_log(*state);
    char empty_key[65], binary_key[65], again[65], *data;
    size_t size;
    begin(store);
    put(store, 1, "", 0, empty_key);
    put(store, 1, binary, sizeof binary, binary_key);
    put(store, 2, binary, sizeof binary, again);
    commit(store);
    assert_string_equal(binary_key, again);
    assert_kept(store, empty_key, "", 0);
    assert_kept(store, binary_key, binary, sizeof binary);
    assert_int_equal(store_get_blob(store, "00", NULL, &data, &size), STORE_NONE);
    store_close(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_are_sha256),
        cmocka_unit_test_setup_teardown(
            texts_come_back_whatever_they_hold, make_folder, remove_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
