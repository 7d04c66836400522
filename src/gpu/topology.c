/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The topology of a server, as `nvidia-smi topo -m` prints it, in one character for each pair of
 * cards: the larger, the farther.
 *
 *     'A' + 18 - n   n NVLinks, directly or through NVSwitches
 *     'T'            on one board
 *     'U'            one PCIe switch
 *     'V'            several PCIe switches
 *     'W'            the PCIe host bridge of one CPU
 *     'X'            one NUMA node
 *     'Y'            across NUMA nodes
 *     '~'            not known
 *
 * Links through NVSwitches are not listed by pair: the driver reports for each pair whether it can
 * use NVLink, and such a pair has the links of the card with fewer.
 */
#include "gpu/topology.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/units.h"

enum { LINKS_MAX = 18, CPU_WORDS = 16, WORD_BITS = 8 * sizeof(unsigned long) };

static bool is_link_active(const struct nvml *nvml, nvml_device device, unsigned link)
{
    unsigned active = 0;
    return nvml_call(nvml, nvlink_state, device, link, &active) == NVML_OK && active;
}

/* The active links of `a`: all, or those to `to`. */
static int count_links(const struct nvml *nvml, nvml_device a, const struct nvml_pci *to)
{
    int n = 0;
    for (unsigned link = 0; link < LINKS_MAX; link++) {
        struct nvml_pci remote = {0};
        if (!is_link_active(nvml, a, link))
            continue;
        n += !to || (nvml_call(nvml, nvlink_remote, a, link, &remote) == NVML_OK &&
                        remote.domain == to->domain && remote.bus == to->bus &&
                        remote.device == to->device);
    }
    return n;
}

static bool can_use_nvlink(const struct nvml *nvml, nvml_device a, nvml_device b)
{
    int status = NVML_P2P_UNKNOWN;
    return nvml_call(nvml, p2p_status, a, b, NVML_P2P_BY_NVLINK, &status) == NVML_OK &&
           status == NVML_P2P_OK;
}

static int links_between(const struct nvml *nvml, nvml_device a, nvml_device b)
{
    struct nvml_pci pci;
    if (!can_use_nvlink(nvml, a, b))
        return 0;
    bool has_pci = nvml_call(nvml, device_pci, b, &pci) == NVML_OK;
    int direct = has_pci ? count_links(nvml, a, &pci) : 0;
    if (direct)
        return direct;
    int of_a = count_links(nvml, a, NULL), of_b = count_links(nvml, b, NULL);
    return of_a < of_b ? of_a : of_b;
}

char topology_distance(const struct nvml *nvml, nvml_device a, nvml_device b)
{
    static const char by_level[] = "TUVWXY";
    int links = links_between(nvml, a, b), level = -1;
    if (links)
        return (char)('A' + LINKS_MAX - (links < LINKS_MAX ? links : LINKS_MAX));
    if (nvml_call(nvml, common_ancestor, a, b, &level) != NVML_OK || level < 0 ||
        level / NVML_TOPOLOGY_STEP >= (int)strlen(by_level))
        return GPU_DISTANCE_UNKNOWN;
    return by_level[level / NVML_TOPOLOGY_STEP];
}

/* "0-15,64-79"; "" when it is not known, or too long for the buffer. */
static void write_cpus(const unsigned long *words, char *buffer, size_t size)
{
    size_t used = 0;
    int first = -1;
    buffer[0] = '\0';
    for (int cpu = 0; cpu <= (int)(CPU_WORDS * WORD_BITS); cpu++) {
        bool is_in = cpu < (int)(CPU_WORDS * WORD_BITS) &&
                     (words[cpu / (int)WORD_BITS] >> cpu % (int)WORD_BITS & 1);
        if (is_in && first < 0)
            first = cpu;
        if (is_in || first < 0)
            continue;
        used += (size_t)snprintf(buffer + used, size - used, used ? ",%d" : "%d", first);
        if (used < size && cpu - 1 > first)
            used += (size_t)snprintf(buffer + used, size - used, "-%d", cpu - 1);
        if (used >= size) {
            buffer[0] = '\0';
            return;
        }
        first = -1;
    }
}

/* NVML writes eight digits of the PCI domain in capitals, the kernel four in small letters. The
 * kernel says -1 where it does not know. */
static struct reading read_numa_node(const char *pci_bus_id)
{
    char path[96], bus[sizeof((struct gpu_info *)NULL)->pci_bus_id], text[16];
    size_t n = 0;
    int64_t node;
    for (; pci_bus_id[n]; n++)
        bus[n] = (char)tolower((unsigned char)pci_bus_id[n]);
    bus[n] = '\0';
    snprintf(path, sizeof path, "/sys/bus/pci/devices/%s/numa_node", n > 12 ? bus + n - 12 : bus);
    file_read_start(path, text, sizeof text);
    text[strcspn(text, "\n")] = '\0';
    return parse_int64(text, 0, INT_MAX, &node) == 0 ? reading_of((double)node) : READING_NONE;
}

void topology_read(struct gpu_source *source, size_t at)
{
    struct gpu_info *info = &source->info[at];
    nvml_device device = source->device[at].handle;
    unsigned long cpus[CPU_WORDS] = {0};
    size_t n = 0;
    bool any = false;
    info->numa_node = read_numa_node(info->pci_bus_id);
    if (nvml_call(&source->nvml, cpu_affinity, device, CPU_WORDS, cpus) == NVML_OK)
        write_cpus(cpus, info->near_cpus, sizeof info->near_cpus);
    for (size_t i = 0; i < at && n + 1 < sizeof info->distances; i++) {
        if (source->info[i].is_mig)
            continue;
        nvml_device other = source->device[i].handle;
        char distance = other ? topology_distance(&source->nvml, device, other)
                              : GPU_DISTANCE_UNKNOWN;
        any |= distance != GPU_DISTANCE_UNKNOWN;
        info->distances[n++] = distance;
    }
    info->distances[any ? n : 0] = '\0';
}
