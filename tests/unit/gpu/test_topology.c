/* SPDX-License-Identifier: Apache-2.0 */
/* Distances from what drivers of several servers answer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "gpu/topology.h"

/* A pretend server of two cards: 'a' has links[], each to the bus that it names. */
static struct {
    int level;         /* of the common ancestor; -1: not supported */
    unsigned links[4]; /* of both cards; 0: inactive */
    bool has_p2p;
} server;

static int common_ancestor(nvml_device a, nvml_device b, int *level)
{
    *level = server.level;
    return server.level < 0 ? NVML_NOT_SUPPORTED : NVML_OK;
}

static int p2p_status(nvml_device a, nvml_device b, int by, int *status)
{
    *status = by == NVML_P2P_BY_NVLINK && server.has_p2p ? NVML_P2P_OK : NVML_P2P_UNKNOWN;
    return NVML_OK;
}

static int nvlink_state(nvml_device device, unsigned link, unsigned *active)
{
    if (link >= 4)
        return NVML_INVALID_ARGUMENT;
    *active = server.links[link] != 0;
    return NVML_OK;
}

static int nvlink_remote(nvml_device device, unsigned link, struct nvml_pci *pci)
{
    *pci = (struct nvml_pci){.bus = server.links[link]};
    return NVML_OK;
}

enum { BUS_OF_B = 7, BUS_OF_C = 9, BUS_OF_SWITCH = 200 };

static int device_pci(nvml_device device, struct nvml_pci *pci)
{
    *pci = (struct nvml_pci){.bus = BUS_OF_B};
    return NVML_OK;
}

static const struct nvml nvml = {.common_ancestor = common_ancestor,
    .p2p_status = p2p_status,
    .nvlink_state = nvlink_state,
    .nvlink_remote = nvlink_remote,
    .device_pci = device_pci};

static char distance(void)
{
    int a, b;
    return topology_distance(&nvml, (nvml_device)(void *)&a, (nvml_device)(void *)&b);
}

static void without_links_the_common_ancestor_counts(void **state)
{
    static const char by_level[] = "TUVWXY";
    memset(&server, 0, sizeof server);
    for (int i = 0; by_level[i]; i++) {
        server.level = 10 * i;
        assert_int_equal(distance(), by_level[i]);
    }
    server.level = 60;
    assert_int_equal(distance(), GPU_DISTANCE_UNKNOWN);
    server.level = -1;
    assert_int_equal(distance(), GPU_DISTANCE_UNKNOWN);
}

static void direct_links_are_counted_by_pair(void **state)
{
    memset(&server, 0, sizeof server);
    server.level = 50;
    server.has_p2p = true;
    server.links[0] = server.links[1] = BUS_OF_B;
    server.links[3] = BUS_OF_C;
    assert_int_equal(distance(), 'A' + 18 - 2);
    server.has_p2p = false; /* links to others, or turned off */
    assert_int_equal(distance(), 'Y');
}

static void links_through_switches_count_all(void **state)
{
    memset(&server, 0, sizeof server);
    server.level = 50;
    server.has_p2p = true;
    for (int i = 0; i < 4; i++)
        server.links[i] = BUS_OF_SWITCH;
    assert_int_equal(distance(), 'A' + 18 - 4);
}

static void an_old_driver_knows_nothing(void **state)
{
    static const struct nvml old;
    int a, b;
    assert_int_equal(topology_distance(&old, (nvml_device)(void *)&a, (nvml_device)(void *)&b),
        GPU_DISTANCE_UNKNOWN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_links_the_common_ancestor_counts),
        cmocka_unit_test(direct_links_are_counted_by_pair),
        cmocka_unit_test(links_through_switches_count_all),
        cmocka_unit_test(an_old_driver_knows_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
