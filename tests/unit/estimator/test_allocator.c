/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of PyTorch's caching allocator, one by one; and those of XLA's that differ. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/units.h"
#include "estimator/physics/allocator.h"

static int take(struct allocator *a, int64_t bytes)
{
    int handle = allocator_take(a, bytes);
    assert_true(handle >= 0);
    return handle;
}

static void test_segments_by_size(void **state)
{
    static const struct {
        int64_t request, reserved;
    } cases[] = {
        {1, 2 * MIB},
        {MIB, 2 * MIB},
        {MIB + 1, 20 * MIB},
        {10 * MIB - 1024, 20 * MIB},
        {10 * MIB, 10 * MIB},
        {11 * MIB, 12 * MIB},
        {101 * MIB + 1, 102 * MIB},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct allocator a;
        allocator_init(&a);
        take(&a, cases[i].request);
        assert_int_equal(a.reserved, cases[i].reserved);
        assert_true(a.active >= cases[i].request);
        allocator_fini(&a);
    }
}

static void test_small_requests_share_a_segment(void **state)
{
    struct allocator a;
    allocator_init(&a);
    for (int i = 0; i < 4096; i++)
        take(&a, 1);
    assert_int_equal(a.reserved, 2 * MIB);
    take(&a, 1);
    assert_int_equal(a.reserved, 4 * MIB);
    allocator_fini(&a);
}

/* 19 MiB of a free 20 stay whole: the 1 MiB left over is no block of the large pool. */
static void test_remainders(void **state)
{
    struct allocator a;
    allocator_init(&a);
    int whole = take(&a, 20 * MIB);
    allocator_release(&a, whole);
    int most = take(&a, 19 * MIB);
    assert_int_equal(a.active, 20 * MIB);
    allocator_release(&a, most);
    take(&a, 12 * MIB);
    assert_int_equal(a.active, 12 * MIB);
    take(&a, 8 * MIB);
    assert_int_equal(a.reserved, 20 * MIB);
    allocator_fini(&a);
}

/* Draws sizes of all kinds: of small blocks, of large ones, of segments of their own. */
static int64_t draw_size(uint32_t *state)
{
    static const int64_t scales[] = {600, 300 * 1024, 3 * MIB, 40 * MIB};
    *state = *state * 1664525 + 1013904223;
    return scales[*state >> 30] * (1 + (*state >> 20) % 7);
}

/* Passing memory through leaves what taking and releasing it leaves: the same blocks for all later
 * requests, and the same peak. */
static void test_touch(void **state)
{
    enum { ROUNDS = 4000, HELD = 64 };
    for (int bfc = 0; bfc < 2; bfc++) {
        struct allocator touched, taken;
        int held[HELD], again[HELD];
        uint32_t random = 20;
        (bfc ? allocator_init_bfc : allocator_init)(&touched);
        (bfc ? allocator_init_bfc : allocator_init)(&taken);
        memset(held, 0xff, sizeof held);
        memset(again, 0xff, sizeof again);
        for (int i = 0; i < ROUNDS; i++) {
            int64_t size = draw_size(&random), passing = draw_size(&random);
            int slot = (int)(random >> 8) % HELD;
            allocator_release(&touched, held[slot]);
            allocator_release(&taken, again[slot]);
            held[slot] = take(&touched, size);
            again[slot] = take(&taken, size);
            assert_int_equal(allocator_touch(&touched, passing), 0);
            allocator_release(&taken, take(&taken, passing));
            assert_int_equal(touched.reserved, taken.reserved);
            assert_int_equal(touched.active_peak, taken.active_peak);
            assert_int_equal(touched.blocks[held[slot]].address, taken.blocks[again[slot]].address);
        }
        assert_int_equal(allocator_touch(&touched, -1), -ERANGE);
        allocator_fini(&touched);
        allocator_fini(&taken);
    }
}

static void test_best_fit(void **state)
{
    struct allocator a;
    allocator_init(&a);
    int big = take(&a, 100 * MIB), fitting = take(&a, 40 * MIB);
    allocator_release(&a, big);
    allocator_release(&a, fitting);
    take(&a, 39 * MIB);
    take(&a, 100 * MIB);
    assert_int_equal(a.reserved, 140 * MIB);
    allocator_fini(&a);
}

/* What is free in two segments never serves one request, what is free in one does. */
static void test_merging_stays_in_the_segment(void **state)
{
    struct allocator a;
    allocator_init(&a);
    int whole = take(&a, 60 * MIB);
    allocator_release(&a, whole);
    int parts[3] = {take(&a, 20 * MIB), take(&a, 20 * MIB), take(&a, 20 * MIB)};
    assert_int_equal(a.reserved, 60 * MIB);
    allocator_release(&a, parts[0]);
    allocator_release(&a, parts[2]);
    allocator_release(&a, parts[1]);
    whole = take(&a, 60 * MIB);
    assert_int_equal(a.reserved, 60 * MIB);
    allocator_release(&a, whole);
    int other = take(&a, 62 * MIB);
    allocator_release(&a, other);
    take(&a, 122 * MIB);
    assert_int_equal(a.reserved, 60 * MIB + 62 * MIB + 122 * MIB);
    allocator_fini(&a);
}

/* Of two free blocks of equal size the one in the younger segment serves, which the driver puts
 * below the older. */
static void test_equal_blocks(void **state)
{
    struct allocator a;
    allocator_init(&a);
    int first = take(&a, 60 * MIB), second = take(&a, 60 * MIB);
    allocator_release(&a, first);
    allocator_release(&a, second);
    int third = take(&a, 60 * MIB);
    assert_true(a.blocks[third].address == -128 * MIB);
    allocator_fini(&a);
}

/* What PyTorch's allocator was asked in five steps of real trainings on an H200, and what it took
 * for it. */
static void test_real_trainings(void **state)
{
    static const char *const names[] = {"autoencoder-amp-128", "resnet18-fp32-128", "vgg19-amp-32"};
    static int handles[4096];
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        char path[512];
        struct allocator a;
        int64_t reserved, active, change;
        size_t n = 0;
        snprintf(path, sizeof path, ALLOCATOR_DATA "/%s.txt", names[i]);
        FILE *file = fopen(path, "re");
        assert_non_null(file);
        assert_int_equal(fscanf(file, "%" SCNd64 " %" SCNd64, &reserved, &active), 2);
        allocator_init(&a);
        while (fscanf(file, "%" SCNd64, &change) == 1) {
            assert_true(n < ARRAY_SIZE(handles) && -change <= (int64_t)n);
            if (change > 0)
                handles[n++] = take(&a, change);
            else
                allocator_release(&a, handles[n - (size_t)-change]);
        }
        fclose(file);
        assert_int_equal(a.reserved, reserved);
        assert_int_equal(a.active_peak, active);
        allocator_fini(&a);
    }
}

/* Segments fill the rests of reservations, the lowest first, before the driver reserves more below
 * them. */
static void test_addresses(void **state)
{
    struct address_space space = {0};
    assert_int_equal(address_space_place(&space, 20 * MIB), -32 * MIB);
    assert_int_equal(address_space_place(&space, 40 * MIB), -96 * MIB);
    assert_int_equal(address_space_place(&space, 2 * MIB), -56 * MIB);
    assert_int_equal(address_space_place(&space, 22 * MIB), -54 * MIB);
    assert_int_equal(address_space_place(&space, 2 * MIB), -12 * MIB);
    assert_int_equal(address_space_place(&space, 64 * MIB), -160 * MIB);
    for (int i = 0; i < 3 * ADDRESS_RESTS; i++)
        assert_int_equal(address_space_place(&space, 33 * MIB), -160 * MIB - (i + 1) * 64 * MIB);
}

static void test_impossible_requests(void **state)
{
    struct allocator a;
    allocator_init(&a);
    assert_int_equal(allocator_take(&a, -1), -ERANGE);
    assert_int_equal(allocator_take(&a, ALLOCATOR_REQUEST_MAX + 1), -ERANGE);
    allocator_release(&a, -1);
    assert_int_equal(a.reserved, 0);
    allocator_fini(&a);
}

/* Free lists, neighbours and sums hold together, whatever is taken and given back. */
static void test_random_walk(void **state)
{
    struct allocator a;
    int held[200];
    int64_t sizes[200];
    unsigned seed = 1;
    int64_t active = 0;
    allocator_init(&a);
    for (int i = 0; i < 200; i++)
        held[i] = -1;
    for (int i = 0; i < 20000; i++) {
        seed = seed * 1664525u + 1013904223u;
        int at = (int)((seed >> 8) % 200);
        if (held[at] >= 0) {
            active -= sizes[at];
            allocator_release(&a, held[at]);
            held[at] = -1;
        } else {
            held[at] = take(&a, (int64_t)(seed >> 20) * (seed % 3 ? 100 : 20000));
            sizes[at] = a.blocks[held[at]].size;
            active += sizes[at];
        }
        assert_int_equal(a.active, active);
        assert_true(a.reserved >= a.active);
    }
    for (int i = 0; i < 200; i++)
        allocator_release(&a, held[i]);
    int64_t free_bytes = 0;
    for (int pool = 0; pool < ALLOCATOR_POOLS; pool++)
        while (a.pools[pool].n > 0)
            free_bytes +=
                a.blocks[free_list_take(&a.pools[pool], a.blocks, a.pools[pool].classes)].size;
    assert_int_equal(free_bytes, a.reserved);
    assert_int_equal(a.active, 0);
    allocator_fini(&a);
}

/* BFC: 2 MiB, then twice as much for each further region, and more where a request needs it: that
 * one is not doubled once more. */
static void test_regions_grow(void **state)
{
    static const struct {
        int64_t request, reserved;
    } steps[] = {
        {MIB, 2 * MIB},
        {2 * MIB, 6 * MIB}, /* a region of 4 MiB, split */
        {2 * MIB, 6 * MIB},
        {2 * MIB, 14 * MIB}, /* of 8 MiB */
        {5 * MIB, 14 * MIB},
        {40 * MIB, 78 * MIB}, /* of 64 MiB; the next one has as many */
        {30 * MIB, 142 * MIB},
        {65 * MIB, 270 * MIB},
    };
    struct allocator a;
    allocator_init_bfc(&a);
    for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
        take(&a, steps[i].request);
        assert_int_equal(a.reserved, steps[i].reserved);
    }
    allocator_fini(&a);
}

/* BFC: the rest of a block stays in it while it is smaller than the request and than 128 MiB. */
static void test_rests_of_bfc(void **state)
{
    struct allocator a;
    allocator_init_bfc(&a);
    int whole = take(&a, 3 * MIB);
    assert_int_equal(a.blocks[whole].size, 4 * MIB);
    int small = take(&a, 1);
    assert_int_equal(a.blocks[small].size, 256);
    int large = take(&a, 300 * MIB);
    assert_int_equal(a.blocks[large].size, 300 * MIB);
    assert_int_equal(a.reserved, (4 + 4 + 512) * MIB);
    allocator_fini(&a);
}

/* Segments with a block in use stay; the peak does, too. */
static void test_empty_cache(void **state)
{
    struct allocator a;
    allocator_init(&a);
    int kept = take(&a, 12 * MIB), large = take(&a, 100 * MIB), small = take(&a, 1000),
        other = take(&a, 2000);
    assert_int_equal(a.reserved, 114 * MIB);
    allocator_release(&a, large);
    allocator_release(&a, small);
    allocator_empty_cache(&a);
    assert_int_equal(a.reserved, 14 * MIB);
    assert_int_equal(a.reserved_peak, 114 * MIB);
    allocator_release(&a, other);
    allocator_empty_cache(&a);
    allocator_empty_cache(&a);
    assert_int_equal(a.reserved, 12 * MIB);
    take(&a, 100 * MIB);
    assert_int_equal(a.reserved, 112 * MIB);
    allocator_release(&a, kept);
    allocator_fini(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_segments_by_size),
        cmocka_unit_test(test_small_requests_share_a_segment),
        cmocka_unit_test(test_remainders),
        cmocka_unit_test(test_touch),
        cmocka_unit_test(test_best_fit),
        cmocka_unit_test(test_merging_stays_in_the_segment),
        cmocka_unit_test(test_equal_blocks),
        cmocka_unit_test(test_real_trainings),
        cmocka_unit_test(test_addresses),
        cmocka_unit_test(test_impossible_requests),
        cmocka_unit_test(test_random_walk),
        cmocka_unit_test(test_regions_grow),
        cmocka_unit_test(test_rests_of_bfc),
        cmocka_unit_test(test_empty_cache),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
