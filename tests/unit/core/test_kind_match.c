/* SPDX-License-Identifier: Apache-2.0 */
/* Kinds that users write, and the names that drivers report. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/array.h"
#include "core/kind_match.h"

static void a_kind_is_words_of_the_name(void **state)
{
    static const struct {
        const char *kinds, *name;
        bool is_of_kind;
    } table[] = {
        {NULL, "NVIDIA H200", true},
        {"", "NVIDIA H200", true},
        {"A100", "NVIDIA A100-SXM4-40GB", true},
        {"a100-40gb", "NVIDIA A100-SXM4-40GB", true},
        {"A100-80GB", "NVIDIA A100-SXM4-40GB", false},
        {"A100-80GB", "NVIDIA A100 80GB PCIe", true},
        {"A10", "NVIDIA A100-SXM4-40GB", false},
        {"L40", "NVIDIA L40S", false},
        {"RTX-3090", "NVIDIA GeForce RTX 3090", true},
        {"RTX-3090", "NVIDIA GeForce RTX 3090 Ti", true},
        {"A6000", "NVIDIA RTX A6000", true},
        {"V100,H100", "NVIDIA H100 80GB HBM3", true},
        {"V100, T4", "Tesla T4", true},
        {"V100,T4", "NVIDIA H100 80GB HBM3", false},
        {"A100", "NVIDIA A100-SXM4-40GB MIG 1g.5gb", true},
        {"A100", "", false},
        {",", "NVIDIA H200", false},
        {",,H200", "NVIDIA H200", true},
        {"-", "NVIDIA H200", false},
        {"\xff", "NVIDIA H200", false},
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++)
        if (kind_match_any(table[i].kinds, table[i].name) != table[i].is_of_kind)
            fail_msg("\"%s\" and \"%s\"", table[i].kinds, table[i].name);
}

static void single_gpus_are_named_by_their_uuids(void **state)
{
    static const char list[] = "@GPU-a,@MIG-b";
    assert_true(kind_names_gpus(list));
    assert_false(kind_names_gpus("A100"));
    assert_false(kind_names_gpus(NULL));
    assert_true(kind_match_gpu(list, "A100", "GPU-a"));
    assert_true(kind_match_gpu(list, "A100", "MIG-b"));
    assert_false(kind_match_gpu(list, "A100", "GPU-"));
    assert_false(kind_match_gpu(list, "A100", "GPU-ab"));
    assert_true(kind_match_gpu("A100", "NVIDIA A100", "GPU-a"));
    assert_true(kind_match_gpu(NULL, "NVIDIA A100", "GPU-a"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(single_gpus_are_named_by_their_uuids),
        cmocka_unit_test(a_kind_is_words_of_the_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
