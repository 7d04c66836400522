/* SPDX-License-Identifier: Apache-2.0 */
/* Texts of generic resources as Slurm 22.05 and 24.11 write them, and any other bytes. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "slurmconf/gres_check.h"
#include "slurmconf/gres_text.h"

static void reads_requests_of_jobs(void **state)
{
    int64_t counts[GRES_INDEX_MAX];
    assert_int_equal(gres_count(span_of("gres:gpu:2"), "gpu"), 2);
    assert_int_equal(gres_count(span_of("gres/gpu:a100:3,gres/gpu:1"), "gpu"), 4);
    assert_int_equal(gres_count(span_of("gpu"), "gpu"), 1);
    assert_int_equal(gres_count(span_of("gpu:a100"), "gpu"), 1);
    assert_int_equal(gres_count(span_of_optional(NULL), "gpu"), 0);
    assert_int_equal(gres_counts_by_index(span_of("gres:shard:i2:12"), "shard", counts), 1);
    assert_int_equal(counts[2], 12);
    assert_int_equal(
        gres_counts_by_index(span_of("gres/shard:i0:20,gres/shard:i3:10"), "shard", counts), 2);
    assert_int_equal(counts[0], 20);
    assert_int_equal(counts[3], 10);
}

static void reads_what_nodes_have(void **state)
{
    int64_t counts[GRES_INDEX_MAX];
    const char *text = "gpu:i0:1(S:0-1),gpu:i1:1(IDX:0,2),shard:i0:80(S:0),shard:i1:40";
    assert_int_equal(gres_counts_by_index(span_of(text), "shard", counts), 2);
    assert_int_equal(counts[0], 80);
    assert_int_equal(counts[1], 40);
    assert_int_equal(gres_count(span_of(text), "gpu"), 2);
}

static void reads_the_lists_of_slurm_conf(void **state)
{
    assert_int_equal(gres_count(span_of("gpu:a100:4(S:0-1),nvme:1"), "gpu"), 4);
    assert_int_equal(gres_count(span_of("gpu,gpu:2,gpu:a100"), "gpu"), 4);
    assert_int_equal(gres_count(span_of("gpus:3,nogpu:2"), "gpu"), 0);
    assert_int_equal(gres_count(span_of("gpu:99999999999999999999"), "gpu"), INT32_MAX);
    assert_int_equal(gres_count_typed(span_of("gpu:2,shard:i0:80(S:0),shard:i1:80")), 2);
    assert_int_equal(gres_count_typed(span_of("shard:i2:80,shard:i3:80")), 2);
    assert_int_equal(gres_count_typed(span_of("shard:160")), 0);
}

static void counts_by_device_file(void **state)
{
    static const struct {
        const char *file;
        int number;
    } files[] = {{"/dev/nvidia2", 2}, {"/dev/nvidia63", 63}, {"/dev/nvidia007", 7},
        {"/dev/nvidia64", -1}, {"/dev/nvidia", -1}, {"", -1}, {"/dev/nvidia[0-1]", -1},
        {"/dev/nvidia99999999999999999999", -1}, {"/dev/nvidia-caps/nvidia-cap21", -1}};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        assert_int_equal(gres_file_number(span_of(files[i].file)), files[i].number);
}

static void finds_types_of_other_numbers(void **state)
{
    static const char text[] = "NodeName=n1 Name=gpu Type=i2 File=/dev/nvidia2\n"
                               "NodeName=n1 Name=shard Type=i2 Count=80 File=/dev/nvidia2\n"
                               "NodeName=n[2-3] Name=gpu Type=i0 File=/dev/nvidia2 Cores=0-7\n"
                               "NodeName=n4 Name=gpu Type=a100 File=/dev/nvidia5\n"
                               "NodeName=n5 Name=gpu Type=i0 File=/dev/nvidia[0-1]\n";
    struct fault fault = {.text = ""};
    uint64_t numbers;
    assert_int_equal(gres_check_numbers(span_of(text), "n1", &fault, &numbers), 0);
    assert_int_equal(gres_check_numbers(span_of(text), "n4", &fault, &numbers), 0);
    assert_true(numbers == 0);
    assert_int_equal(gres_check_numbers(span_of(text), "n1", &fault, &numbers), 0);
    assert_true(numbers == 1 << 2);
    assert_int_equal(gres_check_numbers(span_of(text), "n5", &fault, &numbers), 0);
    assert_int_equal(gres_check_numbers(span_of(text), "n3", &fault, &numbers), -EINVAL);
    assert_non_null(strstr(fault.text, "gres.conf gives /dev/nvidia2 the type i0"));
    assert_non_null(strstr(fault.text, "colloc slurm setup"));
    assert_int_equal(gres_check_numbers(span_of(text), NULL, &fault, &numbers), -EINVAL);
    assert_int_equal(
        gres_check_numbers(span_of("Name=gpu Type=i1 File=/dev/nvidia0"), "n1", &fault, &numbers),
        -EINVAL);
}

static void assert_typed(const char *list, uint64_t gpus, const char *want)
{
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    gres_write_typed(out, span_of(list), gpus, 80);
    fclose(out);
    assert_string_equal(text, want);
    free(text);
}

static void writes_typed_lists(void **state)
{
    assert_typed("gpu:1", 1, "gpu:i0:1,shard:i0:80");
    assert_typed("gpu:2", UINT64_C(1) << 2 | UINT64_C(1) << 63,
        "gpu:i2:1,gpu:i63:1,shard:i2:80,shard:i63:80");
    assert_typed("gpu:a100:2(S:0,1),x:1(S:0,1),,shard:20", 3,
        "x:1(S:0,1),gpu:i0:1,gpu:i1:1,shard:i0:80,shard:i1:80");
    assert_typed("bandwidth:lustre:no_consume:4G,gpu:1", 1,
        "bandwidth:lustre:no_consume:4G,gpu:i0:1,shard:i0:80");
}

static void skips_what_is_no_item(void **state)
{
    static const char *const texts[] = {"", ",", ":::", "shard:i1:x", "shard:i1:1:2", "(", "a(b,c",
        "shard:i1:-3", "gres:", "shard:i99:4", "shard:i:4", "shard:i1x:4", "\xff\xfe,\x01"};
    int64_t counts[GRES_INDEX_MAX];
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        assert_int_equal(gres_counts_by_index(span_of(texts[i]), "shard", counts), 0);
    assert_int_equal(gres_counts_by_index(span_of("shard:i1:x,shard:i2:5"), "shard", counts), 1);
}

static void writes_shards_of_gpus(void **state)
{
    char text[128];
    assert_true(gres_format_shards(UINT64_C(1) << 2, 12, text, sizeof text));
    assert_string_equal(text, "gres:shard:i2:12");
    assert_true(gres_format_shards(0x9, 20, text, sizeof text));
    assert_string_equal(text, "gres:shard:i0:20,gres:shard:i3:20");
    assert_false(gres_format_shards(UINT64_MAX, 20, text, sizeof text));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(reads_requests_of_jobs),
        cmocka_unit_test(reads_what_nodes_have), cmocka_unit_test(skips_what_is_no_item),
        cmocka_unit_test(writes_shards_of_gpus), cmocka_unit_test(reads_the_lists_of_slurm_conf),
        cmocka_unit_test(writes_typed_lists), cmocka_unit_test(counts_by_device_file),
        cmocka_unit_test(finds_types_of_other_numbers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
