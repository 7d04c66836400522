/* SPDX-License-Identifier: Apache-2.0 */
/* The k best of a stream: order, ties, limits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/array.h"
#include "base/top_k.h"

struct offer {
    int price, number;
};

static bool is_cheaper(const void *a, const void *b, const void *context)
{
    const int *discounts = context;
    const struct offer *x = a, *y = b;
    return x->price - discounts[x->number] < y->price - discounts[y->number];
}

static const int no_discount[16];

static size_t insert_all(
    const int *prices, size_t n, size_t limit, const int *discounts, struct offer *best)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i++) {
        struct offer offer = {prices[i], (int)i};
        count = top_k_insert(best, count, limit, sizeof *best, &offer, is_cheaper, discounts);
        assert_true(count <= limit);
    }
    return count;
}

static void assert_numbers(const struct offer *best, const int *numbers, size_t n)
{
    for (size_t i = 0; i < n; i++)
        assert_int_equal(best[i].number, numbers[i]);
}

static void keeps_the_best_in_order(void **state)
{
    struct offer best[4] = {[3] = {-1, -1}};
    size_t n = insert_all((const int[]){5, 9, 1, 7, 3}, 5, 3, no_discount, best);
    assert_int_equal(n, 3);
    assert_numbers(best, (const int[]){2, 4, 0}, 3);
    assert_int_equal(best[3].number, -1); /* nothing is written beyond the limit */
}

static void fewer_candidates_than_the_limit(void **state)
{
    struct offer best[8];
    assert_int_equal(insert_all((const int[]){2, 1}, 2, 8, no_discount, best), 2);
    assert_numbers(best, (const int[]){1, 0}, 2);
}

static void equal_candidates_stay_in_their_order(void **state)
{
    struct offer best[3];
    assert_int_equal(insert_all((const int[]){4, 4, 4, 4, 1}, 5, 3, no_discount, best), 3);
    assert_numbers(best, (const int[]){4, 0, 1}, 3);
}

static void limits_of_one_and_none(void **state)
{
    struct offer best[2] = {{-1, -1}, {-1, -1}};
    assert_int_equal(insert_all((const int[]){3, 2, 2, 5}, 4, 0, no_discount, best), 0);
    assert_int_equal(best[0].number, -1);
    assert_int_equal(insert_all((const int[]){3, 2, 2, 5}, 4, 1, no_discount, best), 1);
    assert_int_equal(best[0].number, 1);
    assert_int_equal(best[1].number, -1);
}

static void the_comparison_gets_its_context(void **state)
{
    const int discounts[16] = {[1] = 8};
    struct offer best[2];
    assert_int_equal(insert_all((const int[]){5, 9, 3}, 3, 2, discounts, best), 2);
    assert_numbers(best, (const int[]){1, 2}, 2);
}

/* Every order of six prices with a repeated one, against choosing the least again and again. */
static void agrees_with_selection(void **state)
{
    for (int seed = 0; seed < 720; seed++) {
        int prices[6] = {1, 2, 2, 3, 4, 5};
        for (int i = 5, rest = seed; i > 0; rest /= i + 1, i--) {
            int j = rest % (i + 1), swapped = prices[i];
            prices[i] = prices[j];
            prices[j] = swapped;
        }
        struct offer best[4];
        bool taken[6] = {0};
        assert_int_equal(insert_all(prices, ARRAY_SIZE(prices), 4, no_discount, best), 4);
        for (int k = 0; k < 4; k++) {
            int least = -1;
            for (int i = 0; i < 6; i++)
                if (!taken[i] && (least < 0 || prices[i] < prices[least]))
                    least = i;
            taken[least] = true;
            assert_int_equal(best[k].number, least);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_the_best_in_order),
        cmocka_unit_test(fewer_candidates_than_the_limit),
        cmocka_unit_test(equal_candidates_stay_in_their_order),
        cmocka_unit_test(limits_of_one_and_none),
        cmocka_unit_test(the_comparison_gets_its_context),
        cmocka_unit_test(agrees_with_selection),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
