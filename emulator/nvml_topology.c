/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How GPUs are connected: NVLinks as `colloc-emulator set GPU nvlink=2:4` made them, each directly
 * from one GPU to another, and NUMA nodes, over which GPUs and the machine's CPUs are spread in
 * order. GPU 5 of 8 with two nodes is near the second half of the CPUs.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "emulator/nvml_view.h"

enum { WORD_BITS = 8 * sizeof(unsigned long) };

static int node_of(const struct world *world, int gpu)
{
    return gpu * world->numa_nodes / world->gpu_count;
}

/* Is this the handle of a GPU, as the second one of a pair? */
static bool is_gpu(nvmlDevice_t device)
{
    return device && device->seat.unit == 0;
}

nvmlReturn_t nvmlDeviceGetTopologyCommonAncestor(nvmlDevice_t a, nvmlDevice_t b, unsigned *level)
{
    struct view v;

    nvmlReturn_t r = view_open_gpu(a, is_gpu(b) ? level : NULL, 0, &v);
    if (r != NVML_SUCCESS)
        return r;
    if (v.world->numa_nodes) {
        bool same = node_of(v.world, v.seat.gpu) == node_of(v.world, b->seat.gpu);
        *level = same ? NVML_TOPOLOGY_NODE : NVML_TOPOLOGY_SYSTEM;
    }
    r = v.world->numa_nodes ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
    view_close(&v);
    return r;
}

static unsigned nvlink_status(const struct view *v, unsigned other)
{
    return v->world->nvlinks[v->seat.gpu][other] ? NVML_P2P_STATUS_OK
                                                 : NVML_P2P_STATUS_NOT_SUPPORTED;
}

static unsigned other_status(const struct view *v, unsigned other)
{
    return NVML_P2P_STATUS_NOT_SUPPORTED;
}

nvmlReturn_t nvmlDeviceGetP2PStatus(nvmlDevice_t a, nvmlDevice_t b, int by, int *status)
{
    if (!is_gpu(b))
        return NVML_ERROR_INVALID_ARGUMENT;
    return give_number(view_open_gpu, a, (unsigned)b->seat.gpu, (unsigned *)status,
        by == NVML_P2P_NVLINK ? nvlink_status : other_status);
}

/* The GPU at the other end of a link; -1: there is none. */
static int other_end(const struct view *v, unsigned link)
{
    for (int g = 0; g < v->world->gpu_count; g++) {
        unsigned links = v->world->nvlinks[v->seat.gpu][g];
        if (link < links)
            return g;
        link -= links;
    }
    return -1;
}

static unsigned is_linked(const struct view *v, unsigned link)
{
    return other_end(v, link) >= 0;
}

nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t device, unsigned link, unsigned *active)
{
    return give_number(view_open_gpu, device, link, link < NVML_NVLINKS ? active : NULL, is_linked);
}

nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo_v2(
    nvmlDevice_t device, unsigned link, nvmlPciInfo_v3_t *pci)
{
    struct view v;

    nvmlReturn_t r = view_open_gpu(device, pci, 0, &v);
    if (r != NVML_SUCCESS)
        return r;
    int other = other_end(&v, link);
    view_close(&v);
    if (other < 0)
        return NVML_ERROR_NOT_SUPPORTED;
    return nvmlDeviceGetPciInfo_v3(device_handle((struct seat){other, 0}), pci);
}

nvmlReturn_t nvmlDeviceGetCpuAffinity(nvmlDevice_t device, unsigned words, unsigned long *cpus)
{
    struct view v;

    nvmlReturn_t r = view_open(device, words ? cpus : NULL, 0, &v);
    if (r != NVML_SUCCESS)
        return r;
    int nodes = v.world->numa_nodes, n_cpus = (int)sysconf(_SC_NPROCESSORS_ONLN);
    memset(cpus, 0, words * sizeof(*cpus));
    for (int cpu = 0; nodes && cpu < n_cpus && cpu < (int)words * (int)WORD_BITS; cpu++)
        if (cpu * nodes / n_cpus == node_of(v.world, v.seat.gpu))
            cpus[cpu / (int)WORD_BITS] |= 1UL << cpu % (int)WORD_BITS;
    view_close(&v);
    return nodes ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
}
