/* SPDX-License-Identifier: Apache-2.0 */
/* Texts of generic resources as Slurm 22.05 and 24.11 write them, and any other bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "slurm/gres_text.h"

static void reads_requests_of_jobs(void **state)
{
    int64_t counts[GRES_INDEX_MAX];
    assert_int_equal(gres_count("gres:gpu:2", "gpu"), 2);
    assert_int_equal(gres_count("gres/gpu:a100:3,gres/gpu:1", "gpu"), 4);
    assert_int_equal(gres_count("gpu", "gpu"), 1);
    assert_int_equal(gres_count("gpu:a100", "gpu"), 1);
    assert_int_equal(gres_count(NULL, "gpu"), 0);
    assert_int_equal(gres_counts_by_index("gres:shard:i2:12", "shard", counts), 1);
    assert_int_equal(counts[2], 12);
    assert_int_equal(gres_counts_by_index("gres/shard:i0:20,gres/shard:i3:10", "shard", counts), 2);
    assert_int_equal(counts[0], 20);
    assert_int_equal(counts[3], 10);
}

static void reads_what_nodes_have(void **state)
{
    int64_t counts[GRES_INDEX_MAX];
    const char *text = "gpu:i0:1(S:0-1),gpu:i1:1(IDX:0,2),shard:i0:80(S:0),shard:i1:40";
    assert_int_equal(gres_counts_by_index(text, "shard", counts), 2);
    assert_int_equal(counts[0], 80);
    assert_int_equal(counts[1], 40);
    assert_int_equal(gres_count(text, "gpu"), 2);
}

static void skips_what_is_no_item(void **state)
{
    static const char *const texts[] = {"", ",", ":::", "shard:i1:x", "shard:i1:1:2", "(", "a(b,c",
        "shard:i1:-3", "shard:i1:99999999999999999999", "gres:", "shard:i99:4", "shard:i:4",
        "shard:i1x:4", "\xff\xfe,\x01"};
    int64_t counts[GRES_INDEX_MAX];
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        assert_int_equal(gres_counts_by_index(texts[i], "shard", counts), 0);
    assert_int_equal(gres_counts_by_index("shard:i1:x,shard:i2:5", "shard", counts), 1);
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
        cmocka_unit_test(writes_shards_of_gpus)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
