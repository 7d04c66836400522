/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers of GPUs, which stay while nodes come and go; and what other jobs occupy. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/units.h"
#include "slurm/node_table.h"

static const struct slurm_node nodes[] = {
    {.name = "n2", .gres = "gpu:i0:1,shard:i0:80,gpu:i1:1,shard:i1:80", .cpus = 8},
    {.name = "login", .gres = NULL, .cpus = 4},
    {.name = "n10", .gres = "gpu:i3:1,shard:i3:40(S:0)", .cpus = 16, .memory_bytes = 1000 * MIB},
    {.name = "n1", .gres = "gpu:2", .cpus = 4},
};

static void numbers_stay(void **state)
{
    bool changed;
    struct node_table table = {.mem_usual_bytes = 80 * GIB};
    struct gpu_identity list[8];
    assert_int_equal(node_table_update(&table, nodes, 4, &changed), 0);
    assert_true(changed);
    assert_int_equal(table.n_nodes, 2); /* nodes without typed shards have no GPUs here */
    assert_int_equal(node_table_list_gpus(&table, list), 3);
    assert_string_equal(list[2].uuid, "n10/3");
    assert_string_equal(list[2].label, "n10:3");
    assert_int_equal(list[0].node, list[1].node);
    assert_int_not_equal(list[1].node, list[2].node);
    assert_true(node_table_shard_bytes(&table, 2) == 2 * GIB);
    assert_int_equal(node_table_update(&table, nodes, 4, &changed), 0);
    assert_false(changed);
    assert_int_equal(node_table_update(&table, nodes, 2, &changed), 0);
    assert_true(changed);
    assert_int_equal(node_table_list_gpus(&table, list), 2);
    assert_int_equal(node_table_update(&table, nodes, 4, &changed), 0);
    assert_true(changed);
    assert_int_equal(node_table_list_gpus(&table, list), 3);
    assert_string_equal(list[2].uuid, "n10/3");
    assert_int_equal(table.n_gpus, 3);
    assert_int_equal(node_table_find(&table, span_of("n1")), -1);
    assert_int_equal(node_table_find(&table, span_of("n10")), 1);
    assert_int_equal(node_table_find(&table, span_of("")), -1);
    node_table_fini(&table);
}

/* Slurm lists the nodes in another order, and one has other shards, or none for a while. */
static void shards_change(void **state)
{
    bool changed;
    struct node_table table = {.mem_usual_bytes = 80 * GIB};
    struct slurm_node now[] = {nodes[2], nodes[0]};
    assert_int_equal(node_table_update(&table, nodes, 4, &changed), 0);
    now[0].gres = "gpu:i3:1,shard:i3:20,gpu:i4:1,shard:i4:20";
    assert_int_equal(node_table_update(&table, now, 2, &changed), 0);
    assert_true(changed);
    assert_int_equal(table.n_gpus, 4);
    assert_int_equal(table.gpus[0].shards, 80);
    assert_int_equal(table.gpus[2].shards, 20);
    assert_int_equal(table.gpus[3].index, 4);
    assert_int_equal(table.nodes[1]->n_gpus, 2);
    const char *after = now[0].gres;
    now[0].gres = "gpu:2";
    assert_int_equal(node_table_update(&table, now, 2, &changed), 0);
    assert_false(table.nodes[1]->is_listed);
    now[0].gres = after;
    now[0].cpus = 17;
    assert_int_equal(node_table_update(&table, now, 2, &changed), 0);
    assert_true(table.nodes[1]->is_listed);
    assert_int_equal(table.nodes[1]->cpus, 17);
    now[0].gres = nodes[2].gres;
    assert_int_equal(node_table_update(&table, now, 2, &changed), 0);
    assert_int_equal(table.gpus[2].shards, 40);
    node_table_fini(&table);
}

static void other_jobs_occupy(void **state)
{
    bool changed;
    struct node_table table = {.mem_usual_bytes = 80 * GIB};
    assert_int_equal(node_table_update(&table, nodes, 4, &changed), 0);
    const struct slurm_job shards = {
        .cpus = 2, .nodes = 1, .node_list = "n2", .gres = "gres:shard:i1:30"};
    const struct slurm_job any = {.cpus = 4,
        .nodes = 2,
        .memory_bytes = 100,
        .node_list = "n2,unknown,n10",
        .gres = "gres:gpu:1"};
    node_table_add_other(&table, &shards);
    assert_int_equal(table.gpus[0].other_shards, 0);
    assert_int_equal(table.gpus[1].other_shards, 30);
    node_table_add_other(&table, &any); /* any of the node's GPUs may be the one */
    assert_int_equal(table.gpus[0].other_shards, 80);
    assert_int_equal(table.gpus[2].other_shards, 40);
    assert_int_equal(table.nodes[0]->other_cpus, 4);
    assert_int_equal(table.nodes[1]->other_cpus, 2);
    assert_true(table.nodes[1]->other_memory_bytes == 100);
    node_table_clear_others(&table);
    assert_int_equal(table.gpus[0].other_shards + table.nodes[0]->other_cpus, 0);
    node_table_fini(&table);
}

static void lists_are_searched_by_whole_names(void **state)
{
    assert_true(node_list_has("n1,n10", "n1"));
    assert_true(node_list_has("n1,n10", "n10"));
    assert_false(node_list_has("n1,n10", "n"));
    assert_false(node_list_has("n10", "n1"));
    assert_false(node_list_has(NULL, "n1"));
    assert_false(node_list_has("", "n1"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(numbers_stay),
        cmocka_unit_test(shards_change), cmocka_unit_test(other_jobs_occupy),
        cmocka_unit_test(lists_are_searched_by_whole_names)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
