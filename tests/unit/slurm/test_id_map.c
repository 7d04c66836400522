/* SPDX-License-Identifier: Apache-2.0 */
/* The hash table against a plain array, under insertions and removals anywhere. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "slurm/id_map.h"

enum { KEYS = 500 };

static void finds_what_is_there(void **state)
{
    static int values[KEYS];
    void *expected[KEYS] = {NULL};
    struct id_map map = {0};
    uint32_t random = 1;
    size_t count = 0;
    assert_null(id_map_get(&map, 3));
    id_map_remove(&map, 3);
    for (int i = 0; i < 50000; i++) {
        random = random * 1664525u + 1013904223u;
        uint32_t key = random >> 8 & 0xffff, at = key % KEYS;
        void *value = random & 1 << 30 ? &values[key % 7] : NULL;
        count += (value != NULL) - (expected[at] != NULL);
        expected[at] = value;
        if (value)
            assert_int_equal(id_map_set(&map, (uint64_t)at << 20, value), 0);
        else
            id_map_remove(&map, (uint64_t)at << 20);
        assert_int_equal(map.count, count);
        key = random >> 16 & 0xffff;
        assert_ptr_equal(id_map_get(&map, (uint64_t)(key % KEYS) << 20), expected[key % KEYS]);
    }
    id_map_fini(&map);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(finds_what_is_there)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
