/* SPDX-License-Identifier: Apache-2.0 */
/* The GPUs of a simulated machine, from the text of --gpus. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/units.h"
#include "sim/cluster.h"

static struct gpu_kinds kinds;

static int init_kinds(void **state)
{
    return gpu_kinds_init(&kinds, NULL);
}

/* An array that grows by one copies itself for each: quadratic, and minutes under a sanitizer. */
static void very_many_gpus_grow_by_doubling(void **state)
{
    struct cluster cluster;
    assert_int_equal(cluster_parse(&kinds, "64100xA100-40GB", NULL, &cluster), 0);
    assert_int_equal(cluster.n_gpus, 64100);
    assert_int_equal(cluster.n_places, 64100);
    assert_true(cluster.gpus_capacity > 64100 && cluster.places_capacity > 64100 &&
                cluster.identities_capacity > 64100);
    cluster_fini(&cluster);
}

static void more_than_the_most_are_refused(void **state)
{
    struct cluster cluster;
    struct fault fault;
    assert_true(cluster_parse(&kinds, "100001xA100-40GB", &fault, &cluster) < 0);
    assert_string_equal(fault.text, "\"100001\" GPUs: there must be 1 to 100000");
    cluster_fini(&cluster);
    assert_true(cluster_parse(&kinds, "99999xA100-40GB,2xH100", &fault, &cluster) < 0);
    cluster_fini(&cluster);
}

static void a_gpu_without_places_is_refused(void **state)
{
    struct cluster cluster;
    struct fault fault;
    assert_true(cluster_parse(&kinds, "A100-40GB:", &fault, &cluster) < 0);
    assert_string_equal(fault.text, "A100-40GB: no MIG instances behind the colon");
    cluster_fini(&cluster);
}

static void instances_are_places_of_their_gpu(void **state)
{
    struct cluster cluster;
    assert_int_equal(cluster_parse(&kinds, "H100,A100-40GB:3g.20gb+2g.10gb", NULL, &cluster), 0);
    assert_int_equal(cluster.n_gpus, 2);
    assert_int_equal(cluster.n_places, 3);
    static const int gpus[] = {0, 1, 1};
    for (int i = 0; i < 3; i++)
        assert_int_equal(cluster.places[i].gpu, gpus[i]);
    assert_true(cluster.places[1].sms > cluster.places[2].sms && cluster.places[0].sms == 1);
    cluster_fini(&cluster);
}

/* Of an A30 with its four slices, 2g.12gb is a half. */
static void instances_have_parts_of_their_kind(void **state)
{
    static const double parts[] = {0.5, 0.25};
    static const int limits_w[] = {82, 41};
    struct cluster cluster;
    assert_int_equal(cluster_parse(&kinds, "A30:2g.12gb+1g.6gb", NULL, &cluster), 0);
    assert_int_equal(cluster.n_places, 2);
    for (int i = 0; i < 2; i++) {
        assert_float_equal(cluster.places[i].sms, parts[i], 1e-9);
        assert_float_equal(cluster.places[i].bandwidth, parts[i], 1e-9);
        assert_int_equal(cluster.identities[i].power_limit_w, limits_w[i]);
    }
    cluster_fini(&cluster);
}

static void more_slices_than_a_kind_has_are_refused(void **state)
{
    static const char *const wrong[] = {"A30:4g.24gb+1g.6gb", "A30:2g.12gb+2g.12gb+1g.6gb",
        "A100-40GB:7g.40gb+1g.5gb", "A100-40GB:4g.20gb+4g.20gb"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct cluster cluster;
        struct fault fault;
        assert_int_equal(cluster_parse(&kinds, wrong[i], &fault, &cluster), -EINVAL);
        assert_non_null(strstr(fault.text, "these MIG instances are more than one A"));
        cluster_fini(&cluster);
    }
}

static void compute_instances_share_memory(void **state)
{
    static const int memory_places[] = {0, 1, 2, 2, 4};
    static const int domains[] = {0, 0, 3, 3, 0};
    struct cluster cluster;
    assert_int_equal(
        cluster_parse(&kinds, "H100,A100-40GB:2g.10gb+1c.3g.20gb+2c.3g.20gb,T4", NULL, &cluster),
        0);
    assert_int_equal(cluster.n_places, 5);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(cluster.places[i].memory_place, memory_places[i]);
        assert_int_equal(cluster.identities[i].memory_domain, domains[i]);
    }
    assert_float_equal(cluster.places[2].sms, 14.0 / 108, 1e-9);
    assert_float_equal(cluster.places[3].sms, 28.0 / 108, 1e-9);
    assert_float_equal(cluster.places[3].bandwidth, 2.0 / 3 / 2, 1e-9);
    assert_string_equal(cluster.identities[3].name, "A100-40GB 2c.3g.20gb");
    assert_string_equal(cluster.identities[3].label, "1:2");
    cluster_fini(&cluster);
}

/* As in the daemon, where gpu/discover.c gives an instance its part. */
static void a_compute_instance_has_a_part_of_the_power(void **state)
{
    static const int limits_w[] = {400, 171, 57, 114};
    struct cluster cluster;
    assert_int_equal(
        cluster_parse(&kinds, "A100-40GB,A100-40GB:3g.20gb+1c.3g.20gb+2c.3g.20gb", NULL, &cluster),
        0);
    assert_int_equal(cluster.n_places, 4);
    for (int i = 0; i < 4; i++)
        assert_int_equal(cluster.identities[i].power_limit_w, limits_w[i]);
    cluster_fini(&cluster);
}

/* As in the daemon, where gpu_list.c subtracts what the driver reserves. */
static void reserved_memory_is_not_the_tasks(void **state)
{
    struct cluster cluster;
    assert_int_equal(cluster_parse(&kinds, "A100-40GB,A100-40GB:3g.20gb", NULL, &cluster), 0);
    assert_int_equal(cluster.identities[0].mem_total_bytes, (40960 - 624) * MIB);
    assert_int_equal(cluster.identities[1].mem_total_bytes, 19968 * MIB);
    cluster_fini(&cluster);
}

static void nodes_stand_in_braces(void **state)
{
    struct cluster cluster;
    assert_int_equal(cluster_parse(&kinds, "2x{2xA30,T4},{H200}", NULL, &cluster), 0);
    static const int nodes[] = {1, 1, 1, 2, 2, 2, 3};
    assert_int_equal(cluster.n_gpus, 7);
    for (int i = 0; i < 7; i++)
        assert_int_equal(cluster.identities[i].node, nodes[i]);
    assert_string_equal(cluster.gpus[5]->name, cluster.gpus[2]->name);
    cluster_fini(&cluster);
    static const char *const wrong[] = {"2x{2xA30", "3{A30}", "0x{A30}", "{A30}T4", "{}", "x{A30}",
        "2x{{A30}}", "100001x{T4}", "50001x{2xT4}", "{A30},T4", "{A30},", "2x{99}"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct fault fault = {0};
        if (cluster_parse(&kinds, wrong[i], &fault, &cluster) >= 0 || !*fault.text)
            fail_msg("%s", wrong[i]);
        cluster_fini(&cluster);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(very_many_gpus_grow_by_doubling),
        cmocka_unit_test(more_than_the_most_are_refused),
        cmocka_unit_test(a_gpu_without_places_is_refused),
        cmocka_unit_test(instances_are_places_of_their_gpu),
        cmocka_unit_test(instances_have_parts_of_their_kind),
        cmocka_unit_test(more_slices_than_a_kind_has_are_refused),
        cmocka_unit_test(compute_instances_share_memory),
        cmocka_unit_test(a_compute_instance_has_a_part_of_the_power),
        cmocka_unit_test(reserved_memory_is_not_the_tasks),
        cmocka_unit_test(nodes_stand_in_braces),
    };
    return cmocka_run_group_tests(tests, init_kinds, NULL);
}
