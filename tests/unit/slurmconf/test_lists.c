/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of generic resources and of nodes. */
#include <stdio.h>
#include <stdlib.h>

#include "slurmconf/gres_list.h"
#include "slurmconf/host_list.h"
#include "unit.h"

static void test_counts(void **state)
{
    assert_int_equal(gres_list_count(span_of("gpu:a100:4(S:0-1),nvme:1"), "gpu"), 4);
    assert_int_equal(gres_list_count(span_of("gpu,gpu:2,gpu:a100"), "gpu"), 4);
    assert_int_equal(gres_list_count(span_of("gpus:3,nogpu:2"), "gpu"), 0);
    assert_int_equal(gres_list_count(span_of(""), "gpu"), 0);
    assert_true(gres_list_count(span_of("gpu:99999999999999999999"), "gpu") > NODE_GPUS_MAX);
}

static void assert_typed(const char *list, int gpus, const char *want)
{
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    gres_list_write_typed(out, span_of(list), gpus, 80);
    fclose(out);
    assert_string_equal(text, want);
    free(text);
}

static void test_typed(void **state)
{
    assert_typed("gpu:1", 1, "gpu:i0:1,shard:i0:80");
    assert_typed("gpu:a100:2(S:0,1),x:1(S:0,1),shard:20", 2,
        "x:1(S:0,1),gpu:i0:1,gpu:i1:1,shard:i0:80,shard:i1:80");
    assert_int_equal(gres_list_typed_shards(span_of("gpu:2,shard:i0:80(S:0),shard:i1:80")), 2);
    assert_int_equal(gres_list_typed_shards(span_of("shard:i1:80")), 0);
    assert_int_equal(gres_list_typed_shards(span_of("shard:160")), 0);
}

static void test_hosts(void **state)
{
    char name[16];
    assert_true(host_list_first(span_of("gpu[01-04],x"), name, sizeof name));
    assert_string_equal(name, "gpu01");
    assert_true(host_list_first(span_of("r[1-2]n"), name, sizeof name));
    assert_string_equal(name, "r1n");
    assert_false(host_list_first(span_of(""), name, sizeof name));
    assert_false(host_list_first(span_of("a-very-long-name-of-a-node"), name, sizeof name));
    assert_true(host_list_has(span_of("a,gpu[01-04,09]"), "gpu09"));
    assert_true(host_list_has(span_of("n[8-12]"), "n10"));
    assert_true(host_list_has(span_of("r[1-2]n"), "r2n"));
    assert_true(host_list_has(span_of("a,b"), "b"));
    assert_false(host_list_has(span_of("gpu[01-04]"), "gpu1"));
    assert_false(host_list_has(span_of("gpu[01-04]"), "gpu05"));
    assert_false(host_list_has(span_of("gpu[01-04]"), "gpu0x"));
    assert_false(host_list_has(span_of("gpu[01-04"), "gpu01"));
    assert_false(host_list_has(span_of("gpu[]"), "gpu"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_typed),
        cmocka_unit_test(test_hosts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
