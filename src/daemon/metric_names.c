/* SPDX-License-Identifier: Apache-2.0 */
/* The metrics of each kind of series, as docs/protocol.md lists them, and their names. */
#include "daemon/metric_names.h"

#include <string.h>

static const char *const names[METRIC_KINDS][METRIC_VALUES_MAX] = {
    [METRICS_OF_GPU] =
        {
            [GPU_METRIC_MEM_USED_MIB] = "mem_used_mib",
            [GPU_METRIC_EXTERNAL_MEM_MIB] = "external_mem_mib",
            [GPU_METRIC_UTILISATION] = "utilisation",
            [GPU_METRIC_SMACT] = "smact",
            [GPU_METRIC_SMOCC] = "smocc",
            [GPU_METRIC_DRAM_ACTIVE] = "dram_active",
            [GPU_METRIC_POWER_W] = "power_w",
            [GPU_METRIC_TEMPERATURE_C] = "temperature_c",
            [GPU_METRIC_PCIE_TX_MIB_S] = "pcie_tx_mib_s",
            [GPU_METRIC_PCIE_RX_MIB_S] = "pcie_rx_mib_s",
            [GPU_METRIC_GRACT] = "gract",
            [GPU_METRIC_SM_CLOCK_MHZ] = "sm_clock_mhz",
            [GPU_METRIC_TASKS] = "tasks",
            [GPU_METRIC_FOREIGN] = "foreign_processes",
        },
    [METRICS_OF_TASK] =
        {
            [TASK_METRIC_MEM_USED_MIB] = "mem_used_mib",
            [TASK_METRIC_SMACT] = "smact",
            [TASK_METRIC_SMOCC] = "smocc",
            [TASK_METRIC_DRAM_ACTIVE] = "dram_active",
            [TASK_METRIC_POWER_W] = "power_w",
            [TASK_METRIC_PCIE_TX_MIB_S] = "pcie_tx_mib_s",
            [TASK_METRIC_PCIE_RX_MIB_S] = "pcie_rx_mib_s",
        },
    [METRICS_OF_PROCESSES] =
        {
            [PROCESS_METRIC_CPU_CORES] = "cpu_cores",
            [PROCESS_METRIC_HOST_MEM_MIB] = "host_mem_mib",
            [PROCESS_METRIC_DISK_READ_MIB_S] = "disk_read_mib_s",
            [PROCESS_METRIC_DISK_WRITE_MIB_S] = "disk_write_mib_s",
            [PROCESS_METRIC_NET_RX_MIB_S] = "net_rx_mib_s",
            [PROCESS_METRIC_NET_TX_MIB_S] = "net_tx_mib_s",
            [PROCESS_METRIC_STEPS_PER_S] = "steps_per_s",
        },
};

enum metric_kind metric_kind_of(const struct metric_key *key)
{
    if (!*key->gpu)
        return METRICS_OF_PROCESSES;
    return key->task ? METRICS_OF_TASK : METRICS_OF_GPU;
}

int metric_count(enum metric_kind kind)
{
    static const int counts[METRIC_KINDS] = {GPU_METRICS, TASK_METRICS, PROCESS_METRICS};
    return counts[kind];
}

const char *metric_name(enum metric_kind kind, int metric)
{
    return names[kind][metric];
}

/* Walks a list; `*at` is its next name. Returns the name's length, or 0 at the end. */
static size_t next_name(const char **at, const char **ret_name)
{
    while (**at == ',')
        (*at)++;
    *ret_name = *at;
    size_t length = strcspn(*at, ",");
    *at += length;
    return length;
}

bool metric_is_listed(enum metric_kind kind, int metric, const char *list)
{
    const char *own = names[kind][metric], *name;
    if (!*list)
        return true;
    for (size_t length; (length = next_name(&list, &name)) > 0;)
        if (strlen(own) == length && strncmp(own, name, length) == 0)
            return true;
    return false;
}

static bool is_known(const char *name, size_t length)
{
    for (int kind = 0; kind < METRIC_KINDS; kind++)
        for (int i = 0; i < metric_count((enum metric_kind)kind); i++)
            if (strlen(names[kind][i]) == length && strncmp(names[kind][i], name, length) == 0)
                return true;
    return false;
}

const char *metric_find_unknown(const char *list, size_t *ret_length)
{
    const char *name;
    while ((*ret_length = next_name(&list, &name)) > 0)
        if (!is_known(name, *ret_length))
            return name;
    return NULL;
}
