/* SPDX-License-Identifier: Apache-2.0 */
/* What the ledger counts: blocks, handles, mappings. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "preload/ledger.h"

#define MIB (UINT64_C(1) << 20)

static uint64_t held(const struct ledger *ledger)
{
    return ledger->devices[0].held_bytes;
}

static void add_block(struct ledger *ledger, uint64_t address, uint64_t bytes, int device)
{
    const struct ledger_block block = {.bytes = bytes, .device = device};
    ledger_add_block(ledger, address, &block);
}

static void test_blocks(void **state)
{
    struct ledger ledger = {0};
    struct ledger_block block;
    add_block(&ledger, 0x1000, 10 * MIB, 0);
    add_block(&ledger, 0x2000, 5 * MIB, 3);
    assert_false(ledger_remove_block(&ledger, 0x3000, &block));
    assert_true(ledger_remove_block(&ledger, 0x2000, &block));
    assert_int_equal(block.bytes, 5 * MIB);
    assert_int_equal(block.device, 3);
    assert_int_equal(held(&ledger), 10 * MIB);
    assert_int_equal(ledger.devices[3].held_bytes, 0);
    assert_int_equal(ledger.devices[3].peak_bytes, 5 * MIB);
}

static void test_an_address_again_replaces_the_block(void **state)
{
    struct ledger ledger = {0};
    add_block(&ledger, 0x1000, 10 * MIB, 0);
    add_block(&ledger, 0x1000, 3 * MIB, 0);
    assert_int_equal(held(&ledger), 3 * MIB);
    assert_int_equal(ledger.devices[0].peak_bytes, 10 * MIB);
}

static void test_an_unknown_device_makes_it_incomplete(void **state)
{
    struct ledger ledger = {0};
    add_block(&ledger, 0x1000, MIB, PRELOAD_DEVICES_MAX);
    ledger_add_handle(&ledger, 1, MIB, -1);
    assert_true(ledger.incomplete);
    assert_int_equal(ledger.count, 0);
}

static void test_a_handle_lives_as_long_as_its_mappings(void **state)
{
    struct ledger ledger = {0};
    ledger_add_handle(&ledger, 7, 20 * MIB, 0);
    ledger_map(&ledger, 0x100000000, 20 * MIB, 7);
    ledger_map(&ledger, 0x200000000, 20 * MIB, 7);
    ledger_release_handle(&ledger, 7, NULL);
    ledger_unmap(&ledger, 0x100000000, 20 * MIB);
    assert_int_equal(held(&ledger), 20 * MIB);
    ledger_unmap(&ledger, 0x200000000, 20 * MIB);
    assert_int_equal(held(&ledger), 0);
    assert_int_equal(ledger_release_handle(&ledger, 7, NULL), 0); /* an unknown one */
    ledger_map(&ledger, 0x100000000, 20 * MIB, 8);
    assert_int_equal(ledger.count, 0);
}

static void test_what_nccl_has_made_is_counted_apart(void **state)
{
    struct ledger ledger = {0};
    ledger_add_handle(&ledger, 7, 20 * MIB, 0);
    ledger_add_handle(&ledger, 8, 5 * MIB, 0);
    ledger_note_nccl(&ledger, 7);
    ledger_note_nccl(&ledger, 7);
    ledger_note_nccl(&ledger, 9); /* an unknown one */
    assert_int_equal(held(&ledger), 25 * MIB);
    assert_int_equal(ledger.devices[0].nccl_bytes, 20 * MIB);
    ledger_release_handle(&ledger, 7, NULL);
    ledger_release_handle(&ledger, 8, NULL);
    assert_int_equal(ledger.devices[0].nccl_bytes, 0);
}

static void test_a_range_of_mappings_goes_at_once(void **state)
{
    struct ledger ledger = {0};
    for (uint64_t i = 0; i < 10; i++) {
        ledger_add_handle(&ledger, 100 + i, 2 * MIB, 1);
        ledger_map(&ledger, i * 2 * MIB, 2 * MIB, 100 + i);
        ledger_release_handle(&ledger, 100 + i, NULL);
    }
    assert_int_equal(ledger_unmap(&ledger, 4 * MIB, 12 * MIB), 6);
    assert_int_equal(ledger.devices[1].held_bytes, 8 * MIB);
    ledger_unmap(&ledger, 0, 20 * MIB);
    assert_int_equal(ledger.devices[1].held_bytes, 0);
    assert_int_equal(ledger.count, 0);
}

/* Handles of 2 MiB from `address` on, each with its mapping as the only reference. They are random
 * numbers, so that entries of the table collide. */
static void map_many(struct ledger *ledger, uint64_t address, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        uint64_t at = address + i * 2 * MIB, handle = (uint64_t)rand() << 31 | (uint64_t)rand();
        ledger_add_handle(ledger, handle, 2 * MIB, 0);
        ledger_map(ledger, at, 2 * MIB, handle);
        ledger_release_handle(ledger, handle, NULL);
    }
}

/* A program may ask the driver for any range: the time must not depend on it. In a few of the
 * tables, an entry moves to a place that the walk has passed. */
static void test_ranges_larger_than_the_table(void **state)
{
    enum { TABLES = 1000, PAGES = 240 };
    const uint64_t base = UINT64_C(0x7f0000000000);
    const uint64_t ranges[] = {SIZE_MAX, UINT64_C(1) << 47, PAGES * 2 * MIB};
    srand(1);
    for (size_t i = 0; i < TABLES; i++) {
        struct ledger ledger = {0};
        uint64_t range = ranges[i % 3];
        assert_int_equal(ledger_unmap(&ledger, base, range), 0);
        map_many(&ledger, base - 20 * MIB, 10);
        map_many(&ledger, base, PAGES);
        add_block(&ledger, base, MIB, 1);
        assert_int_equal(ledger_unmap(&ledger, base, range), PAGES);
        assert_int_equal(held(&ledger), 20 * MIB);
        assert_int_equal(ledger.devices[1].held_bytes, MIB);
        assert_int_equal(ledger_unmap(&ledger, base, range), 0);
    }
}

static void test_a_large_range_ends_before_the_next_mapping(void **state)
{
    struct ledger ledger = {0};
    map_many(&ledger, 0, 1);
    map_many(&ledger, UINT64_C(1) << 47, 1);
    assert_int_equal(ledger_unmap(&ledger, 0, UINT64_C(1) << 47), 1);
    assert_int_equal(held(&ledger), 2 * MIB);
    assert_int_equal(ledger_unmap(&ledger, 0, (UINT64_C(1) << 47) + 1), 1);
    assert_int_equal(held(&ledger), 0);
}

static void test_a_range_ends_with_the_address_space(void **state)
{
    struct ledger ledger = {0};
    map_many(&ledger, 0, 1);
    assert_int_equal(ledger_unmap(&ledger, UINT64_MAX - MIB + 1, 2 * MIB), 0);
    assert_int_equal(ledger_unmap(&ledger, 2 * MIB, SIZE_MAX), 0);
    assert_int_equal(held(&ledger), 2 * MIB);
}

static void test_a_retained_handle(void **state)
{
    struct ledger ledger = {0};
    ledger_add_handle(&ledger, 7, MIB, 0);
    ledger_retain_handle(&ledger, 7);
    assert_int_equal(ledger_release_handle(&ledger, 7, NULL), 0);
    assert_int_equal(held(&ledger), MIB);
    int device = -1;
    assert_int_equal(ledger_release_handle(&ledger, 7, &device), MIB);
    assert_int_equal(device, 0);
    assert_int_equal(held(&ledger), 0);
}

static void test_blocks_of_one_of_two_contexts_of_a_device(void **state)
{
    struct ledger ledger = {0};
    for (uint64_t i = 1; i <= 3000; i++) {
        const struct ledger_block block = {
            .bytes = MIB, .device = (int)(i % 3), .context = i % 3 == 1 ? 10 + i % 2 : 20};
        ledger_add_block(&ledger, i << 21, &block);
    }
    ledger_remove_blocks_of_context(&ledger, 10);
    assert_int_equal(ledger.devices[0].held_bytes, 1000 * MIB);
    assert_int_equal(ledger.devices[1].held_bytes, 500 * MIB);
    assert_int_equal(ledger.devices[2].held_bytes, 1000 * MIB);
    assert_int_equal(ledger.count, 2500);
}

static void test_blocks_of_a_destroyed_context(void **state)
{
    struct ledger ledger = {0};
    for (uint64_t i = 1; i <= 3000; i++) {
        const struct ledger_block block = {.bytes = MIB, .context = i % 3};
        ledger_add_block(&ledger, i << 21, &block);
    }
    ledger_add_handle(&ledger, 1, MIB, 0);
    ledger_map(&ledger, UINT64_C(1) << 40, MIB, 1); /* its handle is no context */
    ledger_remove_blocks_of_context(&ledger, 1);
    assert_int_equal(held(&ledger), 2001 * MIB);
    ledger_remove_blocks_of_context(&ledger, 0); /* that of these is not known */
    assert_int_equal(held(&ledger), 2001 * MIB);
}

/* Against an array that keeps the same: the table must not lose an entry when others go. */
static void test_it_agrees_with_a_plain_array(void **state)
{
    enum { ADDRESSES = 5000, STEPS = 200000 };
    static uint64_t bytes[ADDRESSES];
    struct ledger ledger = {0};
    uint64_t sum = 0, peak = 0;
    srand(1);
    for (int i = 0; i < STEPS; i++) {
        int k = rand() % ADDRESSES;
        uint64_t address = UINT64_C(0x7f0000000000) + (uint64_t)k * 512;
        sum -= bytes[k];
        struct ledger_block block = {0};
        assert_int_equal(ledger_remove_block(&ledger, address, &block), bytes[k] > 0);
        assert_int_equal(block.bytes, bytes[k]);
        bytes[k] = rand() % 3 ? (uint64_t)(rand() % 1000 + 1) : 0;
        if (bytes[k])
            add_block(&ledger, address, bytes[k], 0);
        sum += bytes[k];
        peak = sum > peak ? sum : peak;
    }
    assert_int_equal(held(&ledger), sum);
    assert_int_equal(ledger.devices[0].peak_bytes, peak);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_an_address_again_replaces_the_block),
        cmocka_unit_test(test_an_unknown_device_makes_it_incomplete),
        cmocka_unit_test(test_blocks_of_a_destroyed_context),
        cmocka_unit_test(test_a_handle_lives_as_long_as_its_mappings),
        cmocka_unit_test(test_what_nccl_has_made_is_counted_apart),
        cmocka_unit_test(test_a_range_of_mappings_goes_at_once),
        cmocka_unit_test(test_ranges_larger_than_the_table),
        cmocka_unit_test(test_a_large_range_ends_before_the_next_mapping),
        cmocka_unit_test(test_a_range_ends_with_the_address_space),
        cmocka_unit_test(test_a_retained_handle),
        cmocka_unit_test(test_blocks_of_one_of_two_contexts_of_a_device),
        cmocka_unit_test(test_it_agrees_with_a_plain_array),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
