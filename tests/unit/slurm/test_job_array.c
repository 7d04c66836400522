/* SPDX-License-Identifier: Apache-2.0 */
/* The indices of the waiting tasks of an array, read one by one from any text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "slurm/job_array.h"

enum { READ_MAX = 8 };

/* Reads at most READ_MAX indices, and compares them as text. */
static void assert_indices(const char *list, const char *expected)
{
    char text[128] = "";
    size_t used = 0;
    uint32_t index;
    struct job_array_indices indices = job_array_indices(list);
    for (int i = 0; i < READ_MAX && job_array_next(&indices, &index); i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%u", used ? " " : "", index);
    assert_string_equal(text, expected);
}

static void reads_ranges_in_order(void **state)
{
    assert_indices("4", "4");
    assert_indices("0-3", "0 1 2 3");
    assert_indices("0-9:3,12%2", "0 3 6 9 12");
    assert_indices("160,170,1...", "160 170");
    assert_indices("160,170,...", "160 170");
    assert_indices("3,160-1...", "3");
    assert_indices("7,2,9-8,5", "7 2 5"); /* an empty range is passed over */
    assert_indices("1-4000000000", "1 2 3 4 5 6 7 8");
    assert_indices("4294967294", "4294967294");
}

static void ends_at_what_is_no_range(void **state)
{
    assert_indices("", "");
    assert_indices("%2", "");
    assert_indices("x1", "");
    assert_indices("1,-3", "1");
    assert_indices("1,3-,5", "1");
    assert_indices("1,3-5:0", "1");
    assert_indices("1,3-5:,7", "1");
    assert_indices("1;2", "1");
    assert_indices("1,4294967295", "1"); /* SLURM_NO_INDEX */
    assert_indices("1,99999999999999999999999", "1");
}

static void goes_on_saying_that_it_has_ended(void **state)
{
    uint32_t index;
    struct job_array_indices indices = job_array_indices("1,x");
    assert_true(job_array_next(&indices, &index));
    for (int i = 0; i < 3; i++)
        assert_false(job_array_next(&indices, &index));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_ranges_in_order),
        cmocka_unit_test(ends_at_what_is_no_range),
        cmocka_unit_test(goes_on_saying_that_it_has_ended),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
