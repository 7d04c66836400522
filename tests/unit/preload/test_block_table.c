/* SPDX-License-Identifier: Apache-2.0 */
/* The table of blocks: addresses in any order, within and beside blocks, dead ones, thousands. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "preload/block_table.h"

enum { GRAIN = 0x200000, MANY = 10000 };

static struct block block_at(uint64_t i, uint64_t bytes)
{
    return (struct block){.at = i * GRAIN, .bytes = bytes, .mapped_bytes = GRAIN, .handle = i};
}

static void test_an_address_is_found_within_what_was_asked_for(void **state)
{
    struct blocks blocks = {0};
    struct block block = block_at(5, 1000);
    assert_true(blocks_add(&blocks, &block));
    assert_null(blocks_around(&blocks, block.at - 1));
    assert_ptr_equal(blocks_around(&blocks, block.at), blocks.item);
    assert_ptr_equal(blocks_around(&blocks, block.at + 999), blocks.item);
    assert_null(blocks_around(&blocks, block.at + 1000));
    assert_null(blocks_around(&blocks, 0));
    assert_null(blocks_around(&blocks, UINT64_MAX));
    assert_null(blocks_find(&blocks, block.at + 1));
}

static void test_a_dead_block_is_not_found_and_can_be_removed(void **state)
{
    struct blocks blocks = {0};
    struct block block = block_at(5, 1000), removed;
    blocks_add(&blocks, &block);
    blocks_find(&blocks, block.at)->is_dead = true;
    assert_null(blocks_find(&blocks, block.at));
    assert_null(blocks_around(&blocks, block.at));
    assert_true(blocks_remove(&blocks, block.at, &removed));
    assert_int_equal(removed.handle, 5);
    assert_int_equal(blocks.mapped_bytes, 0);
    assert_false(blocks_remove(&blocks, block.at, &removed));
}

static void test_a_shared_block_is_found_by_its_serial(void **state)
{
    struct blocks blocks = {0};
    struct block first = block_at(5, 1000), second = block_at(6, 1000);
    second.serial = 3;
    blocks_add(&blocks, &first);
    blocks_add(&blocks, &second);
    assert_null(blocks_shared(&blocks, 0)); /* a block without a handle has this one */
    assert_ptr_equal(blocks_shared(&blocks, 3), &blocks.item[1]);
    assert_null(blocks_shared(&blocks, 4));
    blocks.item[1].is_dead = true;
    assert_null(blocks_shared(&blocks, 3));
}

/* 7919 is a prime: each number comes once, in a wild order. */
static void test_ten_thousand_blocks(void **state)
{
    struct blocks blocks = {0};
    struct block block;
    for (uint64_t i = 0; i < MANY; i++) {
        block = block_at(1 + i * 7919 % MANY, GRAIN);
        assert_true(blocks_add(&blocks, &block));
    }
    assert_int_equal(blocks.mapped_bytes, (uint64_t)MANY * GRAIN);
    for (size_t i = 0; i < MANY; i++)
        assert_int_equal(blocks.item[i].handle, i + 1);
    for (uint64_t i = 0; i < MANY; i += 2)
        assert_true(blocks_remove(&blocks, (1 + i * 7919 % MANY) * GRAIN, &block));
    assert_int_equal(blocks.count, MANY / 2);
    for (uint64_t i = 1; i < MANY; i += 2)
        assert_non_null(blocks_find(&blocks, (1 + i * 7919 % MANY) * GRAIN));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_address_is_found_within_what_was_asked_for),
        cmocka_unit_test(test_a_dead_block_is_not_found_and_can_be_removed),
        cmocka_unit_test(test_a_shared_block_is_found_by_its_serial),
        cmocka_unit_test(test_ten_thousand_blocks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
