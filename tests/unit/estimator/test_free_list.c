/* SPDX-License-Identifier: Apache-2.0 */
/* Free blocks by size and address, compared with a search of all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>
#include <stdlib.h>

#include "estimator/physics/free_list.h"

enum { BLOCKS = 300, ROUNDS = 20000 };

struct fixture {
    struct free_list list;
    struct block blocks[BLOCKS];
    bool listed[BLOCKS];
    int64_t sizes; /* how many different ones are drawn */
    uint32_t random;
};

static int draw(struct fixture *f, int64_t below)
{
    f->random = f->random * 1664525 + 1013904223;
    return (int)((f->random >> 8) % (uint32_t)below);
}

/* The block that a search of all finds: the smallest, of these the lowest; BLOCK_NONE. */
static int search_all(const struct fixture *f, int64_t size)
{
    int found = BLOCK_NONE;
    for (int i = 0; i < BLOCKS; i++) {
        const struct block *block = &f->blocks[i], *best = &f->blocks[found < 0 ? 0 : found];
        bool is_better = found == BLOCK_NONE || block->size < best->size ||
                         (block->size == best->size && block->address < best->address);
        if (f->listed[i] && block->size >= size && is_better)
            found = i;
    }
    return found;
}

static void assert_find(const struct fixture *f, int64_t size)
{
    const struct size_class *found = free_list_find(&f->list, size);
    int wanted = search_all(f, size);
    assert_int_equal(found ? found->lowest : BLOCK_NONE, wanted);
    assert_true(wanted == BLOCK_NONE || found->size == f->blocks[wanted].size);
}

/* No two addresses are equal. */
static int64_t draw_address(struct fixture *f, int i)
{
    return -(int64_t)draw(f, 1000) * BLOCKS - i;
}

static void add(struct fixture *f, int i)
{
    f->blocks[i].size = 1 + draw(f, f->sizes);
    f->blocks[i].address = draw_address(f, i);
    assert_int_equal(free_list_add(&f->list, f->blocks, i), 0);
    f->listed[i] = true;
}

static void change(struct fixture *f, int i)
{
    struct size_class *class = free_list_find(&f->list, f->blocks[i].size);
    int64_t size, address;
    switch (draw(f, 3)) {
    case 0:
        free_list_remove(&f->list, f->blocks, i);
        f->listed[i] = false;
        break;
    case 1:
        i = class->lowest;
        assert_int_equal(free_list_take(&f->list, f->blocks, class), i);
        f->listed[i] = false;
        break;
    default:
        size = 1 + draw(f, f->sizes);
        address = draw_address(f, i);
        assert_int_equal(free_list_resize(&f->list, f->blocks, class, i, address, size), 0);
        assert_true(f->blocks[i].size == size && f->blocks[i].address == address);
    }
}

static void walk(int64_t sizes)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    f->sizes = sizes;
    for (int round = 0; round < ROUNDS; round++) {
        int i = draw(f, BLOCKS);
        if (f->listed[i])
            change(f, i);
        else
            add(f, i);
        assert_find(f, draw(f, sizes + 2));
    }
    while (f->list.n > 0) {
        int wanted = search_all(f, 0);
        assert_int_equal(free_list_take(&f->list, f->blocks, f->list.classes), wanted);
        f->listed[wanted] = false;
    }
    assert_int_equal(search_all(f, 0), BLOCK_NONE);
    free_list_fini(&f->list);
    free(f);
}

static void test_few_sizes(void **state)
{
    walk(1);
    walk(4);
}

static void test_many_sizes(void **state)
{
    walk(60);
    walk(100000);
}

static void test_empty(void **state)
{
    struct free_list list = {0};
    assert_null(free_list_find(&list, 0));
    free_list_fini(&list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_few_sizes),
        cmocka_unit_test(test_many_sizes),
        cmocka_unit_test(test_empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
