/* SPDX-License-Identifier: Apache-2.0 */
/* Version files of several drivers, and files that are none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "checkpoint/kernel_module.h"

static bool may_hang(const char *text)
{
    return kernel_module_may_hang(span_of(text));
}

static void test_drivers(void **state)
{
    assert_true(may_hang("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  595.71.05  "
                         "Release Build  (dvs-builder@U22)  Mon Apr  6\nGCC version:  gcc 12.3\n"));
    assert_true(may_hang("NVRM version: NVIDIA UNIX Open Kernel Module for aarch64  610.57.04  R"));
    assert_false(may_hang("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  "
                          "Release Build  (dvs-builder@U22)\nGCC version:  gcc 600.1\n"));
    assert_false(
        may_hang("NVRM version: NVIDIA UNIX x86_64 Kernel Module  595.71.05  Mon Apr  6 2026\n"));
}

static void test_other_texts(void **state)
{
    static const char bytes[] = "Open Kernel Module\0 999.1";
    assert_false(may_hang(""));
    assert_false(may_hang("\n"));
    assert_false(may_hang("Open Kernel Module"));
    assert_false(may_hang("Open Kernel Module for x86_64 600 601"));
    assert_false(may_hang("Open Kernel Module 99999999999999999999.1"));
    assert_false(kernel_module_may_hang((struct span){bytes, sizeof bytes - 1}));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_drivers),
        cmocka_unit_test(test_other_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
