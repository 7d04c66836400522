/* SPDX-License-Identifier: Apache-2.0 */
/* The figures of `free`, and what is not known. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/units.h"
#include "bench/meminfo.h"

static const char text[] = "MemTotal:         1000 kB\n"
                           "MemFree:           200 kB\n"
                           "MemAvailable:      550 kB\n"
                           "Buffers:            50 kB\n"
                           "Cached:            300 kB\n"
                           "SwapCached:         99 kB\n"
                           "SwapTotal:         400 kB\n"
                           "SwapFree:          300 kB\n"
                           "Shmem:              20 kB\n"
                           "SReclaimable:       40 kB\n";

static double kib(struct reading reading)
{
    assert_true(reading.valid);
    return reading.value / (double)KIB;
}

static void test_as_free_counts(void **state)
{
    struct meminfo memory;
    (void)state;
    meminfo_parse(text, &memory);
    assert_float_equal(kib(memory.total), 1000, 0);
    assert_float_equal(kib(memory.buffers_cache), 390, 0);
    assert_float_equal(kib(memory.used), 410, 0);
    assert_float_equal(kib(memory.available), 550, 0);
    assert_float_equal(kib(memory.shared), 20, 0);
    assert_float_equal(kib(memory.swap_used), 100, 0);
}

static void test_what_is_missing_is_not_known(void **state)
{
    static const char *const texts[] = {"", "MemTotal", "MemTotal:", "MemTotal: x kB\n", "\n\n",
        "MemFree: 5 kB\nMemTotal: 1 kB\nBuffers: 0 kB\nCached: 0 kB\nSReclaimable: 0 kB"};
    struct meminfo memory;
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        meminfo_parse(texts[i], &memory);
        assert_false(memory.used.valid);
        assert_false(memory.swap_used.valid);
    }
    assert_float_equal(kib(memory.total), 1, 0); /* the last one's line is valid */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_as_free_counts),
        cmocka_unit_test(test_what_is_missing_is_not_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
